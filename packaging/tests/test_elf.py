"""Tests that the checks of programs can fail. They must refuse this machine's Python, which is dynamically linked."""

import platform
import sys
import unittest
from pathlib import Path

import support

import elf

PYTHON = Path(sys.executable).resolve()
ARCH = "arm64" if platform.machine() == "aarch64" else "x86_64"


class Programs(unittest.TestCase):
    def test_other_architecture_is_refused(self):
        elf.check_machine(PYTHON, ARCH)
        with self.assertRaisesRegex(AssertionError, "is for EM_.*, not for EM_"):
            elf.check_machine(PYTHON, "x86_64" if ARCH == "arm64" else "arm64")

    def test_newer_glibc_is_refused(self):
        newest = max(elf.glibc_versions(PYTHON))
        elf.check_glibc(PYTHON, newest)
        with self.assertRaisesRegex(AssertionError, "needs glibc 2\\..*, and Amazon Linux 2023 has 2\\.1$"):
            elf.check_glibc(PYTHON, (2, 1))

    def test_dynamic_program_is_refused(self):
        with self.assertRaisesRegex(AssertionError, "is not static: it needs .*libc.so.6"):
            elf.check_static(PYTHON)
