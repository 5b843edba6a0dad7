"""Tests that `make dist` fails early if Python is too old."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import ROOT


def release(path: str, action: str = "true") -> subprocess.CompletedProcess:
    """Runs `release.sh`. By default, the action does nothing."""
    environment = os.environ | {"PATH": f"{path}:{os.environ['PATH']}"}
    command = ["packaging/release.sh", action]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


class Python(unittest.TestCase):
    def test_old_python_is_refused(self):
        for action in ("build", "check"):
            with self.subTest(action), tempfile.TemporaryDirectory() as folder:
                python = Path(folder) / "python3"
                python.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.10.4\n')
                python.chmod(0o755)
                ended = release(folder, action)
                error = f"error: the packaging needs Python 3.11 or later, and {python} is Python 3.10.4\n"
                self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (1, "", error))

    def test_this_python_is_accepted(self):
        ended = release("/none")
        self.assertEqual((ended.returncode, ended.stderr), (0, "+ true\n"))
