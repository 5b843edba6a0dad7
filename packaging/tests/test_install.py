"""Runs `install.sh` as a user does, against a server on this machine."""

import functools
import http.server
import os
import platform
import shutil
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

from support import ROOT

import command
from archive import write_tar
from build import MACHINES
from manifest import digest

SCRIPT = (ROOT / "packaging" / "install.sh").read_text()
ARCH = next(arch for arch, machine in MACHINES.items() if machine == platform.machine())
NEEDED = ["sh", "uname", "tar", "gzip", "sha256sum", "cut", "mktemp", "mkdir", "cp", "mv", "rm", "curl"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Install(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.dist, self.tools, self.prefix = (self.folder / name for name in ("dist", "tools", "prefix"))
        self.dist.mkdir()
        self.tools.mkdir()
        for tool in NEEDED:
            (self.tools / tool).symlink_to(shutil.which(tool))
        self.pack()
        handler = functools.partial(Quiet, directory=str(self.dist))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_port}"

    def pack(self, program_text: str = "echo comeback 1.2.3") -> None:
        content = self.folder / command.name(ARCH)
        (content / "bin").mkdir(parents=True, exist_ok=True)
        (content / "share" / "man" / "man1").mkdir(parents=True, exist_ok=True)
        (content / "share" / "man" / "man1" / "comeback.1").write_text("page")
        program = content / "bin" / "comeback"
        program.write_text(f"#!/bin/sh\n{program_text}\n")
        program.chmod(0o755)
        write_tar(command.archive(self.dist, ARCH), content)
        self.script = command.stamped(SCRIPT, {ARCH: digest(command.archive(self.dist, ARCH))})

    def install(self, **variables: str) -> subprocess.CompletedProcess:
        shell = shutil.which("sh")
        environment = {
            "PATH": str(self.tools),
            "HOME": str(self.folder),
            "PREFIX": str(self.prefix),
            "COMEBACK_BASE_URL": self.url,
        }
        environment = {key: value for key, value in (environment | variables).items() if value}
        return subprocess.run([shell], input=self.script, env=environment, capture_output=True, text=True)

    def assert_refused(self, ended: subprocess.CompletedProcess, error: str) -> None:
        self.assertEqual((ended.returncode, ended.stdout), (1, ""), ended.stderr)
        self.assertRegex(ended.stderr, f"error: {error}\n$")
        self.assertFalse((self.prefix / "bin" / "comeback").exists())

    def without(self, tool: str) -> None:
        (self.tools / tool).unlink()

    def pretend(self, tool: str, script: str) -> None:
        self.without(tool)
        (self.tools / tool).write_text(f"#!{shutil.which('sh')}\n{script}\n")
        (self.tools / tool).chmod(0o755)

    def test_installs_command_and_pages(self):
        ended = self.install()
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(
            ended.stdout,
            f"installed comeback 1.2.3 to {self.prefix}/bin\nadd {self.prefix}/bin to your PATH\n",
        )
        self.assertTrue(os.access(self.prefix / "bin" / "comeback", os.X_OK))
        self.assertEqual((self.prefix / "share" / "man" / "man1" / "comeback.1").read_text(), "page")

    def test_installs_twice_below_home(self):
        for _ in range(2):
            ended = self.install(PREFIX="", PATH=f"{self.tools}:{self.folder}/.local/bin")
            self.assertEqual(ended.stdout, f"installed comeback 1.2.3 to {self.folder}/.local/bin\n", ended.stderr)

    def test_wget_is_enough(self):
        self.without("curl")
        (self.tools / "wget").write_text(f"#!/bin/sh\nexec {shutil.which('curl')} -fsSL -o \"$3\" \"$4\"\n")
        (self.tools / "wget").chmod(0o755)
        self.assertEqual(self.install().returncode, 0)

    def test_another_archive_is_refused(self):
        with command.archive(self.dist, ARCH).open("ab") as archive:
            archive.write(b"more")
        url = f"{self.url}/{command.name(ARCH)}.tar.gz"
        error = f"{url} is not the archive of this release: its SHA-256 is [0-9a-f]{{64}}, not [0-9a-f]{{64}}"
        self.assert_refused(self.install(), error)

    def test_broken_program_replaces_nothing(self):
        self.install()
        self.pack("exit 126")
        ended = self.install()
        error = f"the program of {self.url}/{command.name(ARCH)}.tar.gz does not run on this machine: nothing was installed"
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (1, "", f"error: {error}\n"))
        installed = self.prefix / "bin" / "comeback"
        self.assertEqual(installed.read_text(), "#!/bin/sh\necho comeback 1.2.3\n")
        self.assertEqual(list(installed.parent.iterdir()), [installed])

    def test_another_platform_is_refused(self):
        self.pretend("uname", '[ "$1" = -s ] && echo Darwin || echo arm64')
        self.assert_refused(
            self.install(), "there is no comeback for Darwin on arm64: build it with cargo install comeback"
        )

    def test_a_missing_tool_is_named(self):
        self.without("sha256sum")
        self.assert_refused(self.install(), "this needs sha256sum, which is not on the PATH")
        self.without("curl")
        (self.tools / "sha256sum").symlink_to(shutil.which("sha256sum"))
        self.assert_refused(self.install(), "this needs curl or wget, and neither is on the PATH")

    def test_failed_download_is_named(self):
        command.archive(self.dist, ARCH).unlink()
        self.assert_refused(self.install(), f"cannot download {self.url}/{command.name(ARCH)}.tar.gz")

    def test_unwritable_folder_is_named(self):
        self.prefix.write_text("a file")
        self.assert_refused(self.install(), f"cannot write to {self.prefix}")
