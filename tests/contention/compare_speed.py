#!/usr/bin/env python3
"""Compares the speed of `comeback contention` with that of the Python program in this folder.

The two programs take turns at running the same cells, each time in a new process. Only the best
time of each counts, which leaves out delays caused by other work. The default is a part of the
published grid with 20 runs per point; `--whole-grid` is the whole grid with 100 runs per point,
which takes Python over a minute. Also checks that `--reference` prints what the Python program
prints. Needs only Python 3 and its standard library.
"""

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = pathlib.Path(__file__).with_name("reference_model.py")
REQUIRED = 40


def comeback():
    build = ["cargo", "build", "--release", "--package", "comeback", "--message-format", "json"]
    messages = subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout.splitlines()
    paths = [message.get("executable") for message in map(json.loads, messages)]
    return next(path for path in reversed(paths) if path)


def timed(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, output


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--whole-grid", action="store_true", help="10 to 190 clients, 100 runs a point")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is run (default: 3)")
    args = parser.parse_args()
    cells = ["--seed", "42", "--runs", "100"] if args.whole_grid else (
        ["--seed", "42", "--runs", "20", "--clients", "10,50,100,150,190"]
    )
    contention = [comeback(), "contention", "--json", *cells]
    contenders = {
        "python": [sys.executable, str(MODEL), *cells],
        "comeback contention --reference": [*contention, "--reference"],
        "comeback contention": contention,
    }
    best = {name: [float("inf")] * 2 for name in contenders}
    outputs = {}
    for _ in range(args.rounds):
        for name, command in contenders.items():
            *times, outputs[name] = timed(command)
            best[name] = [min(pair) for pair in zip(best[name], times)]
    print(f"{' '.join(cells)}; best of {args.rounds}")
    print(f"{'':30} {'wall':>10} {'faster':>9} {'processor':>12} {'less':>9}")
    for name, (wall, processor) in best.items():
        faster, less = (python / own for python, own in zip(best["python"], best[name]))
        print(f"{name:30} {wall:8.3f} s {faster:7.1f} x {processor:10.3f} s {less:7.1f} x")
    if outputs["python"] != outputs["comeback contention --reference"]:
        sys.exit("--reference does not print what the Python program prints")
    if best["python"][0] < REQUIRED * best["comeback contention"][0]:
        sys.exit(f"comeback contention is not {REQUIRED} times as fast")


if __name__ == "__main__":
    main()
