"""Records the requests that a server receives from the handler and from `comeback`, for `make conformance`."""

import base64
import json
import re

# Matches the user agent of the handler (`exec-env`) or of a command (`app`), but not of the tests' own clients.
SENDER = re.compile(r"\b(?:exec-env/AWS_Lambda|app/)")


def recording(app, path):
    """Wraps an ASGI application. Each request becomes one JSON line in the file, with the status of its response."""
    # The file is written line by line. The server is killed at the end, so buffered lines would be lost.
    file = open(path, "w", buffering=1, encoding="utf-8")

    async def record(scope, receive, send):
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in scope.get("headers", [])}
        agent = f"{headers.get('user-agent')} {headers.get('x-amz-user-agent')}"
        if scope["type"] != "http" or not SENDER.search(agent):
            return await app(scope, receive, send)
        body, statuses = [], []

        async def received():
            message = await receive()
            body.append(message.get("body", b""))
            return message

        async def sent(message):
            statuses.append(message.get("status"))
            await send(message)

        try:
            await app(scope, received, sent)
        finally:
            line = {
                "method": scope["method"],
                "path": scope["raw_path"].decode(),
                "query": scope["query_string"].decode(),
                "headers": headers,
                "body": base64.b64encode(b"".join(body)).decode(),
                "status": statuses[0] if statuses else None,
            }
            file.write(json.dumps(line) + "\n")

    return record
