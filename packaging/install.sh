#!/bin/sh
# Installs version @VERSION@ of the comeback command for Linux in ~/.local, or in $PREFIX if it is set. The script
# changes nothing else. COMEBACK_BASE_URL sets another source for the archives, such as a mirror.
#
# curl -fsSL @REPOSITORY@/releases/latest/download/install.sh | sh
set -eu

fail() {
    echo "error: $1" >&2
    exit 1
}

need() {
    command -v "$1" >/dev/null 2>&1 || fail "this needs $1, which is not on the PATH"
}

fetch() {
    if command -v curl >/dev/null 2>&1; then
        curl -fsSL -o "$2" "$1"
    else
        wget -q -O "$2" "$1"
    fi
}

main() {
    case "$(uname -s) $(uname -m)" in
@PLATFORMS@
    *) fail "there is no comeback for $(uname -s) on $(uname -m): build it with cargo install comeback" ;;
    esac
    need tar
    need gzip
    need sha256sum
    command -v curl >/dev/null 2>&1 || command -v wget >/dev/null 2>&1 \
        || fail "this needs curl or wget, and neither is on the PATH"

    prefix=${PREFIX:-${HOME:?is not set: set PREFIX to the folder to install to}/.local}
    url=${COMEBACK_BASE_URL:-@REPOSITORY@/releases/download/v@VERSION@}/$name.tar.gz
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    fetch "$url" "$folder/archive" || fail "cannot download $url"
    found=$(sha256sum <"$folder/archive" | cut -d ' ' -f 1)
    [ "$found" = "$sha256" ] || fail "$url is not the archive of this release: its SHA-256 is $found, not $sha256"
    tar -xzf "$folder/archive" -C "$folder" || fail "cannot unpack $url"
    # Tries the new program first, because it might not run on this machine. It is tried in its final folder, under a
    # temporary name, because the temporary folder might not allow programs to run. A running program can be replaced by
    # renaming, but not overwritten.
    new=$prefix/bin/comeback.new
    mkdir -p "$prefix/bin" && cp "$folder/$name/bin/comeback" "$new" || fail "cannot write to $prefix"
    installed=$("$new" --version) || {
        rm -f "$new"
        fail "the program of $url does not run on this machine: nothing was installed"
    }
    mv -f "$new" "$prefix/bin/comeback" && cp -R "$folder/$name/share" "$prefix" || fail "cannot write to $prefix"
    echo "installed $installed to $prefix/bin"
    case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) echo "add $prefix/bin to your PATH" ;;
    esac
}

main
