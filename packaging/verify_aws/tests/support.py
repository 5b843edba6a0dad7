"""Definitions shared by these tests. Run the tests in this folder, in a Python with boto3: `python -m unittest`."""

import sys
from pathlib import Path
from unittest.mock import MagicMock

FOLDER = Path(__file__).resolve().parents[1]

sys.path.insert(0, str(FOLDER))

from botocore.exceptions import ClientError  # noqa: E402

from run import Run  # noqa: E402


def run_of(account=None) -> Run:
    """Makes a run in an AWS account. By default, the account is a mock whose responses are empty."""
    account = account or MagicMock()
    account.is_emulator, account.number, account.region, account.partition = False, "123456789012", "eu-west-1", "aws"
    return Run(account, "0123abcd")


def failure(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": f"it is {code}"}}, "Operation")
