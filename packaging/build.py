"""Builds the programs of a release. The same source gives the same bytes in any folder."""

import os
import platform
import shutil
import subprocess
import tomllib
from pathlib import Path

from elf import check_glibc, check_machine, check_static
from refused import Refused

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "target" / "dist"

# Architectures: the template's names, and Rust's.
MACHINES = {"arm64": "aarch64", "x86_64": "x86_64"}

# The version in Amazon Linux 2023, on which provided.al2023 runs.
GLIBC = (2, 34)

FUNCTIONS = ["retry-handler", "flaky-target"]


def version() -> str:
    """Returns the workspace's version, which all packages share."""
    with (ROOT / "Cargo.toml").open("rb") as file:
        return tomllib.load(file)["workspace"]["package"]["version"]


def epoch() -> int:
    """Returns the time stamp of all files. A zip file cannot hold one before 1980."""
    return int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))


def functions(arch: str) -> dict[str, Path]:
    """Builds the Lambda functions for an architecture and returns their programs."""
    triple = gnu(arch)
    need_target(triple)
    folder = TARGET / "lambda" / arch
    packages = [argument for name in FUNCTIONS for argument in ("-p", name)]
    glibc = ".".join(map(str, GLIBC))
    target = ["--target", f"{triple}.{glibc}", "--lambda-dir", str(folder)]
    run("cargo", "lambda", "build", "--release", "--locked", *target, *packages)
    programs = {name: folder / name / "bootstrap" for name in FUNCTIONS}
    for program in programs.values():
        check_machine(program, arch)
        check_glibc(program, GLIBC)
    return programs


def command(arch: str) -> Path:
    """Builds the `comeback` command for an architecture, linked statically."""
    zigbuild(arch, "--bin", "comeback")
    program = output(arch) / "comeback"
    check_machine(program, arch)
    check_static(program)
    return program


def manual(folder: Path) -> None:
    """Writes the command's manual pages and completions, using a program built for this machine."""
    arch = next((arch for arch, machine in MACHINES.items() if machine == platform.machine()), None)
    if platform.system() != "Linux" or arch is None:
        raise Refused(f"a release is made on Linux, on x86_64 or aarch64; this is {platform.platform()}")
    zigbuild(arch, "--example", "manual")
    run(str(output(arch) / "examples" / "manual"), str(folder))


def zigbuild(arch: str, *wanted: str) -> None:
    """Runs Zig, which has a C compiler and musl for each architecture."""
    need_target(musl(arch))
    run("cargo", "zigbuild", "--profile", "dist", "--locked", "--target", musl(arch), "-p", "comeback", *wanted)


def gnu(arch: str) -> str:
    """Returns Rust's name of the functions' target."""
    return f"{MACHINES[arch]}-unknown-linux-gnu"


def musl(arch: str) -> str:
    """Returns Rust's name of the target for static programs."""
    return f"{MACHINES[arch]}-unknown-linux-musl"


def output(arch: str) -> Path:
    return TARGET / musl(arch) / "dist"


def need_target(triple: str) -> None:
    """Installs Rust's standard library for a target, if it is missing."""
    asked = ["rustc", "--print", "target-libdir", "--target", triple]
    found = subprocess.run(asked, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if found.returncode == 0 and Path(found.stdout.strip()).is_dir():
        return
    if not shutil.which("rustup"):
        raise Refused(f"rust has no standard library for {triple}, and no rustup is here to install it")
    if subprocess.run(["rustup", "target", "add", triple], cwd=ROOT).returncode != 0:
        raise Refused(
            f"rustup cannot install the target {triple}: install it by other means, or leave its architecture out of ARCHS"
        )


def run(*command: str, stdout: int | None = None) -> str:
    """Runs a tool in the repository's root. Returns its output if asked to capture it."""
    print("+", *command, flush=True)
    ended = subprocess.run(command, cwd=ROOT, env=environment(), stdout=stdout, text=True)
    if ended.returncode != 0:
        raise Refused(f"{' '.join(command)} failed with exit code {ended.returncode}")
    return ended.stdout or ""


def environment() -> dict[str, str]:
    """Returns the variables of a build. They keep this machine's folders out of the programs."""
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    names = {str(ROOT): "/comeback", str(cargo): "/cargo"}
    return os.environ | {
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(f"--remap-path-prefix={path}={name}" for path, name in names.items()),
        "CARGO_TARGET_DIR": str(TARGET),
        "CFLAGS": " ".join(f"-ffile-prefix-map={path}={name}" for path, name in names.items()),
        "SOURCE_DATE_EPOCH": str(epoch()),
    }
