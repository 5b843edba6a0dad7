"""Writes a software bill of materials (SBOM) for each program of a release."""

import shutil
from pathlib import Path

import tomlkit

from build import FUNCTIONS, ROOT, TARGET, gnu, musl, run
from licences import LICENCES, licences

PACKAGES = {name: f"functions/{name}" for name in FUNCTIONS} | {"comeback": "crates/cli"}


def write(dist: Path, archs: list[str]) -> None:
    for name, folder in PACKAGES.items():
        copy = sources(folder)
        for arch in archs:
            (dist / f"{name}-{arch}.cdx.json").write_text(sbom(copy, folder, name, arch))
    (dist / LICENCES).write_text(licences([*PACKAGES.values()], archs))


def sbom(copy: Path, folder: str, name: str, arch: str) -> str:
    """Returns a program's CycloneDX document. The tool writes one into the folder of every package."""
    target = musl(arch) if name == "comeback" else gnu(arch)
    options = ["--format", "json", "--spec-version", "1.5", "--no-build-deps", "--target", target]
    run("cargo", "cyclonedx", "--quiet", "--manifest-path", str(copy / "Cargo.toml"), *options)
    return (copy / folder / f"{name}.cdx.json").read_text().replace(str(copy), "/comeback")


def sources(package: str) -> Path:
    """Copies the workspace, with this package as its only member. In the full workspace, cargo would also enable
    features that only other members and tests need."""
    copy = TARGET / "sources"
    shutil.rmtree(copy, ignore_errors=True)
    for folder in ["crates", "functions"]:
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True)
    shutil.copy(ROOT / "Cargo.lock", copy)
    workspace = tomlkit.parse((ROOT / "Cargo.toml").read_text())
    for key in ["exclude", "default-members"]:
        del workspace["workspace"][key]
    workspace["workspace"]["members"] = [package]
    (copy / "Cargo.toml").write_text(tomlkit.dumps(workspace))
    for manifest in copy.glob("*/*/Cargo.toml"):
        parsed = tomlkit.parse(manifest.read_text())
        parsed.pop("dev-dependencies", None)
        manifest.write_text(tomlkit.dumps(parsed))
    return copy
