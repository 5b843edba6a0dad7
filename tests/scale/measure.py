"""Measures what a retry costs the simulation, with a thousand to a million events, for docs/simulate.md. Linux only.

Each run has one core, and is measured in processor time, which other work on the machine affects less than elapsed
time. In all rows but the last, every message is hidden, however many are in flight: an ideal that no SQS queue offers.
In the last row, messages are moved if HIDE_UP_TO leaves no room to hide them.

Below the table, the script says how a retry compares with a round trip of its message through Python's JSON.

With all four sizes, the script fails if a retry or move costs 1.5 times as much in any row as in the first, if a run
needs more than 4 GB, or if the last row has 120,000 messages in flight or delivers more than 1 % later than the ideal.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import timeit
from pathlib import Path

EVENTS = [1_000, 10_000, 100_000, 1_000_000]
MORE_POLLERS = ["--maximum-concurrency", "50"]
# Waits of up to twelve hours, which need the most moves.
LONG_WAITS = ["--base-backoff", "1s", "--max-backoff", "43170s"]
WITHOUT_LIMIT = ["--hide-up-to", "always", "--in-flight-limit", "10000000"]
# The message of a retry, as the handler receives it.
MESSAGE = Path(__file__).parents[2] / "events/wrapped-third-attempt.json"
HIGHEST_RATIO = 1.5
MOST_MEGABYTES = 4096
COLUMNS = [
    "events", "retries", "moves", "processor time", "a retry or move", "beside the first row", "memory",
    "peak in flight", "99 % delivered after", "USD a million retries",
]


def run(command):
    """Runs a command. Returns its output, its processor time in seconds, and its peak memory in MB."""
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
    """Prints a row. Returns the cost of a retry or move, the figures, and whether the run is within the limits."""
    output, seconds, megabytes = run(command)
    figures = json.loads(output)
    retries, moves = figures["retries"], figures["moves"]
    cost = seconds / (retries + moves) * 1e6
    ratio = cost / (reference or cost)
    late = figures["recovery_delay_ms"]["p99"] / 60_000
    usd = figures["cost_usd"] / retries * 1e6
    cells = [
        name, f"{retries:,}", f"{moves:,}", f"{seconds:.1f} s", f"{cost:.1f} µs", f"{ratio:.2f}", f"{megabytes:,.0f} MB",
        f"{figures['peak_in_flight']:,}", f"{late:.0f} min", f"{usd:.2f}",
    ]
    print(f"| {' | '.join(cells)} |", flush=True)
    return cost, figures, ratio <= HIGHEST_RATIO and megabytes <= MOST_MEGABYTES


def compare_with_python(simulate):
    """Prints the cost of a retry relative to a JSON round trip of its message: the best of five of each, in turns."""
    message = json.loads(json.loads(MESSAGE.read_text())["Records"][0]["body"])
    costs, round_trips = [], []
    for _ in range(5):
        output, seconds, _ = run([*simulate, "--events", "10000", *WITHOUT_LIMIT])
        retries = json.loads(output)["retries"]
        costs.append(seconds / retries)
        python = timeit.timeit(lambda: json.loads(json.dumps(message)), timer=time.process_time, number=retries)
        round_trips.append(python / retries)
    cost, round_trip = min(costs), min(round_trips)
    print(f"\nA retry takes {cost * 1e6:.1f} µs, {cost / round_trip:.2f} times a JSON round trip of its message in Python.")


def is_as_good(moved, ideal):
    """Returns true if a run with moves stays within the queue's limit, and delivers at most 1 % later than the ideal."""
    moved_p99, ideal_p99 = (run["recovery_delay_ms"]["p99"] for run in (moved, ideal))
    return moved["delivered"] == ideal["delivered"] and moved["peak_in_flight"] < 120_000 and moved_p99 <= 1.01 * ideal_p99


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("comeback", help="the command, such as target/release/comeback")
    parser.add_argument("events", nargs="*", type=int, help="how many, one row each (1000 to 1000000)")
    arguments = parser.parse_args()
    counts = arguments.events or EVENTS
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    simulate = [arguments.comeback, "simulate", "--json", *MORE_POLLERS, *LONG_WAITS]
    run(simulate)  # the first run of a program is slower
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    reference, good = None, True
    for count in counts:
        cost, ideal, is_good = row(f"{count:,}", [*simulate, "--events", str(count), *WITHOUT_LIMIT], reference)
        reference = reference or cost
        good = good and is_good
    cost, moved, is_good = row(f"{counts[-1]:,}, with moves", [*simulate, "--events", str(counts[-1])], reference)
    compare_with_python(simulate)
    if counts == EVENTS and not (good and is_good and is_as_good(moved, ideal)):
        sys.exit(
            f"a retry or move costs more than {HIGHEST_RATIO} times the first row's, a run needs {MOST_MEGABYTES} MB, "
            "or the last row has too many in flight or is late"
        )


if __name__ == "__main__":
    main()
