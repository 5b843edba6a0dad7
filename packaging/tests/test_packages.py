"""Tests the packages in `dist/` that target functions use, installed into empty folders."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import DIST

from build import version

EVENT = {
    "_retry_metadata": {"attempt": 2, "initial_timestamp": 1643667670, "origin_request_id": "first"},
    "_original_payload": {"order": 17},
}
OPENED = [{"order": 17}, 2, "first"]
BATCH = {"Records": [{"messageId": "m-1", "attributes": {}}]}
NO_FAILURES = {"batchItemFailures": []}


class Packages(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_here(self, *command: str) -> str:
        ended = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return ended.stdout

    def test_the_wheel_opens_an_event(self):
        wheel = DIST / f"comeback_envelope-{version()}-py3-none-any.whl"
        options = ["--quiet", "--no-index", "--disable-pip-version-check", "--target", "."]
        self.run_here(sys.executable, "-m", "pip", "install", *options, str(wheel))
        program = f"import comeback_envelope, json; print(json.dumps(comeback_envelope.open_event({EVENT}, 'this')))"
        self.assertEqual(json.loads(self.run_here(sys.executable, "-c", program)), OPENED)

    def test_the_package_for_npm_opens_an_event(self):
        package = DIST / f"comeback-envelope-{version()}.tgz"
        self.run_here("npm", "install", "--silent", "--offline", str(package))
        program = f"""
            const {{ payload, attempt, key }} = require('comeback-envelope').openEvent({json.dumps(EVENT)}, 'this');
            console.log(JSON.stringify([payload, attempt, key]));
        """
        self.assertEqual(json.loads(self.run_here("node", "-e", program)), OPENED)

    def test_the_wheel_of_the_consumer_handles_a_batch(self):
        wheel = DIST / f"comeback_sqs-{version()}-py3-none-any.whl"
        options = ["--quiet", "--no-index", "--disable-pip-version-check", "--target", "."]
        self.run_here(sys.executable, "-m", "pip", "install", *options, str(wheel))
        program = f"""
import comeback_sqs, json, types
context = types.SimpleNamespace(get_remaining_time_in_millis=lambda: 60_000, invoked_function_arn="f")
print(json.dumps(comeback_sqs.consumer()(lambda record, context: None)({BATCH}, context)))
"""
        self.assertEqual(json.loads(self.run_here(sys.executable, "-c", program)), NO_FAILURES)

    def test_the_consumer_for_npm_handles_a_batch(self):
        package = DIST / f"comeback-sqs-{version()}.tgz"
        self.run_here("npm", "install", "--silent", "--offline", str(package))
        program = f"""
            const context = {{ getRemainingTimeInMillis: () => 60_000, invokedFunctionArn: 'f' }};
            const handler = require('comeback-sqs').consumer({{}}, () => {{}});
            handler({json.dumps(BATCH)}, context).then((response) => console.log(JSON.stringify(response)));
        """
        self.assertEqual(json.loads(self.run_here("node", "-e", program)), NO_FAILURES)


if __name__ == "__main__":
    unittest.main()
