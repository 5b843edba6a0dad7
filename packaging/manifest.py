"""Lists the files in `dist/` in SHA256SUMS, for `sha256sum --check`, and in manifest.json, which also has the sizes."""

import hashlib
import json
from pathlib import Path

from build import Refused, version

SUMS = "SHA256SUMS"
MANIFEST = "manifest.json"


def write(dist: Path) -> None:
    files = sorted(path for path in dist.iterdir() if path.name not in (SUMS, MANIFEST))
    for path in files:
        if not path.is_file():
            raise Refused(f"{path} is not a file: a release is a flat list of files")
    digests = {path.name: digest(path) for path in files}
    (dist / SUMS).write_text("".join(f"{sha256}  {name}\n" for name, sha256 in digests.items()))
    listed = [*files, dist / SUMS]
    artefacts = [{"name": path.name, "size": path.stat().st_size, "sha256": digest(path)} for path in listed]
    manifest = {"version": version(), "artefacts": artefacts}
    (dist / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
