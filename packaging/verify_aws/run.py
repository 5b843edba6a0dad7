"""One run: its name, its waits, and its stop."""

import signal
import threading
import time

# Ctrl-C, `kill`, and a closed terminal.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(Exception):
    """The run was interrupted."""


class NotSeen(Exception):
    """The wait timed out."""


class Run:
    def __init__(self, account, id, with_hours=False):
        self.account = account
        self.id = id
        self.name = f"comeback-verify-{id}"
        self.tags = {"comeback-verify": id}
        self.with_hours = with_hours
        self.stop = threading.Event()
        self.release = None  # the stack's outputs, once it exists
        self.making = threading.Lock()
        self.role = None  # the functions' role, created with the first

    def stop_at_signals(self):
        """Makes signals set a flag that stops the run, so that no exception interrupts creating or removing things."""
        for number in SIGNALS:
            # An ignored signal stays ignored: that is how `nohup` works.
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, lambda *_: self.end())

    def end(self):
        """Stops everything that creates things. Everything else (waiting and removing) ignores signals."""
        # First, because a signal inside `set` would wait forever for the lock that `set` holds.
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        self.stop.set()

    def go_on(self):
        """Raises once the run has been stopped. Called before anything is created, so that nothing is left over."""
        if self.stop.is_set():
            raise Stopped

    def many(self, count):
        """The number of repetitions; three are enough on an emulator."""
        return 3 if self.account.is_emulator else count

    def seconds(self, seconds):
        """The time to wait; an emulator needs almost none."""
        return min(seconds, 2) if self.account.is_emulator else seconds

    def pause(self, seconds):
        if self.stop.wait(seconds):
            raise Stopped

    def until(self, what, seconds, ask):
        """Asks once a second until it gets an answer."""
        limit = min(seconds, 60) if self.account.is_emulator else seconds
        begun = time.monotonic()
        while time.monotonic() - begun < limit:
            self.go_on()
            answer = ask()
            if answer is not None:
                return answer
            self.pause(1)
        raise NotSeen(f"no {what} in {limit} s")
