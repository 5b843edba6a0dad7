"""Runs commands of the AWS CLI for `tests/tools/bin/aws`.

Importing the CLI and reading a service's models takes half a second of processor time. Here, this happens only once.

    aws_server.py NAME

The server prints a line once it listens on the abstract socket NAME.
"""

import contextlib
import functools
import json
import os
import signal
import socket
import sys

from awscli import clidriver
from botocore import awsrequest, client, exceptions, httpsession, loaders, parsers, waiter  # noqa: F401

models = {}
loaders.Loader._cache = property(lambda _: models, lambda *_: None)  # one cache for all commands
session = clidriver.create_clidriver().session  # imports the rest of the CLI
DATA = os.environ["AWS_DATA_PATH"]  # set by the import of the CLI


@functools.cache
def read_models(service):
    """Reads the models for a service's commands, so that each command finds them in memory."""
    if service in session.get_available_services():
        session.create_client(service, region_name="us-east-1")
        for read in session.get_paginator_model, session.get_waiter_model:
            with contextlib.suppress(exceptions.UnknownServiceError):
                read(service)


def run(arguments, folder, environment, files):
    """Runs a command in this (forked) process, with the caller's arguments, folder, environment and files."""
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
    return code


signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no command's process becomes a zombie
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("\0" + sys.argv[1])
listener.listen(64)
print("ready", flush=True)
while True:
    asked, _ = listener.accept()
    request, files, _, _ = socket.recv_fds(asked, 1 << 20, 3)
    if request:  # empty if the caller was killed
        arguments, folder, environment = json.loads(request)
        read_models(next(iter(arguments), ""))
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            asked.send(bytes([run(arguments, folder, environment, files)]))
            os._exit(0)
    for file in files:
        os.close(file)
    asked.close()
