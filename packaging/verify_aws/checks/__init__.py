"""The questions, one in each file. A file has `FACTS`, and `check(run)`, which yields each fact, what was observed, and
whether that was expected."""

from checks import destination, in_flight, large_record, moves, recall, records, recursion, throttled, trace, twelve_hours

ALL = [recursion, moves, twelve_hours, recall, in_flight, destination, trace, records, throttled, large_record]
