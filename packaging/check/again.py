"""Makes the release once more, from a copy of the sources in another folder: each file must have the same bytes."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUMS = "SHA256SUMS"


def main() -> None:
    if not (ROOT / "dist" / SUMS).exists():
        sys.exit("error: there is no release: run `make dist` first")
    with tempfile.TemporaryDirectory(prefix="comeback-again-") as folder:
        copy_sources(Path(folder))
        subprocess.run([sys.executable, "packaging/dist.py"], cwd=folder, check=True)
        first, again = sums(ROOT / "dist"), sums(Path(folder) / "dist")
    other = [name for name, digest in again.items() if first.get(name) != digest]
    if other:
        sys.exit(f"error: these differ when they are made in another folder: {', '.join(other)}")
    print(f"another folder makes the same {len(again)} files")


def copy_sources(folder: Path) -> None:
    """All that git knows or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name, follow_symlinks=False)


def sums(dist: Path) -> dict[str, str]:
    """The digest of each file of a release."""
    lines = (dist / SUMS).read_text().splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


if __name__ == "__main__":
    main()
