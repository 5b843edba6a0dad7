"""Builds a tarball of the `comeback` command for each architecture, and the script that installs the command."""

import shutil
from pathlib import Path

import build
from archive import write_tar
from build import ROOT, TARGET
from manifest import digest
from template import REPOSITORY

DOCUMENTS = Path("share/doc/comeback")


def write(dist: Path, archs: list[str]) -> None:
    """Writes the tarballs and the install script into `dist`, which must already contain the third-party licences."""
    manual = TARGET / "manual"
    shutil.rmtree(manual, ignore_errors=True)
    build.manual(manual)
    for arch in archs:
        folder = TARGET / name(arch)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(manual, folder)
        (folder / "bin").mkdir()
        shutil.copy(build.command(arch), folder / "bin" / "comeback")
        (folder / DOCUMENTS).mkdir(parents=True)
        for licence in [ROOT / "LICENSE-MIT", ROOT / "LICENSE-APACHE", *dist.glob("THIRD-PARTY-*")]:
            shutil.copy(licence, folder / DOCUMENTS)
        write_tar(archive(dist, arch), folder)
    script = (ROOT / "packaging" / "install.sh").read_text()
    (dist / "install.sh").write_text(stamped(script, {arch: digest(archive(dist, arch)) for arch in archs}))


def name(arch: str) -> str:
    return f"comeback-{build.version()}-{build.musl(arch)}"


def archive(dist: Path, arch: str) -> Path:
    return dist / f"{name(arch)}.tar.gz"


def stamped(script: str, digests: dict[str, str]) -> str:
    # The names are those that `uname -s` and `uname -m` print.
    platforms = [
        f'    "Linux {build.MACHINES[arch]}") name={name(arch)} sha256={sha256} ;;' for arch, sha256 in digests.items()
    ]
    values = {"VERSION": build.version(), "REPOSITORY": REPOSITORY, "PLATFORMS": "\n".join(platforms)}
    for key, value in values.items():
        script = script.replace(f"@{key}@", value)
    return script
