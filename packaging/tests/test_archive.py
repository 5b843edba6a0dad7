"""Tests that the same content gives the same archive, at any time and for any user."""

import os
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

import support

from archive import write_tar, write_zip


def content(folder: Path, time: int, mode: int) -> Path:
    """Makes a folder with a page and a program. The program has the given mode, and both files the given time."""
    named = folder / "comeback-1.2.3"
    (named / "bin").mkdir(parents=True)
    for place, text, wanted in [("bin/comeback", "program", mode), ("page", "page", 0o600)]:
        (named / place).write_text(text)
        (named / place).chmod(wanted)
        os.utime(named / place, (time, time))
    return named


class Archives(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def test_zip_holds_an_executable_bootstrap(self):
        archives = []
        for name, time, mode in [("one", 1_700_000_000, 0o700), ("two", 1_800_000_000, 0o755)]:
            program = content(self.folder / name, time, mode) / "bin" / "comeback"
            write_zip(self.folder / f"{name}.zip", program)
            archives.append((self.folder / f"{name}.zip").read_bytes())
        self.assertEqual(*archives)
        with zipfile.ZipFile(self.folder / "one.zip") as archive:
            [entry] = archive.infolist()
            self.assertEqual((entry.filename, entry.external_attr >> 16), ("bootstrap", 0o100755))
            self.assertEqual(entry.date_time, (1980, 1, 1, 0, 0, 0))
            self.assertEqual(archive.read(entry), b"program")

    def test_tarball_has_no_owner_or_time(self):
        archives = []
        for name, time, mode in [("one", 1_700_000_000, 0o700), ("two", 1_800_000_000, 0o755)]:
            write_tar(self.folder / f"{name}.tar.gz", content(self.folder / name, time, mode))
            archives.append((self.folder / f"{name}.tar.gz").read_bytes())
        self.assertEqual(*archives)
        with tarfile.open(self.folder / "one.tar.gz") as archive:
            entries = {entry.name: (entry.mode, entry.uname, entry.mtime) for entry in archive}
        folder, program, page = 0o755, 0o755, 0o644
        self.assertEqual(
            entries,
            {
                "comeback-1.2.3": (folder, "root", 315532800),
                "comeback-1.2.3/bin": (folder, "root", 315532800),
                "comeback-1.2.3/bin/comeback": (program, "root", 315532800),
                "comeback-1.2.3/page": (page, "root", 315532800),
            },
        )
