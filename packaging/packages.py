"""Builds the npm packages and the Python wheels, and puts them into a folder that holds the retry handler's zip files.

The sources of each package are copied first, so that the build leaves nothing in them.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INFRA = ROOT / "infra"
CLIENTS = ROOT / "clients"
JSII = INFRA / "node_modules/.bin"
# Builds the wheels, with the setuptools of this Python interpreter.
UV = ROOT / ".tools/uv/bin/uv"
PYTHON = ROOT / ".tools/clients/bin/python"

ARCHITECTURES = ("arm64", "x86_64")

# The licences of everything linked into the retry handler.
LICENCES = "THIRD-PARTY-LICENCES.txt"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help=f"holds retry-handler-ARCHITECTURE.zip and {LICENCES}, and receives the packages")
    parser.add_argument(
        "--architecture",
        action="append",
        choices=ARCHITECTURES,
        help="put only this architecture's retry handler into comeback-cdk; may be repeated",
    )
    parser.add_argument("--only-npm-construct", action="store_true", help="build comeback-cdk for npm, and nothing else")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    handlers = [made(folder / f"retry-handler-{name}.zip") for name in arguments.architecture or ARCHITECTURES]
    licences = made(folder / LICENCES)
    with tempfile.TemporaryDirectory() as scratch:
        construct = compiled(handlers, licences, Path(scratch) / "comeback-cdk")
        npm(construct, folder)
        if not arguments.only_npm_construct:
            python_construct(construct, Path(scratch) / "python", folder)
            clients(Path(scratch), folder)


def made(file: Path) -> Path:
    if not file.is_file():
        sys.exit(
            f"{file} does not exist; run `make dist`, which builds it, or name the architectures that are there "
            "with --architecture"
        )
    return file


def compiled(handlers: list[Path], licences: Path, package: Path) -> Path:
    """Builds the construct: compiled for npm and described for other languages (`.jsii`)."""
    package.mkdir()
    for name in ("package.json", "README.md"):
        shutil.copy(INFRA / name, package)
    for name in ("src", "rosetta"):
        shutil.copytree(INFRA / name, package / name)
    shutil.copy(ROOT / "LICENSE-APACHE", package / "LICENSE")
    shutil.copy(licences, package)
    (package / "node_modules").symlink_to(INFRA / "node_modules")
    (package / "handler").mkdir()
    for zip_file in handlers:
        shutil.copy(zip_file, package / "handler")
    # The package is compiled against the oldest supported aws-cdk-lib, not against the version that the tests use.
    run([JSII / "jsii", "--silence-warnings", "metadata/missing-dev-dependency"], package)
    return package


def npm(package: Path, folder: Path) -> None:
    run(["npm", "pack", "--silent", "--pack-destination", folder], package)


def python_construct(package: Path, generated: Path, folder: Path) -> None:
    tablet = generated.with_name("tablet.json")
    # Only a compiled snippet tells jsii-rosetta whether an object literal becomes a dictionary or keyword arguments.
    run([JSII / "jsii-rosetta", "extract", "--compile", "--strict", "--fail", "--output", tablet, package], package)
    snippets = ["--rosetta-tablet", tablet, "--rosetta-unknown-snippets", "fail"]
    run([JSII / "jsii-pacmak", "--target", "python", "--code-only", "--outdir", generated, *snippets], package)
    wheel(generated / "python", folder)


def clients(scratch: Path, folder: Path) -> None:
    for name in ("node", "node-sqs"):
        package = shutil.copytree(CLIENTS / name, scratch / name, ignore=shutil.ignore_patterns("node_modules"))
        for licence in ("LICENSE-APACHE", "LICENSE-MIT"):
            shutil.copy(ROOT / licence, package)
        run(["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", folder], package)
    # Replaces the symbolic links to the licences with the files. The copies get their modes, which a wheel keeps, from
    # the umask that release.sh sets.
    for name in ("python", "python-sqs"):
        wheel(shutil.copytree(CLIENTS / name, scratch / f"client-{name}", copy_function=shutil.copyfile), folder)


def wheel(source: Path, folder: Path) -> None:
    options = ["--wheel", "--offline", "--no-build-isolation", "--no-create-gitignore", "--python", PYTHON]
    run([UV, "build", *options, "--out-dir", folder], source)


def run(command: list[str | Path], folder: Path) -> None:
    """Runs a command, and shows its output only on failure, because jsii warns at length about old Node versions."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}")


if __name__ == "__main__":
    main()
