#!/usr/bin/env python3
"""Plants bugs in a copy of the tree, one at a time, and shows the tests that catch each. Each patch in this folder is a bug.

A patch may begin with lines like `Breaks: a chain has at most MAX_RETRIES retries`. It counts as caught once simulations have
reported each of these invariants as broken. For each invariant, at least one patch has such a line.

    check.py [NAME...]  plants all bugs, or those whose names contain a NAME; all take about forty minutes
    check.py --planted  checks only that each patch still applies, and that each invariant has one

Fails if no test catches a bug, if a bug cannot be planted or does not compile, or if the tests fail without one.
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
# Test suites, the cheapest first. A suite runs only for bugs that the suites before it have not caught.
SUITES = {
    "engine": ["engine"],
    "moves": ["runs", "moves::"],
    "pauses": ["runs", "pauses::"],
    "retries": ["runs", "retries::"],
    "limits": ["runs", "every_limit"],
    "chaos": ["runs", "chaos::"],
    "operators": ["operators"],
}


def main():
    problems = [problem for problem in map(cannot_be_planted, PATCHES) if problem] + unmatched_invariants()
    if problems:
        sys.exit("\n".join(problems))
    names = sys.argv[1:]
    if names == ["--planted"]:
        print(f"{len(PATCHES)} bugs can be planted")
        return
    planted = [patch for patch in PATCHES if not names or any(name in patch.stem for name in names)]
    tree = SCRATCH / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    # The copies get new modification times. With the old ones, cargo would reuse a build that contains a planted bug.
    shutil.copytree(ROOT, tree, symlinks=True, ignore=NOT_COPIED, copy_function=shutil.copy)
    failed = [name for suite in SUITES for name in failed_tests(tree, suite)[0]]
    if failed:
        sys.exit(f"these tests fail without any bug planted: {', '.join(failed)}")
    escaped = [patch.stem for patch in planted if not is_caught(tree, patch)]
    if escaped:
        sys.exit(f"no test catches: {', '.join(escaped)}")
    print(f"all {len(planted)} bugs are caught")


def cannot_be_planted(patch):
    applied = apply(ROOT, patch, "--check")
    if applied.returncode == 0:
        return None
    name = patch.relative_to(ROOT)
    return (
        f"{name} no longer applies: {applied.stderr.strip()}\n"
        f"  make its change by hand, run `git diff -- crates > {name}`, undo the change, and put back the lines `Breaks: …`"
    )


def broken_by(patch):
    """Returns the invariants that the patch names: those that a simulation must report as broken by the bug."""
    return set(re.findall(r"^Breaks: (.+)$", patch.read_text(), re.MULTILINE))


def unmatched_invariants():
    text = (ROOT / "crates/timelapse/src/check.rs").read_text()
    invariants = set(re.findall(r'^    \w+ = "(.+)",$', re.sub(r"\\\n *", "", text), re.MULTILINE))
    broken = set().union(*map(broken_by, PATCHES))
    no_bug = [f"no bug is planted that breaks: {invariant}" for invariant in sorted(invariants - broken)]
    return no_bug + [f"not an invariant: {name}" for name in sorted(broken - invariants)]


def is_caught(tree, patch):
    if apply(tree, patch).returncode != 0:
        sys.exit(f"{patch.name} applies to the tree but not to its copy")
    missing = broken_by(patch)
    # The engine's tests check no invariants.
    suites = [suite for suite in SUITES if not missing or suite != "engine"]
    try:
        for suite in suites:
            tests, output = failed_tests(tree, suite)
            missing -= set(re.findall(r"broken with seed \d+ at \S+: (.+)$", output, re.MULTILINE))
            if tests and not missing:
                shown = ", ".join(tests[:3]) + (", …" if len(tests) > 3 else "")
                print(f"{patch.stem.replace('-', ' ')}: {len(tests)} tests of {suite} fail: {shown}", flush=True)
                return True
    finally:
        apply(tree, patch, "--reverse")
    return False


def apply(tree, patch, *options):
    """Applies a patch with one line of context, so that a nearby change does not matter."""
    # Without this variable, git would treat the copied tree as part of the repository that contains it.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    command = ["git", "apply", "-C1", *options, str(patch)]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)


def failed_tests(tree, suite):
    # The tests are built with the Makefile's options and in its target folder, which already contains the dependencies.
    command = ["cargo", "test", "--quiet", "--workspace", "--all-features", "--test", *SUITES[suite]]
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    environment = {**os.environ, "CARGO_TARGET_DIR": target, "CARGO_TERM_COLOR": "never"}
    # The copy and the checkout share a target folder. A different debug setting keeps their builds apart.
    # Otherwise, cargo could mistake a build with a planted bug for the checkout's own.
    environment["CARGO_PROFILE_DEV_DEBUG"] = "none"
    run = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=900)
    failed = sorted(set(re.findall(r"^    (\S+)$", run.stdout.rpartition("\nfailures:\n")[2], re.MULTILINE)))
    if run.returncode != 0 and not failed:
        sys.exit(f"{' '.join(command)} did not get as far as its tests:\n{run.stdout}{run.stderr}")
    return failed, run.stdout + run.stderr


main()
