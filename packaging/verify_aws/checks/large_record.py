"""Where does a failure record over 1 MiB go?"""

import json
from datetime import datetime, timedelta, timezone

import make
from facts import Fact

DROPPED = Fact(
    "a failure record over 1 MiB is dropped, or arrives without its payload",
    "no message, and `DestinationDeliveryFailures` is 1; or a record without `requestPayload`",
)
FACTS = [DROPPED]
NO_MESSAGE, WITHOUT_PAYLOAD = "no message", "a record without `requestPayload`"


def check(run):
    function, queue = make.function(run, "large"), make.queue(run, "large")
    make.fails_to(run, function, queue)
    begun = datetime.now(timezone.utc)
    make.invoke(run, function, {"failures": 1, "filling": "x" * (1_048_576 - 100)})
    arrived, failures = run.until("message, and no failed delivery,", 600, lambda: outcome(run, function, queue, begun))
    seen = f"{arrived}, and `DestinationDeliveryFailures` is {failures}"
    yield DROPPED, seen, (arrived, failures) in [(NO_MESSAGE, 1), (WITHOUT_PAYLOAD, 0)]


def outcome(run, function, queue, begun):
    """Returns the arrived record and the number of failed deliveries, once a record or a failure is found."""
    message = make.receive(run, queue)
    arrived = what(message)
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
    return (arrived, failures) if message or failures else None


def what(message):
    if message is None:
        return NO_MESSAGE
    return "a whole record" if "requestPayload" in json.loads(message["Body"]) else WITHOUT_PAYLOAD
