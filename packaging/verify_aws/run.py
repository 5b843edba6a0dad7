"""One run: its name, its waits, and how it is stopped."""

import signal
import threading
import time

# The signals that stop a run. They are sent by Ctrl-C, by `kill`, and when the terminal is closed.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(Exception):
    """Raised in every step of a run that was stopped."""


class NotSeen(Exception):
    """Raised if a wait times out."""


class Run:
    def __init__(self, account, id, with_hours=False):
        self.account = account
        self.id = id
        self.name = f"comeback-verify-{id}"
        self.tags = {"comeback-verify": id}
        self.with_hours = with_hours
        self.stop = threading.Event()
        self.release = None  # the stack's outputs; None until the stack exists
        self.making = threading.Lock()
        self.role = None  # the functions' role, created with the first function

    def stop_at_signals(self):
        """Makes signals set a flag that stops the run, so that no exception interrupts a creation or a removal."""
        for number in SIGNALS:
            # An ignored signal stays ignored, because `nohup` relies on that.
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, lambda *_: self.end())

    def end(self):
        """Stops the creation of resources. Later signals are ignored, so that they do not interrupt the removal."""
        # Signals are ignored first, because a signal handler that ran during `set` would wait forever for the lock that
        # `set` holds.
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        self.stop.set()

    def go_on(self):
        """Raises `Stopped` if the run was stopped. Each creation calls it first, so that nothing is created after a stop."""
        if self.stop.is_set():
            raise Stopped

    def many(self, count):
        """Returns how many times to repeat something: `count`, or 3 on an emulator."""
        return 3 if self.account.is_emulator else count

    def seconds(self, seconds):
        """Returns the seconds to wait; at most two on an emulator."""
        return min(seconds, 2) if self.account.is_emulator else seconds

    def pause(self, seconds):
        if self.stop.wait(seconds):
            raise Stopped

    def until(self, what, seconds, ask):
        """Calls `ask` once a second until it returns a value other than `None`, and returns that value."""
        limit = min(seconds, 60) if self.account.is_emulator else seconds
        begun = time.monotonic()
        while time.monotonic() - begun < limit:
            self.go_on()
            answer = ask()
            if answer is not None:
                return answer
            self.pause(1)
        raise NotSeen(f"no {what} in {limit} s")
