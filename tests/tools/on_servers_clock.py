#!/usr/bin/env python3
"""Runs $COMEBACK_PROGRAM on the clock of the server at AWS_ENDPOINT_URL, which may be faster than real time."""

import email.utils
import os
import ssl
import sys
import time
import urllib.request

health = os.environ["AWS_ENDPOINT_URL"] + "/_ministack/health"
with urllib.request.urlopen(health, context=ssl._create_unverified_context()) as answer:
    there = email.utils.parsedate_to_datetime(answer.headers["date"]).timestamp()

# The server gives its date in whole seconds, and about a minute of the server's time passes while the program starts.
ahead = max(0, int(there - time.time())) + 60
program = [os.path.join(os.path.dirname(__file__), "named_command.sh"), *sys.argv[1:]]
os.execvp("faketime", ["faketime", "--exclude-monotonic", "-f", f"+{ahead}s", *program])
