"""Checks the recorded requests against AWS's own models, and the permissions of the handler and of the commands.

`make test` records them in `target/recorded`. Prints the numbers of requests, operations and violations. Fails if there
is a violation, or no request.

| file | holds |
|---|---|
| `recorded` | requests, decoded with botocore's models |
| `models` | values that those models forbid |
| `limits` | limits that AWS documents but the models lack |
| `roles`, `role` | permissions of the handler's role, in the template and in the construct |
| `commands` | permissions of the commands, as listed in `docs/operate.md` |
"""

import sys
from collections import Counter
from pathlib import Path

import commands
import limits
import models
import recorded
import roles

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "target/recorded"


def main() -> int:
    requests, violations = [], Counter()
    for line in recorded.lines(RECORDED):
        try:
            request = recorded.decode(line)
        except recorded.Undecodable as error:
            violations[str(error)] += 1
            continue
        requests.append(request)
        found = [*models.problems(request.operation.input_shape, request.parameters)]
        # The limits are checked only if the model accepts the request.
        found = found or [*limits.problems(request.name, request.parameters)]
        violations.update(f"{request.sender}: {request.name}: {problem}" for problem in found)
    if not requests:
        print(f"error: {RECORDED} has no requests; run `make test` first", file=sys.stderr)
        return 1
    violations.update(roles.problems(ROOT, requests))
    violations.update(commands.problems((ROOT / commands.PAGE).read_text(encoding="utf-8"), requests))
    operations = {request.name for request in requests}
    print(f"{len(requests)} requests, {len(operations)} operations, {len(violations)} violations")
    for problem, count in sorted(violations.items()):
        print(f"{count:6} x {problem}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
