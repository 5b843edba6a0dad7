"""Archives whose bytes depend only on their content."""

import gzip
import io
import tarfile
import time
import zipfile
from pathlib import Path

from build import epoch


def write_zip(archive: Path, program: Path) -> None:
    """Zips a program for Lambda, as an executable `bootstrap`."""
    entry = zipfile.ZipInfo("bootstrap", time.gmtime(epoch())[:6])
    entry.create_system = 3  # Unix: the next line sets its mode
    entry.external_attr = 0o100755 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(entry, program.read_bytes(), compresslevel=9)


def write_tar(archive: Path, folder: Path) -> None:
    """Packs a folder under its name: files in order, owner 0."""
    entries = [folder, *sorted(folder.rglob("*"))]
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in entries:
            tar.add(path, str(path.relative_to(folder.parent)), recursive=False, filter=neutral)
    with archive.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=epoch()) as zipped:
        zipped.write(content.getvalue())


def neutral(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime = epoch()
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry
