"""Runs commands of the AWS CLI for `tests/tools/bin/aws`. Importing it takes half a second of processor time; here, once.

    aws_server.py NAME

It listens on the abstract socket NAME, and prints a line once it does.
"""

import json
import os
import signal
import socket
import sys

from awscli import clidriver
from botocore import awsrequest, client, httpsession, parsers, waiter  # noqa: F401

clidriver.create_clidriver()  # imports the rest
DATA = os.environ["AWS_DATA_PATH"]  # importing it set this


def run(asked):
    """In a process of its own: the command, with the caller's arguments, folder, environment and files."""
    request, files, _, _ = socket.recv_fds(asked, 1 << 20, 3)
    arguments, folder, environment = json.loads(request)
    for descriptor, file in enumerate(files):
        os.dup2(file, descriptor)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment, AWS_DATA_PATH=DATA)
    try:
        sys.argv[1:] = arguments
        code = clidriver.main()
    except SystemExit as end:
        code = end.code or 0
    sys.stdout.flush()
    sys.stderr.flush()
    asked.send(bytes([code]))


signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("\0" + sys.argv[1])
listener.listen(64)
print("ready", flush=True)
while True:
    asked, _ = listener.accept()
    if os.fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listener.close()
        run(asked)
        os._exit(0)
    asked.close()
