"""The AWS account that the credentials belong to, and the clients of its services."""

import ipaddress
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import BotoCoreError, ClientError


class Refused(Exception):
    """Raised if a run cannot begin. The text gives the reason and the remedy."""


class Account:
    def __init__(self):
        session = boto3.Session()
        self.region = session.region_name
        if not self.region:
            raise Refused("no region: set AWS_REGION")
        self.sqs = session.client("sqs")
        self.functions = session.client("lambda")
        self.iam = session.client("iam")
        self.logs = session.client("logs")
        self.metrics = session.client("cloudwatch")
        self.stacks = session.client("cloudformation")
        self.buckets = session.client("s3")
        try:
            identity = session.client("sts").get_caller_identity()
        except (BotoCoreError, ClientError) as error:
            raise Refused(f"no credentials that AWS accepts: set AWS_PROFILE, or log in ({error})") from error
        self.number = identity["Account"]
        self.partition = identity["Arn"].split(":")[1]
        # On an emulator, some of the facts about AWS cannot be confirmed, and long waits are unnecessary.
        self.is_emulator = is_emulator(self.sqs.meta.endpoint_url, self.number)


def is_emulator(endpoint, number):
    """Returns true for an emulator. AWS's endpoints have too many names to list, but no AWS endpoint is on this machine."""
    return number == "000000000000" or is_this_machine(urlsplit(endpoint).hostname)


def is_this_machine(host):
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # the host is a name, not an address
        return host == "localhost" or host.endswith(".localhost")
