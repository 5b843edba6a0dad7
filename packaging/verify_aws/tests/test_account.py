"""Tests which accounts count as an emulator's."""

import unittest

import support  # noqa: F401

from account import is_emulator


class Emulator(unittest.TestCase):
    def test_aws_endpoints_are_not_emulators(self):
        for endpoint in (
            "https://sqs.eu-west-1.amazonaws.com",
            "https://sqs.eu-west-1.api.aws",
            "https://sqs.cn-north-1.amazonaws.com.cn",
            "https://sqs.us-iso-east-1.c2s.ic.gov",
            "https://sqs.us-isob-east-1.sc2s.sgov.gov",
            "https://vpce-1-sqs.eu-west-1.vpce.amazonaws.com",
            "https://localhost.example.com",
            "https://10.0.0.1:443",
        ):
            self.assertFalse(is_emulator(endpoint, "123456789012"), endpoint)

    def test_an_endpoint_on_this_machine_is_an_emulator(self):
        for endpoint in ("http://127.0.0.1:4566", "http://localhost:4566", "http://sqs.localhost:4566", "http://[::1]:4566"):
            self.assertTrue(is_emulator(endpoint, "123456789012"), endpoint)

    def test_account_of_zeros_is_an_emulator(self):
        self.assertTrue(is_emulator("http://emulator:4566", "000000000000"))
