"""Checks that read a program's ELF file: its machine, its version of glibc, and that it is linked statically."""

from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

NAMES = {"arm64": "EM_AARCH64", "x86_64": "EM_X86_64"}


def check_machine(program: Path, arch: str) -> None:
    with program.open("rb") as file:
        machine = ELFFile(file)["e_machine"]
    if machine != NAMES[arch]:
        raise AssertionError(f"{program} is for {machine}, not for {NAMES[arch]}")


def check_glibc(program: Path, newest: tuple[int, ...]) -> None:
    versions = glibc_versions(program)
    if not versions:
        raise AssertionError(f"{program} names no version of glibc")
    if max(versions) > newest:
        found, allowed = (".".join(map(str, version)) for version in (max(versions), newest))
        raise AssertionError(f"{program} needs glibc {found}, and Amazon Linux 2023 has {allowed}")


def check_static(program: Path) -> None:
    with program.open("rb") as file:
        elf = ELFFile(file)
        kinds = {segment["p_type"] for segment in elf.iter_segments()}
        dynamic = elf.get_section_by_name(".dynamic")
        needed = [tag.needed for tag in dynamic.iter_tags("DT_NEEDED")] if dynamic else []
    if needed or "PT_INTERP" in kinds:
        raise AssertionError(f"{program} is not static: it needs {', '.join(needed) or 'a loader'}")


def glibc_versions(program: Path) -> set[tuple[int, ...]]:
    with program.open("rb") as file:
        sections = [s for s in ELFFile(file).iter_sections() if isinstance(s, GNUVerNeedSection)]
        names = {version.name for s in sections for _, needed in s.iter_versions() for version in needed}
    numbers = (name.removeprefix("GLIBC_") for name in names if name.startswith("GLIBC_"))
    return {tuple(map(int, number.split("."))) for number in numbers if number[0].isdigit()}
