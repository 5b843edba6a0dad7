#!/usr/bin/env bash
# Installs the named tools if they are missing or outdated, and then runs a command with the tools on its PATH:
#
#     tests/tools/with.sh NAME... -- COMMAND...
#
# In the command, `python` is the interpreter from the first tool's environment. NAME is one of these:
#
#     sam, aws, clients, ...           Python packages in .tools/NAME, pinned by hash in tests/tools/NAME.txt
#     infra, clients/node, ...         a folder with a package-lock.json: its node_modules
#     about, cyclonedx, semver, fuzz   a cargo program, in .tools/NAME
#     uv                               the installer of the Python packages
#     chromium, faketime               a Debian package
#     clippy                           clippy on our own crates, with warnings as errors
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
tools=$root/.tools

# A first build is faster without incremental compilation. This variable is the same for all commands, because cargo
# rebuilds our crates whenever it changes.
export CARGO_INCREMENTAL=0
export SAM_CLI_TELEMETRY=0 CDK_DISABLE_CLI_TELEMETRY=true
# Without cached bytecode, the SAM CLI takes a second longer to start, and MiniStack takes ten seconds longer.
unset PYTHONDONTWRITEBYTECODE
# These flags may name make's job server, which cargo would then use.
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

# Installs uv, which installs packages ten times as fast as pip.
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
    # MiniStack's bytecode is compiled now, because several servers start at the same time, and each of them would
    # otherwise compile it.
    [ "$1" != ministack ] || export UV_COMPILE_BYTECODE=1
    "$tools/uv/bin/uv" pip install --quiet --require-hashes --no-build --python "$tools/$1/bin/python" --requirement "$locked"
    unset UV_COMPILE_BYTECODE
    touch "$installed"
}

install() {
    case $1 in
    chromium) command -v chromium >/dev/null || debian chromium fonts-dejavu-core ;;
    faketime) command -v faketime >/dev/null || debian faketime ;;
    # cargo-about compares each licence with all known licences, which would be slow without optimization.
    about) CARGO_PROFILE_RELEASE_LTO=off cargo_program about cargo-about@0.9.3 --features cli ;;
    # The next two programs are not optimized, because optimizing them takes more time than it saves.
    cyclonedx) CARGO_PROFILE_DEV_DEBUG=false cargo_program cyclonedx cargo-cyclonedx@0.5.9 --debug ;;
    semver) CARGO_PROFILE_DEV_DEBUG=false cargo_program semver cargo-semver-checks@0.51.0 --debug ;;
    fuzz) cargo_program fuzz cargo-fuzz@0.13.2 ;;
    uv) uv ;;
    *) if [ -e "$root/$1/package-lock.json" ]; then node "$1"; else python_packages "$1"; fi ;;
    esac
}

# Makes cargo compile our crates with clippy, because a separate `cargo clippy` would process all dependencies again.
# Clippy's compiler optimizes less, so shipped programs are built without it.
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
    # Two stages may install the same tool at the same time.
    mkdir -p "$tools"
    exec {lock}>"$tools/.lock"
    flock "$lock"
    for name in "${names[@]}"; do install "$name"; done
    exec {lock}>&-
fi
path=
# Each tool has its own environment, because the SAM CLI and MiniStack pin different versions of botocore.
for tool in ${names[@]+"${names[@]}"} semver fuzz deny about cyclonedx sam aws ministack packaging; do
    path+=$tools/$tool/bin:
done
[ $# = 0 ] || PATH=$path$PATH exec "$@"
