"""Tests that nothing is created after a run was stopped, by any signal, any number of times."""

import importlib.util
import os
import signal
import tempfile
import threading
import unittest
from unittest.mock import MagicMock, patch

from support import FOLDER, run_of

import make
import release
from run import Stopped

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PROGRAM = importlib.util.spec_from_file_location("verify_aws", FOLDER / "__main__.py")


class Stop(unittest.TestCase):
    def setUp(self) -> None:
        for number in SIGNALS:
            # A background job started by a shell script ignores some of these signals, so the test restores the default
            # signal handlers.
            self.addCleanup(signal.signal, number, signal.signal(number, signal.SIG_DFL))
        self.run_ = run_of()

    def send(self, number: int) -> None:
        os.kill(os.getpid(), number)

    def test_stopped_wait_asks_nothing_more(self):
        self.run_.end()
        ask = MagicMock()
        with self.assertRaises(Stopped):
            self.run_.until("answer", 60, ask)
        ask.assert_not_called()

    def test_stopped_run_creates_nothing(self):
        self.run_.end()
        for name in ("sqs", "functions", "iam"):
            setattr(self.run_.account, name, MagicMock())
        for call in (
            lambda: make.queue(self.run_, "queue"),
            lambda: make.role(self.run_),
            lambda: make.function(self.run_, "function"),
            lambda: make.fails_to(self.run_, "function", "queue"),
            lambda: make.reads(self.run_, "function", "queue"),
            lambda: make.invoke(self.run_, "function", {}),
            lambda: release.deploy(self.run_, FOLDER / "samconfig.toml", []),
        ):
            self.assertRaises(Stopped, call)
        self.assertEqual(self.run_.account.mock_calls, [])

    def test_first_signal_stops_later_ones_do_nothing(self):
        for first in SIGNALS:
            run = run_of()
            for number in SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            run.stop_at_signals()
            self.send(first)
            self.assertTrue(run.stop.is_set(), first)
            for later in SIGNALS:
                self.send(later)

    def test_late_signal_does_nothing(self):
        """A second call of `set` during the first would wait forever for the lock that `set` holds."""
        self.run_.stop_at_signals()
        self.run_.stop = MagicMock()
        self.run_.stop.set.side_effect = lambda: self.send(signal.SIGINT)
        self.run_.end()
        self.run_.stop.set.assert_called_once()

    def test_ignored_signal_stays_ignored(self):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.run_.stop_at_signals()
        self.send(signal.SIGHUP)
        self.assertFalse(self.run_.stop.is_set())

    def test_stop_ends_a_command(self):
        self.run_.stop_at_signals()
        with tempfile.TemporaryDirectory() as folder:
            threading.Timer(0.1, self.send, [signal.SIGTERM]).start()
            with self.assertRaises(Stopped):
                release.called(self.run_, "sh", "-c", f"sleep 10; touch {folder}/ended-by-itself")
            self.assertEqual(os.listdir(folder), [])

    def test_a_command_that_fails_says_why(self):
        with self.assertRaisesRegex(release.Refused, "^sh -c failed:\nthe reason\n$"):
            release.called(self.run_, "sh", "-c", "echo the reason >&2; exit 1")

    def test_removal_waits_for_pending_creation(self):
        program = importlib.util.module_from_spec(PROGRAM)
        PROGRAM.loader.exec_module(program)
        made, begun, finish = [], threading.Event(), threading.Event()

        def create_queue(**_):
            begun.set()
            finish.wait()
            made.append("queue")
            return {"QueueUrl": "url"}

        def check(run):
            for _ in range(100):
                make.queue(run, "queue")
                yield "fact", "seen", True

        def interrupt_twice():
            begun.wait()
            self.send(signal.SIGINT)
            self.run_.stop.wait()
            self.send(signal.SIGINT)
            # The step ends only after the main thread has had time to handle the second signal.
            threading.Timer(0.2, finish.set).start()

        def clean(_):
            seen_by_clean.append(len(made))
            return []

        seen_by_clean = []
        self.run_.account.sqs.create_queue = create_queue
        threading.Thread(target=interrupt_twice).start()
        with (
            patch.object(program, "arguments", return_value=MagicMock(list=False, clean=None, yes=True)),
            patch.object(program, "Account", return_value=self.run_.account),
            patch.object(program, "Run", return_value=self.run_),
            patch.object(program, "clean", clean),
            patch.object(program.release, "deploy", return_value={}),
            patch.object(program.checks, "ALL", [MagicMock(check=check, FACTS=["fact"])]),
            patch("sys.stdout"),
            patch("sys.stderr"),
        ):
            self.assertEqual(program.main(), 1)
        self.assertEqual((made, seen_by_clean), (["queue"], [1]))
