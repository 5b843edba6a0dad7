"""Builds the release again from a copy of the sources, in another folder and with another umask. Each file must have the same
bytes."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUMS = "SHA256SUMS"

# Installed, not built, so the copy shares them.
SHARED = [".tools", "infra/node_modules"]

# The usual umask on machines where each user has a group.
UMASK = 0o002


def main() -> None:
    if not (ROOT / "dist" / SUMS).exists():
        sys.exit("error: there is no release: run `make dist` first")
    with tempfile.TemporaryDirectory(prefix="comeback-again-") as name:
        folder = Path(name)
        copy_sources(folder)
        for shared in SHARED:
            (folder / shared).symlink_to(ROOT / shared)
        # Without the variables that make passes to sub-makes.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        command = ["make", "dist", f"ARCHS={os.environ['ARCHS']}"]
        subprocess.run(command, cwd=folder, env=environment, umask=UMASK, check=True)
        first, again = sums(ROOT / "dist"), sums(folder / "dist")
    other = sorted(name for name in first.keys() | again.keys() if first.get(name) != again.get(name))
    if other:
        sys.exit(f"error: these differ when they are made in another folder: {', '.join(other)}")
    print(f"another folder makes the same {len(again)} files")


def copy_sources(folder: Path) -> None:
    """Copies all files that git tracks or would add, with their times: make would rebuild files that seem outdated."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
            if not (folder / name).is_symlink():
                (folder / name).chmod((ROOT / name).stat().st_mode | 0o666 & ~UMASK)


def sums(dist: Path) -> dict[str, str]:
    """Returns the digest of each file of a release."""
    lines = (dist / SUMS).read_text().splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


if __name__ == "__main__":
    main()
