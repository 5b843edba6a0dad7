"""Builds each published crate from its own tarball, and installs the command from them, without the workspace."""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def main() -> None:
    crates = published()
    # Packs the crates, resolves them among themselves, and builds each from its tarball.
    cargo("package", "--locked", "--allow-dirty", *(argument for name in crates for argument in ("--package", name)))
    with tempfile.TemporaryDirectory(prefix="comeback-crates-") as folder:
        unpack(crates, Path(folder))
        print(install(crates, Path(folder)))


def published() -> dict[str, str]:
    """Returns the version of each package that may be published."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    packages = [package for package in json.loads(listed)["packages"] if package["publish"] != []]
    for package in packages:
        if ROOT / "crates" not in Path(package["manifest_path"]).parents:
            sys.exit(f"error: {package['name']} is not in crates/: it should have `publish = false`")
    return {package["name"]: package["version"] for package in packages}


def unpack(crates: dict[str, str], folder: Path) -> None:
    for name, version in crates.items():
        with tarfile.open(TARGET / "package" / f"{name}-{version}.crate") as archive:
            archive.extractall(folder, filter="data")
        licences = {path.name for path in (folder / f"{name}-{version}").glob("LICENSE-*")}
        if licences != {"LICENSE-MIT", "LICENSE-APACHE"}:
            sys.exit(f"error: the tarball of {name} holds these licences only: {licences or 'none'}")


def install(crates: dict[str, str], folder: Path) -> str:
    """Returns the output of the installed command. The other crates replace those of the registry."""
    paths = {name: folder / f"{name}-{version}" for name, version in crates.items()}
    command = paths.pop("comeback")
    patches = [
        argument
        for name, path in paths.items()
        for argument in ("--config", f"patch.crates-io.{name}.path={json.dumps(str(path))}")
    ]
    # Unoptimized, with the dependencies built above.
    cargo(*patches, "install", "--debug", "--path", str(command), "--root", str(folder), "--target-dir", str(TARGET))
    installed = [str(folder / "bin" / "comeback"), "--version"]
    return subprocess.run(installed, check=True, capture_output=True, text=True).stdout.strip()


def cargo(*arguments: str) -> None:
    print("+ cargo", *arguments, flush=True)
    # Faster, and nobody debugs these builds.
    ended = subprocess.run(["cargo", *arguments], cwd=ROOT, env={**os.environ, "CARGO_PROFILE_DEV_DEBUG": "false"})
    if ended.returncode != 0:
        sys.exit(f"error: cargo {' '.join(arguments)} failed with exit code {ended.returncode}")


if __name__ == "__main__":
    main()
