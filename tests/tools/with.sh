#!/usr/bin/env bash
# Runs a command with tools on its PATH, after it has installed those that are missing or outdated:
#
#     tests/tools/with.sh NAME... -- COMMAND...
#
# `python` is then the Python of the first tool. A name is one of these:
#
#     sam, aws, clients, ...           Python packages, locked by hash in tests/tools/NAME.txt, in .tools/NAME
#     infra, clients/node, ...         a folder with a package-lock.json: its node_modules
#     about, cyclonedx, semver, fuzz   a program for cargo, in .tools/NAME
#     chromium, faketime               a package of Debian's
#     clippy                           compiles our own crates, and a warning is an error
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
tools=$root/.tools

# Faster on a first build. Set for every command: with another value, cargo would rebuild our crates.
export CARGO_INCREMENTAL=0
export SAM_CLI_TELEMETRY=0 CDK_DISABLE_CLI_TELEMETRY=true
# Without its bytecode, the SAM CLI takes a second longer to start, and MiniStack ten.
unset PYTHONDONTWRITEBYTECODE
# Cargo would look in make's flags for make's job server.
unset MAKEFLAGS MFLAGS

debian() {
    local sudo=(sudo)
    [ "$(id -u)" != 0 ] || sudo=()
    "${sudo[@]}" apt-get update && "${sudo[@]}" apt-get install --yes --no-install-recommends "$@"
}

cargo_program() {
    [ -x "$tools/$1/bin/${2%@*}" ] || cargo install --quiet --locked --root "$tools/$1" "${@:2}"
}

node() {
    local installed=$root/$1/node_modules/.installed
    [ "$installed" -nt "$root/$1/package.json" ] && [ "$installed" -nt "$root/$1/package-lock.json" ] && return
    npm --prefix "$root/$1" ci --ignore-scripts --no-audit --no-fund
    touch "$installed"
}

# Ten times as fast as pip.
uv() {
    local locked=$root/tests/tools/uv.txt
    [ "$tools/uv/bin/uv" -nt "$locked" ] && return
    python3 -m venv "$tools/uv"
    "$tools/uv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --requirement "$locked"
    touch "$tools/uv/bin/uv"
}

python_packages() {
    local locked=$root/tests/tools/$1.txt installed=$tools/$1/.installed
    [ -e "$locked" ] || { echo "error: $1 is not a tool: see the head of tests/tools/with.sh" >&2; exit 2; }
    [ "$installed" -nt "$locked" ] && return
    echo "installing $(tr '\n' ' ' <"$root/tests/tools/$1.in")into .tools/$1"
    uv
    "$tools/uv/bin/uv" venv --quiet --clear "$tools/$1"
    # Several MiniStacks start at once, and each would compile the code again.
    [ "$1" != ministack ] || export UV_COMPILE_BYTECODE=1
    "$tools/uv/bin/uv" pip install --quiet --require-hashes --no-build --python "$tools/$1/bin/python" --requirement "$locked"
    unset UV_COMPILE_BYTECODE
    touch "$installed"
}

install() {
    case $1 in
    chromium) command -v chromium >/dev/null || debian chromium fonts-dejavu-core ;;
    faketime) command -v faketime >/dev/null || debian faketime ;;
    # Optimized, because it compares each licence with all known licences.
    about) CARGO_PROFILE_RELEASE_LTO=off cargo_program about cargo-about@0.9.3 --features cli ;;
    # Optimizing would take longer than it saves.
    cyclonedx) CARGO_PROFILE_DEV_DEBUG=false cargo_program cyclonedx cargo-cyclonedx@0.5.9 --debug ;;
    semver) CARGO_PROFILE_DEV_DEBUG=false cargo_program semver cargo-semver-checks@0.51.0 --debug ;;
    fuzz) cargo_program fuzz cargo-fuzz@0.13.2 ;;
    uv) uv ;;
    *) if [ -e "$root/$1/package-lock.json" ]; then node "$1"; else python_packages "$1"; fi ;;
    esac
}

# `cargo clippy` by itself would go through all dependencies once more. Not for what is shipped: clippy's compiler optimizes less.
clippy() {
    clippy-driver --version >/dev/null 2>&1 || rustup component add clippy
    export RUSTC_WORKSPACE_WRAPPER=$root/tests/tools/clippy.sh CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
}

names=()
while [ "$1" != -- ]; do
    if [ "$1" = clippy ]; then clippy; else names+=("$1"); fi
    shift
done
shift
if [ ${#names[@]} != 0 ]; then
    # One at a time, because two stages may need the same tool. Stages that need no tool go on at once.
    mkdir -p "$tools"
    exec {lock}>"$tools/.lock"
    flock "$lock"
    for name in "${names[@]}"; do install "$name"; done
    exec {lock}>&-
fi
path=
# The SAM CLI and MiniStack pin different botocores, hence one environment each.
for tool in ${names[@]+"${names[@]}"} semver fuzz deny about cyclonedx sam aws ministack packaging; do
    path+=$tools/$tool/bin:
done
[ $# = 0 ] || PATH=$path$PATH exec "$@"
