"""Builds a release into `dist/`, with the variables that `release.sh` sets.

| file | holds |
|---|---|
| `build.py` | the programs |
| `archive.py` | zips and tarballs, reproducibly |
| `template.py` | the release's templates for SAM |
| `cloudformation.py`, `expand.py` | the release's template for CloudFormation alone; these files run in the SAM CLI's Python |
| `command.py` | the `comeback` command's tarballs and `install.sh` |
| `bill.py`, `licences.py` | SBOMs and third-party licences |
| `packages.py` | the packages for npm and Python |
| `manifest.py` | the list of files |
"""

import os
import shutil
import subprocess
import sys

import bill
import build
import command
import manifest
import template
from archive import write_zip
from build import MACHINES, ROOT, Refused

DIST = ROOT / "dist"


def main() -> None:
    archs = chosen(os.environ["ARCHS"])
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    # Fetches the crates for all targets, so that the licences can be collected offline.
    build.run("cargo", "fetch", "--locked")
    for arch in archs:
        for name, program in build.functions(arch).items():
            write_zip(DIST / f"{name}-{arch}.zip", program)
        write_template(arch)
    write_cloudformation()
    bill.write(DIST, archs)
    command.write(DIST, archs)
    build.run(sys.executable, "packaging/packages.py", "dist", *(f"--architecture={arch}" for arch in archs))
    manifest.write(DIST)
    print(f"made {DIST} for {' and '.join(archs)}")


def chosen(words: str) -> list[str]:
    archs = words.split()
    for arch in archs:
        if arch not in MACHINES:
            raise Refused(f"ARCHS names {arch!r}: it may hold {' and '.join(MACHINES)}")
    return archs


def write_template(arch: str) -> None:
    source = (ROOT / "template.yaml").read_text()
    licence = (ROOT / "LICENSE-MIT").read_text()
    (DIST / template.name(arch)).write_text(template.generate(source, arch, build.version(), licence))


def write_cloudformation() -> None:
    python = str(ROOT / ".tools/sam/bin/python")
    text = build.run(python, "packaging/cloudformation.py", build.version(), stdout=subprocess.PIPE)
    (DIST / "comeback.cfn.json").write_text(text)


if __name__ == "__main__":
    try:
        main()
    except (OSError, Refused) as error:
        sys.exit(f"error: {error}")
