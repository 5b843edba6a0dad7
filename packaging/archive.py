"""Writes archives whose bytes depend only on their content. (A zip written by `cargo lambda` contains the build time.)"""

import os
import time
import zipfile
from pathlib import Path

from build import run


def write_zip(archive: Path, program: Path) -> None:
    """Zips a program for Lambda, as an executable `bootstrap`."""
    entry = zipfile.ZipInfo("bootstrap", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6])
    entry.create_system = 3  # Unix, so that the next line sets the file mode
    entry.external_attr = 0o100755 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(entry, program.read_bytes(), compresslevel=9)


def write_tar(archive: Path, folder: Path) -> None:
    neutral = ["--sort=name", f"--mtime=@{os.environ['SOURCE_DATE_EPOCH']}", "--owner=root:0", "--group=root:0", "--mode=u=rwX,go=rX"]
    gzip = ["--format=ustar", "--use-compress-program", "gzip -9 --no-name"]
    run("tar", "--create", *neutral, *gzip, "--file", str(archive), "--directory", str(folder.parent), folder.name)
