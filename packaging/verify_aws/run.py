"""One run: its name, its waits, and how it is stopped."""

import threading
import time


class Stopped(Exception):
    """Somebody has interrupted the run."""


class NotSeen(Exception):
    """What was waited for did not come."""


class Run:
    def __init__(self, account, id, with_hours=False):
        self.account = account
        self.id = id
        self.name = f"comeback-verify-{id}"
        self.tags = {"comeback-verify": id}
        self.with_hours = with_hours
        self.stop = threading.Event()
        self.release = None  # the stack's outputs, once it is there
        self.making = threading.Lock()
        self.role = None  # of the functions, made with the first

    def many(self, count):
        """How often to do what an emulator shows as well by three times."""
        return 3 if self.account.is_emulator else count

    def seconds(self, seconds):
        """How long to wait where an emulator needs no time."""
        return min(seconds, 2) if self.account.is_emulator else seconds

    def pause(self, seconds):
        if self.stop.wait(seconds):
            raise Stopped

    def until(self, what, seconds, ask):
        """Asks once a second until there is an answer."""
        limit = min(seconds, 60) if self.account.is_emulator else seconds
        begun = time.monotonic()
        while time.monotonic() - begun < limit:
            answer = ask()
            if answer is not None:
                return answer
            self.pause(1)
        raise NotSeen(f"no {what} in {limit} s")
