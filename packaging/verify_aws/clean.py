"""The end: everything that has the run's name is removed. It can be called again, and needs no memory of what was made."""

from botocore.exceptions import BotoCoreError, ClientError


def clean(run):
    """Removes all of it, and gives back what could not be removed."""
    left = []
    # The stack first: its queues stay, and are then removed with the others.
    for remove in (stack, functions, queues, role, logs, bucket):
        try:
            remove(run)
        except (BotoCoreError, ClientError) as error:
            if not is_gone(error):
                left.append(f"{remove.__name__} of {run.name}: {error}")
    return left


def is_gone(error):
    codes = ("NoSuchEntity", "NoSuchBucket", "ResourceNotFoundException", "AWS.SimpleQueueService.NonExistentQueue")
    return isinstance(error, ClientError) and error.response["Error"]["Code"] in codes


def stack(run):
    run.account.stacks.delete_stack(StackName=run.name)
    run.account.stacks.get_waiter("stack_delete_complete").wait(StackName=run.name, WaiterConfig={"Delay": 2, "MaxAttempts": 450})


def functions(run):
    lambdas = run.account.functions
    for page in lambdas.get_paginator("list_functions").paginate():
        for name in (function["FunctionName"] for function in page["Functions"]):
            if name.startswith(run.name):
                for mapping in lambdas.list_event_source_mappings(FunctionName=name)["EventSourceMappings"]:
                    lambdas.delete_event_source_mapping(UUID=mapping["UUID"])
                lambdas.delete_function(FunctionName=name)


def queues(run):
    for url in run.account.sqs.list_queues(QueueNamePrefix=run.name).get("QueueUrls", []):
        run.account.sqs.delete_queue(QueueUrl=url)


def role(run):
    name = f"{run.name}-functions"
    for policy in run.account.iam.list_role_policies(RoleName=name)["PolicyNames"]:
        run.account.iam.delete_role_policy(RoleName=name, PolicyName=policy)
    run.account.iam.delete_role(RoleName=name)


def logs(run):
    for page in run.account.logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=f"/aws/lambda/{run.name}"):
        for group in page["logGroups"]:
            run.account.logs.delete_log_group(logGroupName=group["logGroupName"])


def bucket(run):
    name = f"{run.name}-{run.account.number}"
    for page in run.account.buckets.get_paginator("list_objects_v2").paginate(Bucket=name):
        for item in page.get("Contents", []):
            run.account.buckets.delete_object(Bucket=name, Key=item["Key"])
    run.account.buckets.delete_bucket(Bucket=name)
