#!/usr/bin/env python3
"""Plants bugs in a copy of the tree, one at a time, and shows which tests catch each. Every patch beside this file is one.

    check.py            all of it: a few minutes
    check.py --planted  only that each patch still applies

Fails if a bug is caught by no test, cannot be planted, or does not compile; or if the tests fail without one.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PATCHES = sorted(HERE.glob("*.patch"))
SCRATCH = ROOT / "target" / "mutation"
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".tools", "target", "node_modules", "cdk.out", ".aws-sam", "out", "corpus", "artifacts"
)
SUITES = {
    "engine": ["--package", "comeback-engine", "--test", "engine"],
    "chaos": ["--package", "comeback-timelapse", "--test", "runs", "chaos::"],
    "moves": ["--package", "comeback-timelapse", "--test", "runs", "moves::"],
    "pauses": ["--package", "comeback-timelapse", "--test", "runs", "pauses::"],
}


def main():
    problems = [problem for problem in map(cannot_be_planted, PATCHES) if problem]
    if problems:
        sys.exit("\n".join(problems))
    if sys.argv[1:] == ["--planted"]:
        print(f"{len(PATCHES)} bugs can be planted")
        return
    tree = SCRATCH / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT, tree, symlinks=True, ignore=NOT_COPIED)
    failed = [name for suite in SUITES for name in failed_tests(tree, suite)]
    if failed:
        sys.exit(f"these tests fail without any bug planted: {', '.join(failed)}")
    escaped = [patch.stem for patch in PATCHES if not is_caught(tree, patch)]
    if escaped:
        sys.exit(f"no test catches: {', '.join(escaped)}")
    print(f"all {len(PATCHES)} bugs are caught")


def cannot_be_planted(patch):
    applied = apply(ROOT, patch, "--check")
    if applied.returncode == 0:
        return None
    name = patch.relative_to(ROOT)
    return (
        f"{name} no longer applies: {applied.stderr.strip()}\n"
        f"  make its change by hand in the code of today, run `git diff -- crates > {name}`, and undo the change"
    )


def is_caught(tree, patch):
    if apply(tree, patch).returncode != 0:
        sys.exit(f"{patch.name} applies to the tree but not to its copy")
    try:
        caught = {suite: failed_tests(tree, suite) for suite in SUITES}
    finally:
        apply(tree, patch, "--reverse")
    print(f"{patch.stem.replace('-', ' ')}:", flush=True)
    for suite, tests in caught.items():
        shown = ", ".join(tests[:3]) + (", …" if len(tests) > 3 else "")
        print(f"  {suite:6} {len(tests):3} tests fail{': ' + shown if tests else ''}", flush=True)
    return any(caught.values())


def apply(tree, patch, *options):
    """One line of context is enough, so that a change close by does not matter."""
    # Else git would look for the copy's files in the repository around it.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    command = ["git", "apply", "-C1", *options, str(patch)]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)


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
