"""`make test`: builds everything, then runs every test, and prints the time of each stage.

    build with clippy, and install tools              alone: everything else needs them
    build the functions                               before the servers, whose clocks do not wait for a compiler
    lint templates, test construct and clients        before the servers: the construct's tests have time limits
    test the stack | test with other servers          together: both mostly wait
    test without servers, and the documentation       alongside the four above, in the time that they leave
    check the recorded requests                       the requests that the servers got

A stage that runs alongside others prints its output when it ends.
"""

import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

WITH = "tests/tools/with.sh"
# With another selection of packages and features, cargo would rebuild most dependencies.
CARGO_TEST = [WITH, "clippy", "--", "cargo", "test", "--workspace", "--all-features"]
RUSTDOC = f"RUSTDOC={Path('tests/tools/rustdoc.sh').resolve()}"
# Test programs that a plain `cargo test` skips (`test = false`): they need servers, a browser, Node.js or tools.
SERVERS = [f"--test={name}" for name in ("delivery", "envelope_targets", "operate", "report_page", "template")]
# This test program alone takes as long as all the programs in SERVERS.
STACK = "--test=stack"
TOOLS = "chromium faketime ministack sam aws clients conformance infra clients/node clients/node-sqs tests/console uv".split()
MAKE = ["make", "--no-print-directory"]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
# The maximum number of lines printed for each failed stage. CI shows only the end of the output, so long lists could
# hide the first failed stages.
MOST_LINES = 30


class Stage:
    """Commands that run one after another until one fails, with their time and the messages of the tests that failed."""

    def __init__(self, name, *commands):
        self.name, self.commands = name, commands
        self.seconds, self.failed, self.failures = 0.0, False, []

    def run(self):
        self.follow(lambda line: print(line, end="", flush=True))
        return self

    def start(self):
        """Runs in a thread. The output is shown at the end."""

        def run():
            lines = []
            self.follow(lines.append)
            print("".join(lines), end="", flush=True)

        self.thread = threading.Thread(target=run)
        self.thread.start()
        return self

    def join(self):
        self.thread.join()
        return self

    def follow(self, show):
        begun = time.monotonic()
        for command in self.commands:
            self.failed = self.failed or not self.succeeds(command, show)
        self.seconds = time.monotonic() - begun

    def succeeds(self, command, show):
        show(" ".join(command) + "\n")
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        is_message = False
        for line in process.stdout:
            show(line)
            # A test program prints the line `failures:` twice: before and after the messages of its failed tests.
            is_message ^= line == "failures:\n"
            is_name = line.startswith("test ") and line.rstrip().endswith("FAILED")
            if is_name or is_message and line.strip():
                self.failures.append(line.rstrip()[:400])
        return process.wait() == 0


def stages():
    tools = Stage("install tools", [WITH, *TOOLS, "--"]).start()
    tests = Stage("build with clippy, beside which tools are installed", [*MAKE, "lint-rust"]).run()
    done = [tests, tools.join()]
    if any(stage.failed for stage in done):
        return done

    shutil.rmtree(TARGET / "recorded", ignore_errors=True)
    # Doctests are a stage of their own: they are compiled one crate at a time, and would leave a core idle at the end
    # of a shared stage.
    without_servers = [
        Stage("beside all: test without servers", ["nice", "-n", "19", *CARGO_TEST, "--tests", "--no-fail-fast"]).start(),
        Stage("beside all: test the documentation", ["env", RUSTDOC, "nice", "-n", "19", *CARGO_TEST, "--doc", "--no-fail-fast"]).start(),
    ]
    functions = Stage("build the functions", [WITH, "sam", "--", str(TARGET / "debug/local"), "build"])
    without_cargo = Stage(
        "lint templates, test construct and clients",
        [*MAKE, "--jobs", "2", "--output-sync=target", "lint-templates", "test-infra", "test-clients"],
    )
    done += [functions.run(), without_cargo.start().join()]
    if not (functions.failed or without_cargo.failed):
        stack = Stage("then: test the stack", [*CARGO_TEST, STACK]).start()
        servers = Stage("beside it: test with other servers", [*CARGO_TEST, *SERVERS, "--no-fail-fast"]).start()
        done += [stack.join(), servers.join()]
    done += [stage.join() for stage in without_servers]
    if not any(stage.failed for stage in done):
        done.append(Stage("check what was recorded", [*MAKE, "conformance"]).run())
    return done


def minutes(seconds):
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:3} min {rest:2} s"


def main():
    begun = time.monotonic()
    done = stages()
    total = time.monotonic() - begun
    print("\nwhere the time went")
    for stage in done:
        print(f"  {minutes(stage.seconds)}  {stage.seconds / total:4.0%}  {stage.name}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"  {minutes(total)}  100%  in all, with {minutes(used.ru_utime + used.ru_stime).strip()} of processors")
    for stage in done:
        for line in stage.failures[:MOST_LINES]:
            print(f"  {stage.name}: {line}")
    sys.exit(any(stage.failed for stage in done))


if __name__ == "__main__":
    main()
