"""Removes everything with the run's name. Can be repeated, and needs no record of what was created."""

import time

from botocore.exceptions import BotoCoreError, ClientError

# The maximum number of deletion rounds. AWS may still list a deleted resource for a while, such as an SQS queue for a
# minute. AWS might not list a new resource at first, but deleting the stack takes long enough for the resource to
# appear.
ROUNDS = 20
BETWEEN = 5

GONE = (
    "404",  # S3's answer to a head request for a missing bucket
    "AWS.SimpleQueueService.NonExistentQueue",
    "NoSuchBucket",
    "NoSuchEntity",
    "QueueDoesNotExist",
    "ResourceNotFoundException",
)


def clean(run):
    """Removes everything that the run created. Returns the items that could not be removed, with the reasons."""
    left = []
    for kind, remove in STEPS.items():
        try:
            left += [f"{kind} of {run.name}: {problem}" for problem in remove(run)]
        except (BotoCoreError, ClientError) as error:
            left.append(f"{kind} of {run.name}: {error}")
    return left


def emptied(run, listed, delete):
    """Deletes the listed items in rounds until none is listed. If items remain, returns the last round's problems."""
    problems = []
    for before in range(ROUNDS):
        if before:
            time.sleep(run.seconds(BETWEEN))
        items = unless_gone(lambda: list(listed(run))) or []
        if not items:
            return []
        problems = [problem for problem in (problem_of(run, delete, item) for item in items) if problem]
    return problems or [f"{item} is still listed" for item in items]


def problem_of(run, delete, item):
    """Returns the reason why an item could not be deleted; `None` if it is gone."""
    try:
        unless_gone(lambda: delete(run, item))
    except (BotoCoreError, ClientError) as error:
        return f"{item}: {error}"
    return None


def unless_gone(call):
    """Returns the response of a call; `None` if the resource does not exist."""
    try:
        return call()
    except ClientError as error:
        if error.response["Error"]["Code"] in GONE:
            return None
        raise


def stack(run):
    """Deletes the stack. CloudFormation keeps its queues, which are removed with the run's other queues."""
    run.account.stacks.delete_stack(StackName=run.name)
    run.account.stacks.get_waiter("stack_delete_complete").wait(StackName=run.name, WaiterConfig={"Delay": 2, "MaxAttempts": 450})
    return []


def mappings(run):
    for page in run.account.functions.get_paginator("list_event_source_mappings").paginate():
        for mapping in page["EventSourceMappings"]:
            if f":function:{run.name}-" in mapping["FunctionArn"] and mapping.get("State") != "Deleting":
                yield mapping["UUID"]


def delete_mapping(run, uuid):
    run.account.functions.delete_event_source_mapping(UUID=uuid)


def functions(run):
    for page in run.account.functions.get_paginator("list_functions").paginate():
        for function in page["Functions"]:
            if function["FunctionName"].startswith(run.name):
                yield function["FunctionName"]


def delete_function(run, name):
    run.account.functions.delete_function(FunctionName=name)


def queues(run):
    return run.account.sqs.list_queues(QueueNamePrefix=run.name).get("QueueUrls", [])


def delete_queue(run, url):
    run.account.sqs.delete_queue(QueueUrl=url)


def roles(run):
    return [run.account.iam.get_role(RoleName=f"{run.name}-functions")["Role"]["RoleName"]]


def delete_role(run, name):
    for policy in run.account.iam.list_role_policies(RoleName=name)["PolicyNames"]:
        unless_gone(lambda: run.account.iam.delete_role_policy(RoleName=name, PolicyName=policy))
    run.account.iam.delete_role(RoleName=name)


def log_groups(run):
    for page in run.account.logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=f"/aws/lambda/{run.name}"):
        yield from (group["logGroupName"] for group in page["logGroups"])


def delete_log_group(run, name):
    run.account.logs.delete_log_group(logGroupName=name)


def buckets(run):
    name = f"{run.name}-{run.account.number}"
    run.account.buckets.head_bucket(Bucket=name)
    return [name]


def delete_bucket(run, name):
    for page in run.account.buckets.get_paginator("list_objects_v2").paginate(Bucket=name):
        for item in page.get("Contents", []):
            run.account.buckets.delete_object(Bucket=name, Key=item["Key"])
    run.account.buckets.delete_bucket(Bucket=name)


STEPS = {
    "stack": stack,
    "mappings": lambda run: emptied(run, mappings, delete_mapping),
    "functions": lambda run: emptied(run, functions, delete_function),
    "queues": lambda run: emptied(run, queues, delete_queue),
    "role": lambda run: emptied(run, roles, delete_role),
    "logs": lambda run: emptied(run, log_groups, delete_log_group),
    "bucket": lambda run: emptied(run, buckets, delete_bucket),
}
