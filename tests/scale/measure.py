"""What a retry costs a simulation, from a thousand events to a million, as the table of docs/simulate.md. On Linux.

Each run has one core, and its processor time is counted, which other work on the machine changes less than the time on the
wall. The first rows are without SQS's limit of 120,000 messages in flight, so that an event has as many retries in each.
Of all four sizes, it fails if a retry costs half as much again in any row as in the first, or a run needs more than 4 GB.
"""

import argparse
import json
import os
import subprocess
import sys

EVENTS = [1_000, 10_000, 100_000, 1_000_000]
MORE_POLLERS = ["--maximum-concurrency", "1000"]
WITHOUT_LIMIT = ["--in-flight-limit", "10000000"]
HIGHEST_RATIO = 1.5
MOST_MEGABYTES = 4096


def run(command):
    """What it prints, its processor time in seconds, and the most memory it held, in MB."""
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            output = child.stdout.read()
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
    except OSError as error:
        sys.exit(f"{command[0]} cannot be run: {error.strerror}")
    if child.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {child.returncode}")
    return output, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def row(name, command, reference):
    """Prints a row and gives its cost of a retry, and whether it is what it should be."""
    output, seconds, megabytes = run(command)
    retries = json.loads(output)["retries"]
    cost = seconds / retries * 1e6
    ratio = cost / (reference or cost)
    print(f"| {name} | {retries:,} | {seconds:.1f} s | {cost:.1f} µs | {ratio:.2f} | {megabytes:,.0f} MB |", flush=True)
    return cost, ratio <= HIGHEST_RATIO and megabytes <= MOST_MEGABYTES


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("comeback", help="the command, such as target/release/comeback")
    parser.add_argument("events", nargs="*", type=int, help="how many, one row each (1000 to 1000000)")
    arguments = parser.parse_args()
    counts = arguments.events or EVENTS
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    simulate = [arguments.comeback, "simulate", "--json", *MORE_POLLERS]
    run(simulate)  # the first run of a program takes longer
    print("| events | retries | processor time | a retry | beside the first row | memory |")
    print("|---|---|---|---|---|---|", flush=True)
    runs = [(f"{count:,}", ["--events", str(count), *WITHOUT_LIMIT]) for count in counts]
    runs.append((f"{counts[-1]:,}, at most 120,000 in flight", ["--events", str(counts[-1])]))
    reference, good = None, True
    for name, flags in runs:
        cost, is_good = row(name, [*simulate, *flags], reference)
        reference = reference or cost
        good = good and is_good
    if not good and counts == EVENTS:
        sys.exit(f"a retry costs more than {HIGHEST_RATIO} times the first row's, or a run {MOST_MEGABYTES} MB")


if __name__ == "__main__":
    main()
