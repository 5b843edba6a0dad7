"""Creates queues, functions and the role. Their names begin with the run's name, so that `clean.py` finds them."""

import io
import json
import zipfile
from pathlib import Path

from botocore.exceptions import ClientError

CODE = Path(__file__).parent / "functions"
LAMBDA_MAY_ASSUME = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}


def queue(run, name, **attributes):
    run.go_on()
    attributes = {"MaximumMessageSize": "1048576", **attributes}
    made = run.account.sqs.create_queue(QueueName=f"{run.name}-{name}", Attributes=attributes, tags=run.tags)
    return made["QueueUrl"]


def arn_of(run, queue_url):
    attributes = run.account.sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])
    return attributes["Attributes"]["QueueArn"]


def role(run):
    """Returns the ARN of the role that all functions share. It has every permission that any of them needs."""
    with run.making:
        run.go_on()
        if run.role is None:
            name = f"{run.name}-functions"
            own = f"arn:{run.account.partition}:sqs:*:{run.account.number}:{run.name}*"
            allowed = [
                {"Effect": "Allow", "Action": "sqs:*", "Resource": own},
                {"Effect": "Allow", "Action": ["logs:*", "xray:PutTraceSegments", "xray:PutTelemetryRecords"], "Resource": "*"},
            ]
            tags = [{"Key": key, "Value": value} for key, value in run.tags.items()]
            made = run.account.iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(LAMBDA_MAY_ASSUME), Tags=tags)
            policy = json.dumps({"Version": "2012-10-17", "Statement": allowed})
            run.account.iam.put_role_policy(RoleName=name, PolicyName="functions", PolicyDocument=policy)
            run.role = made["Role"]["Arn"]
        return run.role


def function(run, name, code="target", timeout=10, **settings):
    """Creates a function that runs `functions/CODE.py`, and returns its name."""
    run.go_on()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.write(CODE / f"{code}.py", f"{code}.py")
    request = {
        "FunctionName": f"{run.name}-{name}",
        "Runtime": "python3.12",
        "Handler": f"{code}.handler",
        "Role": role(run),
        "Code": {"ZipFile": archive.getvalue()},
        "Timeout": timeout,
        "Tags": run.tags,
        **settings,
    }
    # For the first few seconds, Lambda cannot assume a new role.
    run.until(f"function {name}", 120, lambda: unless_too_early(lambda: run.account.functions.create_function(**request)))
    run.account.functions.get_waiter("function_active_v2").wait(FunctionName=request["FunctionName"])
    run.account.functions.put_function_recursion_config(FunctionName=request["FunctionName"], RecursiveLoop="Allow")
    return request["FunctionName"]


def fails_to(run, function, queue_url):
    """Configures a function to send its failures to a queue, without Lambda's own retries."""
    run.go_on()
    request = {
        "FunctionName": function,
        "MaximumRetryAttempts": 0,
        "MaximumEventAgeInSeconds": 60,
        "DestinationConfig": {"OnFailure": {"Destination": arn_of(run, queue_url)}},
    }
    put = run.account.functions.put_function_event_invoke_config
    run.until(f"destination of {function}", 120, lambda: unless_too_early(lambda: put(**request)))


def reads(run, function, queue_url, **settings):
    """Creates an event source mapping from a queue to a function. The batch size is 1 unless `settings` gives
    another."""
    run.go_on()
    request = {"FunctionName": function, "EventSourceArn": arn_of(run, queue_url), "BatchSize": 1, **settings}
    create = run.account.functions.create_event_source_mapping
    run.until(f"mapping of {function}", 120, lambda: unless_too_early(lambda: create(**request)))


def unless_too_early(call):
    """Returns the response of a call; `None` if the role or its policy has not reached every region yet."""
    try:
        return call()
    except ClientError as error:
        if error.response["Error"]["Code"] == "InvalidParameterValueException" and "role" in str(error):
            return None
        raise


def invoke(run, function, event):
    run.go_on()
    answer = run.account.functions.invoke(FunctionName=function, InvocationType="Event", Payload=json.dumps(event).encode())
    return answer["ResponseMetadata"]["RequestId"]


def receive(run, queue_url, hide_for=60):
    """Receives a message and hides it for `hide_for` seconds. Returns `None` if the queue is empty."""
    answer = run.account.sqs.receive_message(
        QueueUrl=queue_url, VisibilityTimeout=hide_for, AttributeNames=["All"], MessageAttributeNames=["All"]
    )
    return next(iter(answer.get("Messages", [])), None)


def printed(run, function):
    """Returns what a function has printed so far: the JSON lines that begin with the member `verify`."""
    logs = run.account.logs
    try:
        pages = logs.get_paginator("filter_log_events").paginate(logGroupName=f"/aws/lambda/{function}", filterPattern="verify")
        lines = [event["message"] for page in pages for event in page["events"]]
    except logs.exceptions.ResourceNotFoundException:
        return []
    return [json.loads(line) for line in lines if line.startswith('{"verify"')]
