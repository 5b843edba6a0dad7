"""Builds the programs of a release."""

import platform
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The target folder that release.sh sets for cargo.
TARGET = ROOT / "target" / "dist"

# The template's name for each architecture, and Rust's name for it.
MACHINES = {"arm64": "aarch64", "x86_64": "x86_64"}

# The version of glibc in Amazon Linux 2023, which is the base of the runtime provided.al2023.
GLIBC = (2, 34)

FUNCTIONS = ["retry-handler", "flaky-target"]


class Refused(Exception):
    """Raised if a release cannot be built. The text gives the reason."""


def version() -> str:
    with (ROOT / "Cargo.toml").open("rb") as file:
        return tomllib.load(file)["workspace"]["package"]["version"]


def functions(arch: str) -> dict[str, Path]:
    """Builds the Lambda functions for an architecture and returns their programs."""
    need_target(gnu(arch))
    folder = TARGET / "lambda" / arch
    packages = [argument for name in FUNCTIONS for argument in ("-p", name)]
    target = ["--target", ".".join([gnu(arch), *map(str, GLIBC)]), "--lambda-dir", str(folder)]
    run("cargo", "lambda", "build", "--release", "--locked", *target, *packages)
    return {name: folder / name / "bootstrap" for name in FUNCTIONS}


def command(arch: str) -> Path:
    """Builds the `comeback` command for an architecture, linked statically."""
    zigbuild(arch, "--bin", "comeback")
    return output(arch) / "comeback"


def manual(folder: Path) -> None:
    """Writes the command's manual pages and completions, using a program built for this machine."""
    arch = next((arch for arch, machine in MACHINES.items() if machine == platform.machine()), None)
    if platform.system() != "Linux" or arch is None:
        raise Refused(f"a release is made on Linux, on x86_64 or aarch64; this is {platform.platform()}")
    zigbuild(arch, "--example", "manual")
    run(str(output(arch) / "examples" / "manual"), str(folder))


def zigbuild(arch: str, *wanted: str) -> None:
    """Builds with Zig, which includes a C compiler and musl for each architecture."""
    need_target(musl(arch))
    run("cargo", "zigbuild", "--profile", "dist", "--locked", "--target", musl(arch), "-p", "comeback", *wanted)


def gnu(arch: str) -> str:
    """Returns the functions' Rust target."""
    return f"{MACHINES[arch]}-unknown-linux-gnu"


def musl(arch: str) -> str:
    """Returns the Rust target of static programs."""
    return f"{MACHINES[arch]}-unknown-linux-musl"


def output(arch: str) -> Path:
    return TARGET / musl(arch) / "dist"


def need_target(triple: str) -> None:
    """Installs Rust's standard library for a target. cargo-lambda would install it for Rust's newest version only."""
    run("rustup", "target", "add", triple)


def run(*command: str, stdout: int | None = None) -> str:
    """Runs a tool in the repository's root. With `stdout=PIPE`, returns the tool's output."""
    print("+", *command, flush=True)
    ended = subprocess.run(command, cwd=ROOT, stdout=stdout, text=True)
    if ended.returncode != 0:
        raise Refused(f"{' '.join(command)} failed with exit code {ended.returncode}")
    return ended.stdout or ""
