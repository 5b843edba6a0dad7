"""What is in the programs of a release: an SBOM for each, and the licences of others in one file."""

import json
import shutil
import tomllib
from pathlib import Path
from subprocess import PIPE

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
    """A CycloneDX document for each program. The tool writes one into every package's folder: here, of a copy."""
    copy = TARGET / "sources"
    shutil.rmtree(copy, ignore_errors=True)
    for folder in ["crates", "functions", "fuzz", "tests"]:
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True)
    for file in ["Cargo.toml", "Cargo.lock"]:
        shutil.copy(ROOT / file, copy)
    options = ["--format", "json", "--spec-version", "1.5", "--no-build-deps", "--target", "x86_64-unknown-linux-gnu"]
    run("cargo", "cyclonedx", "--quiet", "--manifest-path", str(copy / "Cargo.toml"), *options)
    written = {name: (copy / folder / f"{name}.cdx.json").read_text() for name, folder in PACKAGES.items()}
    return {name: text.replace(str(copy), "/comeback") for name, text in written.items()}


def licences() -> str:
    """The licences of all that is linked into the programs. Fails if one is not among those that deny.toml allows."""
    with (ROOT / "deny.toml").open("rb") as file:
        allowed = tomllib.load(file)["licenses"]["allow"]
    config = TARGET / "about.toml"
    # Licences lie in a crate's own folder; to look for them in all of its sources takes minutes.
    config.write_text(
        f"accepted = {json.dumps(allowed)}\nmax-depth = 1\n"
        "ignore-build-dependencies = true\nignore-dev-dependencies = true\n"
    )
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
