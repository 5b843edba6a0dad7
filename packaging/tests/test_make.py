"""`make dist` fails early if Python is too old."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import ROOT


def make(*arguments: str, path: str) -> subprocess.CompletedProcess:
    # Without the flags of the `make` that runs this test.
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    environment["PATH"] = f"{path}:{environment['PATH']}"
    return subprocess.run(["make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)


class Python(unittest.TestCase):
    def test_an_old_python_is_refused_by_its_name(self):
        with tempfile.TemporaryDirectory() as folder:
            python = Path(folder) / "python3"
            python.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.10.4\n')
            python.chmod(0o755)
            ended = make("tomllib", f"TOOLS={folder}/none", path=folder)
        error = f"error: the packaging needs Python 3.11 or later, and {python} is Python 3.10.4\n"
        self.assertEqual((ended.returncode, ended.stderr.splitlines(keepends=True)[0]), (2, error))

    def test_this_python_is_not(self):
        ended = make("tomllib", path="/none")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_it_is_asked_first(self):
        for target in ("dist", "check-dist"):
            self.assertIn('-c "import tomllib"', make("--dry-run", target, path="/none").stdout.splitlines()[1], target)
