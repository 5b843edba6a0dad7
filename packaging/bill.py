"""What is in the programs of a release: an SBOM for each, and the licences of others in one file."""

import json
import shutil
from pathlib import Path
from subprocess import PIPE

import tomlkit

from build import FUNCTIONS, ROOT, TARGET, run

LICENCES = "THIRD-PARTY-LICENCES.txt"

# The package of each program, and where it lies.
PACKAGES = {name: f"functions/{name}" for name in FUNCTIONS} | {"comeback": "crates/cli"}


def write(dist: Path) -> None:
    """Writes the SBOMs and the licences into a release."""
    for name, text in sboms().items():
        (dist / f"{name}.cdx.json").write_text(text)
    (dist / LICENCES).write_text(licences())


def sboms() -> dict[str, str]:
    """A CycloneDX document for each program."""
    options = ["--format", "json", "--spec-version", "1.5", "--no-build-deps", "--target", "x86_64-unknown-linux-gnu"]
    written = {}
    for name, folder in PACKAGES.items():
        copy = sources(folder)
        # It writes one into every package's folder.
        run("cargo", "cyclonedx", "--quiet", "--manifest-path", str(copy / "Cargo.toml"), *options)
        written[name] = (copy / folder / f"{name}.cdx.json").read_text().replace(str(copy), "/comeback")
    return written


def sources(package: str) -> Path:
    """A copy of the workspace with one package and those that it needs. In the whole one, cargo turns on each feature that
    another member or a test asks for."""
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


def licences() -> str:
    """The licences of all that is linked into the programs. Fails if one is not among those that deny.toml allows."""
    policy = tomlkit.parse((ROOT / "deny.toml").read_text())["licenses"]
    settings = {
        "accepted": policy["allow"],
        # Licences lie in a crate's own folder; to look for them in all of its sources takes minutes.
        "max-depth": 1,
        "ignore-build-dependencies": True,
        "ignore-dev-dependencies": True,
    } | {exception["crate"]: {"accepted": exception["allow"]} for exception in policy["exceptions"]}
    config = TARGET / "about.toml"
    config.write_text(tomlkit.dumps(settings))
    # By the text, in order: a set of "name version".
    users: dict[tuple[str, str], set[str]] = {}
    for folder in PACKAGES.values():
        # Offline, it believes what the crates themselves hold.
        options = ["--format", "json", "--frozen", "--fail", "--target", "x86_64-unknown-linux-gnu"]
        manifest = str(ROOT / folder / "Cargo.toml")
        command = ["cargo", "about", "generate", *options, "--config", str(config), "--manifest-path", manifest]
        for licence in json.loads(run(*command, stdout=PIPE))["licenses"]:
            crates = (use["crate"] for use in licence["used_by"])
            others = {f"{crate['name']} {crate['version']}" for crate in crates if crate["source"]}
            if others:
                users.setdefault((licence["id"], licence["text"]), set()).update(others)
    return "\n".join(section(licence, text, crates) for (licence, text), crates in sorted(users.items()))


def section(licence: str, text: str, crates: set[str]) -> str:
    line = "=" * 100
    return f"{line}\n{licence}, of {', '.join(sorted(crates))}\n{line}\n\n{text.strip()}\n"
