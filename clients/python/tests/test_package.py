"""Builds the wheel, and checks it as its users see it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[1]
UV = HERE.parents[1] / ".tools/uv/bin/uv"

USER = """
from comeback_envelope import RetryAfter, open_event

payload, attempt, key = open_event({}, "a1")
reveal_type(attempt)
RetryAfter([900])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    # A build leaves files next to the source, so the test builds a copy.
    source = shutil.copytree(HERE, tmp_path_factory.mktemp("package") / "source")
    options = ["--quiet", "--wheel", "--offline", "--no-build-isolation", "--python", sys.executable]
    subprocess.run([UV, "build", *options], cwd=source, check=True)
    (built,) = source.glob("dist/*.whl")
    return zipfile.ZipFile(built)


def test_wheel_holds_module_types_and_licences(wheel: zipfile.ZipFile) -> None:
    about = "comeback_envelope-0.1.0.dist-info/"
    assert sorted(wheel.namelist()) == sorted(
        ["comeback_envelope/__init__.py", "comeback_envelope/py.typed"]
        + [about + name for name in ("METADATA", "RECORD", "WHEEL", "top_level.txt")]
        + [about + "licenses/" + name for name in ("LICENSE-APACHE", "LICENSE-MIT")]
    )
    module = wheel.read("comeback_envelope/__init__.py")
    assert module == (HERE / "comeback_envelope" / "__init__.py").read_bytes()
    assert b"Requires-Dist" not in wheel.read(about + "METADATA")


def test_types_are_visible_to_users(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    (tmp_path / "user.py").write_text(USER)
    cache = ["--cache-dir", str(tmp_path / "cache")]
    check = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *cache, "user.py"]
    found = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True).stdout
    lines = [line.partition(": ")[2] for line in found.splitlines()]
    assert lines[0].startswith('note: Revealed type is "') and "int" in lines[0], found
    assert lines[1].startswith('error: Argument 1 to "RetryAfter" has incompatible type "list[int]"'), found
    assert len(lines) == 2, found
