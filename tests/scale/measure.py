"""What a retry costs a replay, from a thousand events to a million, as the README's table. On Linux.

    python3 tests/scale/measure.py target/release/comeback [EVENTS ...]

Each run has one core, and its processor time is counted, which other work on the machine changes less than the time on the
wall. Without SQS's limit of 120,000 messages in flight an event has as many retries in each run; the last row keeps it.
"""

import json
import os
import subprocess
import sys

EVENTS = [1_000, 10_000, 100_000, 1_000_000]
WITHOUT_LIMITS = ["--in-flight-limit", "10000000", "--maximum-concurrency", "1000"]


def run(command):
    """What it prints, its processor time in seconds, and the most memory it held, in MB."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        output = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {child.returncode}")
    return output, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def row(name, command, reference):
    output, seconds, megabytes = run(command)
    retries = json.loads(output)["retries"]
    cost = seconds / retries * 1e6
    ratio = cost / (reference or cost)
    print(f"| {name} | {retries:,} | {seconds:.1f} s | {cost:.1f} µs | {ratio:.2f} | {megabytes:,.0f} MB |", flush=True)
    return cost


def main(comeback, *events):
    events = [int(count) for count in events] or EVENTS
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    replay = [comeback, "replay", "--json"]
    run(replay)  # the first run of a program takes longer
    print("| events | retries | processor time | a retry | beside the first row | memory |")
    print("|---|---|---|---|---|---|", flush=True)
    reference = None
    for count in events:
        cost = row(f"{count:,}", [*replay, "--events", str(count), *WITHOUT_LIMITS], reference)
        reference = reference or cost
    row(f"{events[-1]:,}, within the limits", [*replay, "--events", str(events[-1])], reference)


if __name__ == "__main__":
    main(*sys.argv[1:])
