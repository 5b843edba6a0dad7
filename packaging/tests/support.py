"""Definitions shared by the packaging tests. Run the tests in this folder: `python -m unittest`."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"

sys.path.insert(0, str(ROOT / "packaging"))
# release.sh sets the same value.
os.environ["SOURCE_DATE_EPOCH"] = "315532800"
