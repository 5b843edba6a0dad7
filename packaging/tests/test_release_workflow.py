"""Runs the publishing steps of `release.yml`, with fakes of the programs that contact registries."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import ROOT

from ruamel.yaml import YAML

WORKFLOW = YAML(typ="safe").load(ROOT / ".github" / "workflows" / "release.yml")
PACKAGES = '{"packages": [{"name": "a", "version": "1.2.3", "publish": null}, {"name": "b", "version": "1.2.3", "publish": null}, \
{"name": "own", "version": "1.2.3", "publish": []}]}'
CHANGELOG = """\
# Changelog
## [Unreleased]
- later
## [1.2.3] - 2026-11-30
- [a page](docs/a.md), [its part](docs/a.md#part), and [one](README.md).
- [elsewhere](https://example.com/a) and [above](#changelog).
## [1.2.2] - 2026-11-29
- earlier
"""


class Steps(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.calls = self.folder / "calls"
        (self.folder / "bin").mkdir()
        (self.folder / "dist").mkdir()
        for name in ("comeback-cdk-1.2.3.tgz", "comeback-envelope-1.2.3.tgz"):
            (self.folder / "dist" / name).touch()
        (self.folder / "CHANGELOG.md").write_text(CHANGELOG)

    def stand_in(self, program: str, script: str) -> None:
        """Makes a program that runs a script, then records the call. If the script exits, the call is not recorded."""
        file = self.folder / "bin" / program
        file.write_text(f'#!/bin/sh\n{script}\necho "{program} $*" >> "$CALLS"\n')
        file.chmod(0o755)

    def run_step(self, job: str) -> subprocess.CompletedProcess:
        """Runs the last script of a job, as GitHub does."""
        self.assertEqual(WORKFLOW["defaults"], {"run": {"shell": "bash"}})
        step = [step["run"] for step in WORKFLOW["jobs"][job]["steps"] if "run" in step][-1]
        self.calls.write_text("")
        environment = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "CALLS": str(self.calls),
            "GITHUB_REF_NAME": "v1.2.3",
            "GITHUB_REPOSITORY": "owner/name",
            "GITHUB_SERVER_URL": "https://github.com",
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)

    def called(self, job: str) -> list[str]:
        ended = self.run_step(job)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return self.calls.read_text().splitlines()

    def crates_io_has(self, **status: str) -> None:
        answers = "\n".join(f"*/crates/{crate}/1.2.3) echo {code} ;;" for crate, code in status.items())
        asked = 'for url; do :; done\ncase "$*" in *--user-agent*owner/name*) ;; *) echo 403; exit ;; esac\n: > answer\n'
        self.stand_in("curl", f"{asked}case $url in\n{answers}\n*) echo 500 ;;\nesac\nexit")
        self.stand_in("cargo", f"if [ $1 = metadata ]; then echo '{PACKAGES}'; exit; fi")
        self.stand_in("sleep", "exit")

    @unittest.skipUnless(shutil.which("jq"), "the step needs jq")
    def test_published_crates_are_skipped(self):
        publish = "cargo publish --workspace --locked --no-verify"
        for answers, expected in (
            ({"a": "404", "b": "404"}, [publish]),
            ({"a": "200", "b": "404"}, [publish + " --exclude a"]),
            ({"a": "200", "b": "200"}, []),
        ):
            self.crates_io_has(**answers)
            self.assertEqual(self.called("crates"), expected)

    @unittest.skipUnless(shutil.which("jq"), "the step needs jq")
    def test_unclear_answer_of_crates_io_ends_it(self):
        self.crates_io_has(a="404", b="503")
        ended = self.run_step("crates")
        self.assertEqual((ended.returncode, self.calls.read_text()), (1, ""))
        self.assertIn("::error::crates.io answers 503 when asked for b/1.2.3\n", ended.stdout)

    def test_packages_on_npm_are_skipped(self):
        self.stand_in("npm", 'if [ $1 = view ]; then [ "$2" = comeback-cdk@1.2.3 ] && echo 1.2.3 && exit; exit 1; fi')
        self.assertEqual(
            self.called("npm"), ["npm publish ./dist/comeback-envelope-1.2.3.tgz --access public --provenance"]
        )

    def test_wheels_on_pypi_are_skipped(self):
        [publish] = [step for step in WORKFLOW["jobs"]["pypi"]["steps"] if "gh-action-pypi-publish" in step.get("uses", "")]
        self.assertIs(publish["with"]["skip-existing"], True)

    def test_unfinished_release_is_finished(self):
        files = "dist/comeback-cdk-1.2.3.tgz dist/comeback-envelope-1.2.3.tgz"
        self.stand_in("gh", 'if [ "$1 $2" = "release view" ]; then exit 1; fi')
        notes = "--title Comeback 1.2.3 --notes-file notes.md"
        self.assertEqual(self.called("github"), [f"gh release create v1.2.3 --verify-tag {notes} {files}"])
        self.stand_in("gh", 'if [ "$1 $2" = "release view" ]; then exit 0; fi')
        upload = f"gh release upload v1.2.3 --clobber {files}"
        self.assertEqual(self.called("github"), [upload, f"gh release edit v1.2.3 --draft=false {notes}"])

    def test_notes_link_to_the_tag(self):
        self.stand_in("gh", "")
        self.called("github")
        blob = "https://github.com/owner/name/blob/v1.2.3"
        expected = f"- [a page]({blob}/docs/a.md), [its part]({blob}/docs/a.md#part), and [one]({blob}/README.md).\n"
        expected += "- [elsewhere](https://example.com/a) and [above](#changelog).\n"
        self.assertEqual((self.folder / "notes.md").read_text(), expected)
