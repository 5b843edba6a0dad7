"""Checks facts that no emulator shows, on a real AWS account. `make verify-aws` runs this; docs/verify-aws.md explains it.

| file | holds |
|---|---|
| `account.py` | the account that the credentials name, and its services |
| `run.py` | one run: its name, its waits, and how it is stopped |
| `make.py` | queues, functions and the role, each named after the run |
| `release.py`, `samconfig.toml` | the stack of the release |
| `clean.py` | removes everything with the run's name |
| `facts.py` | facts, what was observed, and the table of both |
| `checks/` | the questions, one file each |
| `functions/` | the code of the functions that the run creates |
| `tests/` | the tests that need no server: `python -m unittest` in that folder |
"""

import argparse
import re
import secrets
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import checks
import facts
import release
from account import Account, Refused
from clean import clean
from run import Run, Stopped

WARNING = """\
Account {number} of {owner}, region {region}. This makes a stack, ten functions, 13 queues, a role and a bucket,
all named {name}, and removes them at the end.
It takes about {time} and costs less than 0.10 USD. Use an account for tests.
"""


def main():
    asked = arguments()
    if asked.list:
        print(facts.questions(checks.ALL))
        return 0
    account = Account()
    if asked.clean:
        return removed(Run(account, asked.clean))
    run = Run(account, secrets.token_hex(4), with_hours=asked.hours)
    confirm(run, asked.yes)
    run.stop_at_signals()
    try:
        rows = verified(run, asked)
        print(facts.table(rows))
        outcome = 0 if all(row.is_fine() for row in rows) else 3
    except Stopped:
        print("interrupted: removing what was made", file=sys.stderr)
        outcome = 1
    finally:
        run.end()
        left = removed(run)
    return left or outcome


def arguments():
    parser = argparse.ArgumentParser(prog="verify-aws", description="Checks on a real AWS account the facts that no emulator shows.")
    parser.add_argument("--yes", action="store_true", help="do not ask before it begins")
    parser.add_argument("--hours", action="store_true", help="also wait 12 hours for a hidden message")
    template = "the template to deploy (by default dist/comeback.yaml, or else what sam build makes)"
    parser.add_argument("--template", type=Path, metavar="FILE", help=template)
    parser.add_argument("--parameters", nargs="*", default=[], metavar="NAME=VALUE", help="parameters of that template")
    parser.add_argument("--clean", metavar="RUN", help="only remove what an earlier run has left")
    parser.add_argument("--list", action="store_true", help="only print the facts and what is expected")
    asked = parser.parse_args()
    if asked.clean and not re.fullmatch("[0-9a-f]{8}", asked.clean):
        parser.error(f"--clean takes the eight hexadecimal digits that the run has printed, not {asked.clean!r}")
    return asked


def confirm(run, yes):
    time = "12 hours" if run.with_hours else "ten minutes"
    owner = "an emulator" if run.account.is_emulator else "AWS"
    account = {"number": run.account.number, "owner": owner, "region": run.account.region}
    print(WARNING.format(**account, name=run.name, time=time), flush=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused("nobody can answer here: give --yes if this account is meant")
    if input("Begin? [y/N] ").strip().lower() not in ("y", "yes"):
        raise Refused("nothing was made")


def verified(run, asked):
    """Runs all checks concurrently, because they mostly wait. After this returns, nothing creates resources."""
    run.release = release.deploy(run, asked.template, asked.parameters)
    print("asking", flush=True)
    with ThreadPoolExecutor(len(checks.ALL)) as pool:
        answers = [pool.submit(facts.rows, run, check) for check in checks.ALL]
        # If a signal arrives just before a wait, Python handles it only after the wait, so waits are short.
        while wait(answers, timeout=1).not_done:
            pass
        return [row for answer in answers for row in answer.result()]


def removed(run):
    """Removes everything that the run created. Returns the exit code: 0 if nothing is left."""
    try:
        left = clean(run)
    except KeyboardInterrupt:  # happens only with --clean, because signals are ignored after a run
        left = ["interrupted"]
    for problem in left:
        print(f"not removed: {problem}", file=sys.stderr)
    if left:
        print(f"run this until nothing is left: make verify-aws VERIFY=\"--clean {run.id}\"", file=sys.stderr)
    return 1 if left else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Refused as refusal:
        sys.exit(f"verify-aws: {refusal}")
