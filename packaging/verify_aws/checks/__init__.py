"""The questions, one file each: `FACTS`, and `check(run)`, which yields each fact, the observation, and whether it was
expected."""

from checks import destination, in_flight, large_record, moves, recall, records, recursion, throttled, trace, twelve_hours

ALL = [recursion, moves, twelve_hours, recall, in_flight, destination, trace, records, throttled, large_record]
