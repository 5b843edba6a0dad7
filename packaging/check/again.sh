#!/usr/bin/env bash
# Builds the release again from a copy of the sources, in another folder and with other file modes. Checks that the
# files are identical to those in dist/.
set -euo pipefail
folder=$(mktemp -d -t comeback-again-XXXXXX)
trap 'rm -rf "$folder"' EXIT

# Copies all files that git tracks or would add, and lets the group write to the copies.
git ls-files -z --cached --others --exclude-standard |
    tar --create --ignore-failed-read --null --verbatim-files-from --files-from - --mode=ug=rwX,o=rX |
    tar --extract --same-permissions --directory "$folder"
# These folders contain installed tools and packages instead of sources, so links to them are enough.
for shared in .tools infra/node_modules; do ln -s "$PWD/$shared" "$folder/$shared"; done
(cd "$folder" && packaging/release.sh build)
diff dist/SHA256SUMS "$folder/dist/SHA256SUMS" || {
    echo "error: these differ when they are made in another folder" >&2
    exit 1
}
echo "another folder makes the same $(wc -l <dist/SHA256SUMS) files"
