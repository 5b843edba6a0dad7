#!/usr/bin/env python3
"""The contention study as a plain Python program, for comparison with `comeback contention --reference`.

N clients update one row under optimistic concurrency: each reads the row's version, writes the row
back, and tries again after a backoff if another client wrote in between. This is the experiment
behind "Exponential Backoff And Jitter" (AWS Architecture Blog), in which every hop between client
and server takes |Normal(10 ms, 2 ms)|. Needs only Python 3 and its standard library.

The order of draws is part of the model: the generator is seeded once for each cell (one N, one
strategy), and the cell's runs draw from it one after another.
"""

import argparse
import heapq
import json
import random

BASE_MS = 5
CAP_MS = 2000
HOP_MEAN_MS = 10
HOP_DEVIATION_MS = 2

STRATEGIES = ("none", "exponential", "equal", "full", "decorrelated")

READ, VERSION, WRITE, ANSWER = range(4)


def hop():
    return abs(random.normalvariate(HOP_MEAN_MS, HOP_DEVIATION_MS))


class Backoff:
    def __init__(self, strategy):
        self.strategy = strategy
        self.refusals = 0
        self.last = BASE_MS

    def wait(self):
        """The wait after another refused write. The first refusal doubles the base."""
        self.refusals += 1
        if self.strategy == "none":
            return 0
        if self.strategy == "decorrelated":
            self.last = min(CAP_MS, random.uniform(BASE_MS, 3 * self.last))
            return self.last
        ceiling = min(CAP_MS, BASE_MS * 2**self.refusals)
        if self.strategy == "exponential":
            return ceiling
        if self.strategy == "equal":
            return ceiling / 2 + random.uniform(0, ceiling / 2)
        return random.uniform(0, ceiling)


def one_run(clients, strategy):
    """Returns (time of the last event in ms, number of writes)."""
    agenda = []
    sent = 0

    def send(arrives, message, client, content):
        nonlocal sent
        heapq.heappush(agenda, (arrives, sent, message, client, content))
        sent += 1

    backoffs = [Backoff(strategy) for _ in range(clients)]
    for client in range(clients):
        send(0.0 + hop(), READ, client, None)

    now, server_version, writes = 0.0, 0, 0
    while agenda:
        now, _, message, client, content = heapq.heappop(agenda)
        if message == READ:
            send(now + hop(), VERSION, client, server_version)
        elif message == VERSION:
            send(now + hop(), WRITE, client, content)
        elif message == WRITE:
            writes += 1
            accepted = content == server_version
            if accepted:
                server_version += 1
            send(now + hop(), ANSWER, client, accepted)
        elif not content:
            arrives = now + hop()
            send(arrives + backoffs[client].wait(), READ, client, None)
    return now, writes


def cell(clients, strategy, runs, seed):
    random.seed(seed)
    # A loop gives the same result in every version of Python. `sum()` adds floats differently since Python 3.12.
    time, calls = 0.0, 0
    for _ in range(runs):
        run_time, run_calls = one_run(clients, strategy)
        time += run_time
        calls += run_calls
    return {"clients": clients, "strategy": strategy, "time_ms": time / runs, "calls": calls / runs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--clients", default=",".join(str(n) for n in range(10, 200, 10)))
    parser.add_argument("--strategy", default=",".join(STRATEGIES))
    args = parser.parse_args()
    strategies = args.strategy.split(",")
    if unknown := set(strategies) - set(STRATEGIES):
        parser.error(f"unknown strategy: {', '.join(sorted(unknown))}")
    cells = [
        cell(int(clients), strategy, args.runs, args.seed)
        for clients in args.clients.split(",")
        for strategy in strategies
    ]
    print(json.dumps({"cells": cells}, separators=(",", ":")))


if __name__ == "__main__":
    main()
