"""Tests the content of `dist/`."""

import json
import re
import subprocess
import tarfile
import unittest
import zipfile
from itertools import product

from support import DIST, ROOT

import command
import elf
from bill import PACKAGES
from build import GLIBC, MACHINES, version
from licences import BLANK, LICENCES
from manifest import MANIFEST, SUMS, digest


class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        if not (DIST / MANIFEST).exists():
            raise AssertionError("there is no release: run `make dist` first")
        cls.manifest = json.loads((DIST / MANIFEST).read_text())
        cls.names = [artefact["name"] for artefact in cls.manifest["artefacts"]]
        cls.archs = [arch for arch in MACHINES if f"retry-handler-{arch}.zip" in cls.names]

    def test_manifest_lists_every_file(self):
        self.assertEqual(self.manifest["version"], version())
        self.assertEqual({*self.names, MANIFEST}, {path.name for path in DIST.iterdir()})
        for artefact in self.manifest["artefacts"]:
            path = DIST / artefact["name"]
            self.assertEqual((path.stat().st_size, digest(path)), (artefact["size"], artefact["sha256"]))

    def test_sums_match_sha256sum(self):
        checked = subprocess.run(["sha256sum", "--check", "--strict", SUMS], cwd=DIST, capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.assertEqual(len(checked.stdout.splitlines()), len(self.names) - 1)

    def test_each_architecture_is_complete(self):
        self.assertTrue(self.archs)
        for arch in self.archs:
            plain = "" if arch == "arm64" else f"-{arch}"
            archive = command.archive(DIST, arch).name
            sboms = [f"{program}-{arch}.cdx.json" for program in PACKAGES]
            expected = [f"flaky-target-{arch}.zip", f"comeback{plain}.yaml", archive, *sboms]
            self.assertEqual([name for name in expected if name not in self.names], [])
            self.assertIn(digest(DIST / archive), (DIST / "install.sh").read_text())

    def test_cloudformation_template_has_this_version(self):
        made = json.loads((DIST / "comeback.cfn.json").read_text())
        self.assertNotIn("Transform", made)
        self.assertTrue(made["Metadata"]["Comeback"].startswith(f"Comeback {version()}."))

    def test_functions_run_on_amazon_linux_2023(self):
        for arch in self.archs:
            for function in ("retry-handler", "flaky-target"):
                with zipfile.ZipFile(DIST / f"{function}-{arch}.zip") as archive:
                    [entry] = archive.infolist()
                    self.assertEqual((entry.filename, entry.external_attr >> 16), ("bootstrap", 0o100755))
                    program = ROOT / "target" / f"{function}-{arch}"
                    program.write_bytes(archive.read(entry))
                elf.check_machine(program, arch)
                elf.check_glibc(program, GLIBC)
                self.assertNotIn(str(ROOT).encode(), program.read_bytes())

    def test_tarballs_hold_static_command_and_pages(self):
        for arch in self.archs:
            folder = ROOT / "target" / "unpacked"
            with tarfile.open(command.archive(DIST, arch)) as archive:
                archive.extractall(folder, filter="data")
            folder /= command.name(arch)
            elf.check_machine(folder / "bin" / "comeback", arch)
            elf.check_static(folder / "bin" / "comeback")
            page = (folder / "share/man/man1/comeback-doctor.1").read_text()
            self.assertIn("comeback\\-doctor", page)
            for place in ("bash-completion/completions/comeback", "zsh/site-functions/_comeback"):
                self.assertIn("doctor", (folder / "share" / place).read_text())
            documents = {path.name for path in (folder / "share/doc/comeback").iterdir()}
            self.assertEqual(documents, {"LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY-LICENCES.txt"})

    def test_sboms_name_every_licensed_crate(self):
        """The SBOMs also list optional crates that cargo resolves but does not build."""
        listed = set()
        for program, arch in product(PACKAGES, self.archs):
            sbom = json.loads((DIST / f"{program}-{arch}.cdx.json").read_text())
            self.assertEqual(sbom["metadata"]["component"]["name"], program)
            self.assertNotIn(str(ROOT), json.dumps(sbom))
            listed |= {f"{it['name']} {it['version']}" for it in sbom["components"]}
        heads = re.findall("(?m)^={100}\nOf (.*)$", (DIST / LICENCES).read_text())
        licensed = {crate for head in heads for crate in head.split(", ")}
        self.assertGreater(len(licensed), 100)
        self.assertEqual(licensed - listed, {"musl"})

    def test_licences_come_from_the_crates(self):
        text = (DIST / LICENCES).read_text()
        self.assertIsNone(BLANK.search(text))
        # The binaries contain C code for musl, memory allocation and elliptic curves. These are the copyright holders.
        for holder in ("Rich Felker", "Microsoft Corporation", "the fiat-crypto authors"):
            self.assertIn(holder, text)
