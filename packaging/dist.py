"""Builds a release into `dist/`, without the npm and Python packages (`packages.py`) and the list of files
(`manifest.py`), which `make dist` adds.

| file | holds |
|---|---|
| `build.py` | the programs, reproducibly |
| `elf.py` | requirements of a program on its machine |
| `archive.py` | zips and tarballs, reproducibly |
| `template.py` | the template of a release |
| `command.py` | the `comeback` command's tarballs and `install.sh` |
| `bill.py`, `licences.py` | SBOMs and third-party licences |
| `refused.py` | the error of a release that cannot be built |
"""

import os
import shutil
import sys

import bill
import build
import command
import template
from archive import write_zip
from build import MACHINES, ROOT
from refused import Refused

DIST = ROOT / "dist"


def main() -> None:
    archs = chosen(os.environ.get("ARCHS", ""))
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    # Licences are gathered offline, also those of crates that only other targets need.
    build.run("cargo", "fetch", "--locked")
    for arch in archs:
        for name, program in build.functions(arch).items():
            write_zip(DIST / f"{name}-{arch}.zip", program)
        write_template(arch)
    bill.write(DIST, archs)
    command.write(DIST, archs)
    print(f"made {DIST} for {' and '.join(archs)}")


def chosen(words: str) -> list[str]:
    """Returns the architectures to build for, by default all."""
    archs = words.split() or list(MACHINES)
    for arch in archs:
        if arch not in MACHINES:
            raise Refused(f"ARCHS names {arch!r}: it may hold {' and '.join(MACHINES)}")
    return archs


def write_template(arch: str) -> None:
    source = (ROOT / "template.yaml").read_text()
    licence = (ROOT / "LICENSE-MIT").read_text()
    (DIST / template.name(arch)).write_text(template.generate(source, arch, build.version(), licence))


if __name__ == "__main__":
    try:
        main()
    except (OSError, Refused) as error:
        sys.exit(f"error: {error}")
