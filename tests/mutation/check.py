#!/usr/bin/env python3
"""Plants ten bugs in a copy of the tree, one at a time, and shows which tests catch each.

    check.py            all of it: a few minutes
    check.py --planted  only that each bug can still be planted where it belongs

Fails if a bug is caught by no test, cannot be planted, or does not compile; or if the tests fail without one.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from mutants import MUTANTS

ROOT = Path(__file__).resolve().parents[2]
SCRATCH = ROOT / "target" / "mutation"
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".tools", "target", "node_modules", "cdk.out", ".aws-sam", "out", "corpus", "artifacts"
)
SUITES = {
    "engine": ["--package", "comeback-engine", "--test", "engine"],
    "chaos": ["--package", "comeback-timelapse", "--test", "chaos"],
}


def main():
    problems = [problem for problem in map(cannot_be_planted, MUTANTS) if problem]
    if problems:
        sys.exit("\n".join(problems))
    if sys.argv[1:] == ["--planted"]:
        print(f"{len(MUTANTS)} bugs can be planted")
        return
    tree = SCRATCH / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT, tree, symlinks=True, ignore=NOT_COPIED)
    failed = [name for suite in SUITES for name in failed_tests(tree, suite)]
    if failed:
        sys.exit(f"these tests fail without any bug planted: {', '.join(failed)}")
    escaped = [mutant.bug for mutant in MUTANTS if not is_caught(tree, mutant)]
    if escaped:
        sys.exit(f"no test catches: {', '.join(escaped)}")
    print(f"all {len(MUTANTS)} bugs are caught")


def cannot_be_planted(mutant):
    found = (ROOT / mutant.file).read_text().count(mutant.before)
    if found != 1:
        return f"{mutant.bug}: {mutant.file} has {found} times instead of once:\n  {mutant.before.strip()}"
    return None


def is_caught(tree, mutant):
    file = tree / mutant.file
    sound = file.read_text()
    file.write_text(sound.replace(mutant.before, mutant.after))
    try:
        caught = {suite: failed_tests(tree, suite) for suite in SUITES}
    finally:
        file.write_text(sound)  # anew, so that cargo sees a change
    print(f"{mutant.bug}:", flush=True)
    for suite, tests in caught.items():
        shown = ", ".join(tests[:3]) + (", …" if len(tests) > 3 else "")
        print(f"  {suite:6} {len(tests):3} tests fail{': ' + shown if tests else ''}", flush=True)
    return any(caught.values())


def failed_tests(tree, suite):
    """The names of the suite's tests that fail."""
    command = ["cargo", "test", "--quiet", "--no-fail-fast", *SUITES[suite]]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(SCRATCH / "build"), "CARGO_TERM_COLOR": "never"}
    run = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=900)
    failed = sorted(set(re.findall(r"^    (\S+)$", run.stdout.rpartition("\nfailures:\n")[2], re.MULTILINE)))
    if run.returncode != 0 and not failed:
        sys.exit(f"{' '.join(command)} did not get as far as its tests:\n{run.stdout}{run.stderr}")
    return failed


main()
