"""Shared by the packaging tests. Run them in this folder: `python -m unittest`."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"

sys.path.insert(0, str(ROOT / "packaging"))
# As release.sh does.
os.environ["SOURCE_DATE_EPOCH"] = "315532800"
