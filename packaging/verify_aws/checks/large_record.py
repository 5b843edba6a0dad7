"""Where does a failure record over 1 MiB go?"""

from datetime import datetime, timedelta, timezone

import make
from facts import Fact

DROPPED = Fact("a failure record over 1 MiB is dropped", "no message, and `DestinationDeliveryFailures` is 1")
FACTS = [DROPPED]


def check(run):
    function, queue = make.function(run, "large"), make.queue(run, "large")
    make.fails_to(run, function, queue)
    begun = datetime.now(timezone.utc)
    make.invoke(run, function, {"failures": 1, "filling": "x" * (1_048_576 - 100)})
    arrived, failures = run.until("message, and no failed delivery,", 600, lambda: outcome(run, function, queue, begun))
    seen = f"{'a message' if arrived else 'no message'}, and `DestinationDeliveryFailures` is {failures}"
    yield DROPPED, seen, (arrived, failures) == (False, 1)


def outcome(run, function, queue, begun):
    """Returns whether a message has arrived and how many deliveries have failed, once either has happened."""
    arrived = make.receive(run, queue) is not None
    answer = run.account.metrics.get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName="DestinationDeliveryFailures",
        Dimensions=[{"Name": "FunctionName", "Value": function}],
        StartTime=begun - timedelta(minutes=5),
        EndTime=datetime.now(timezone.utc) + timedelta(minutes=5),
        Period=60,
        Statistics=["Sum"],
    )
    failures = round(sum(point["Sum"] for point in answer["Datapoints"]))
    return (arrived, failures) if arrived or failures else None
