#!/usr/bin/env python3
"""Times the stages of `make test`, some of which run side by side.

    stage.py begin                 forgets an earlier run
    stage.py run NAME COMMAND...   runs a command and records its time and its failed tests
    stage.py table                 prints the time and the share of each stage, and the failed tests
"""

import os
import subprocess
import sys
import time
from pathlib import Path

NOTES = Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "stages.tsv"


def begin():
    NOTES.parent.mkdir(parents=True, exist_ok=True)
    NOTES.write_text(f"{time.time():.1f}\tbegin\n")


def run(name, *command):
    start = time.monotonic()
    failed = []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace")
    for line in process.stdout:
        print(line, end="", flush=True)
        if line.startswith("test ") and line.rstrip().endswith("FAILED"):
            failed.append(line.split()[1])
    status = process.wait()
    with NOTES.open("a") as notes:
        notes.write("\t".join([f"{time.monotonic() - start:.1f}", name, *failed]) + "\n")
    sys.exit(status)


def table():
    (begun, _), *stages = [line.split("\t") for line in NOTES.read_text().splitlines()]
    total = time.time() - float(begun)
    print("\nwhere the time went")
    for seconds, name, *_ in stages + [[total, "in all"]]:
        minutes, rest = divmod(round(float(seconds)), 60)
        print(f"  {minutes:3} min {rest:2} s  {float(seconds) / max(total, 0.1):4.0%}  {name}")
    for _, name, *failed in stages:
        for test in failed:
            print(f"  FAILED  {test} ({name})")


{"begin": begin, "run": run, "table": table}[sys.argv[1]](*sys.argv[2:])
