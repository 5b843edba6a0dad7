"""Requests as `tests/tools/recorder.py` writes them, decoded with botocore's models of the services."""

import base64
import dataclasses
import functools
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, unquote

import botocore.session
import cbor2
from botocore.model import OperationModel, OperationNotFoundError, ServiceModel, Shape

# Maps a service's signing name to the name of its botocore model, if the two differ.
SIGNED_AS = {"monitoring": "cloudwatch"}

# Prefix for the name of a member that the model lacks.
UNKNOWN = "?"


@dataclasses.dataclass
class Request:
    """A call of an operation, by the handler or by a command such as `dead list`."""

    sender: str
    operation: OperationModel
    parameters: dict
    status: int

    @property
    def service(self) -> str:
        return self.operation.service_model.service_name

    @property
    def name(self) -> str:
        return f"{self.service}:{self.operation.name}"


class Undecodable(Exception):
    """A request that matches no operation of the service's model."""


@functools.cache
def model(service: str) -> ServiceModel:
    loader = botocore.session.get_session().get_component("data_loader")
    return ServiceModel(loader.load_service_model(service, "service-2"), service)


def lines(folder: Path) -> Iterator[dict]:
    for path in sorted(folder.glob("*.jsonl")):
        with path.open(encoding="utf-8") as file:
            # A killed server may leave an incomplete last line.
            yield from (json.loads(line) for line in file if line.endswith("\n"))


def decode(line: dict) -> Request:
    headers = line["headers"]
    scope = re.search(r"Credential=[^/]+/\d+/[\w-]+/([\w-]+)/aws4_request", headers.get("authorization", ""))
    if scope is None:
        raise Undecodable(f"{line['method']} {line['path']} is not signed")
    service = model(SIGNED_AS.get(scope[1], scope[1]))
    body = base64.b64decode(line["body"])
    if headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    try:
        if headers.get("smithy-protocol") == "rpc-v2-cbor":
            operation = service.operation_model(line["path"].rsplit("/", 1)[1])
            parameters = cbor2.loads(body) if body else {}
        elif target := headers.get("x-amz-target"):
            operation = service.operation_model(target.split(".")[1])
            parameters = json.loads(body or b"{}")
        elif service.protocol == "rest-json":
            operation, parameters = of_rest(service, line, body)
        else:
            operation, parameters = of_query(service, body.decode())
    except (LookupError, ValueError, OperationNotFoundError) as error:
        raise Undecodable(f"{service.service_name}: {error!r}") from error
    return Request(sender(headers), operation, parameters, line["status"])


def sender(headers: dict) -> str:
    """The sender in the user agent: `handler`, or a command such as `dead list` (see `tests/tools/named_command.sh`)."""
    name = re.search(r"\bapp/(\S+)", f"{headers.get('user-agent')} {headers.get('x-amz-user-agent')}")
    command = name[1] if name else "handler"
    return command.replace("--", " --").replace("dead-", "dead ")


def of_rest(service: ServiceModel, line: dict, body: bytes) -> tuple[OperationModel, dict]:
    operation, labels = routed(service, line["method"], line["path"])
    shape = operation.input_shape
    payload = shape.serialization.get("payload")
    names = {}
    for name, member in shape.members.items():
        location = member.serialization.get("location", "body")
        names[location, member.serialization.get("name", name).lower()] = name
    parameters = {payload: body} if payload and body else {}

    def put(location, name, value):
        member = names.get((location, name.lower()), UNKNOWN + name)
        if location == "body" or member not in shape.members:
            parameters[member] = value
        elif shape.members[member].type_name == "list":
            # In a query string, a list parameter occurs once for each element.
            parameters.setdefault(member, []).append(typed(shape.members[member].member, value))
        else:
            parameters[member] = typed(shape.members[member], value)

    for name, value in labels.items():
        put("uri", name, unquote(value))
    for name, value in parse_qsl(line["query"], keep_blank_values=True):
        put("querystring", name, value)
    for name, value in line["headers"].items():
        if ("header", name.lower()) in names:
            put("header", name, value)
    if not payload and body:
        for name, value in json.loads(body).items():
            put("body", name, value)
    return operation, parameters


def routed(service: ServiceModel, method: str, path: str) -> tuple[OperationModel, dict]:
    """The operation whose URI matches, and the path's labels. If two match, the one with the longer literal part."""
    found = []
    for operation in map(service.operation_model, service.operation_names):
        uri = operation.http["requestUri"].split("?")[0].rstrip("/")
        parts = [
            f"(?P<{part[1:-1]}>[^/]+)" if part.startswith("{") else re.escape(part)
            for part in re.split(r"(\{\w+\})", uri)
        ]
        match = re.fullmatch("".join(parts), path.rstrip("/"))
        if match and operation.http["method"] == method:
            found.append((len(re.sub(r"\{\w+\}", "", uri)), operation, match.groupdict()))
    if not found:
        raise Undecodable(f"{service.service_name} has no operation at {method} {path}")
    return max(found, key=lambda it: it[0])[1:]


def of_query(service: ServiceModel, body: str) -> tuple[OperationModel, dict]:
    sent = dict(parse_qsl(body, keep_blank_values=True))
    operation = service.operation_model(sent.pop("Action"))
    del sent["Version"]
    tree = {}
    for key, value in sent.items():
        *path, last = key.split(".")
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[last] = value
    return operation, typed(operation.input_shape, tree) if operation.input_shape else tree


def typed(shape: Shape, value):
    """Converts a value that was sent as a string, or as a tree of strings."""
    match shape.type_name:
        case "structure":
            names = {member.serialization.get("name", name): name for name, member in shape.members.items()}
            known = {names.get(name, UNKNOWN + name): part for name, part in value.items()}
            return {
                name: typed(shape.members[name], part) if name in shape.members else part
                for name, part in known.items()
            }
        case "list" if value == "":
            return []
        case "list":
            parts = value[shape.member.serialization.get("name", "member")]
            return [typed(shape.member, parts[index]) for index in sorted(parts, key=int)]
        case "map":
            return {it["key"]: typed(shape.value, it["value"]) for it in value["entry"].values()}
        case "integer" | "long":
            return int(value)
        case "float" | "double":
            return float(value)
        case "boolean":
            return {"true": True, "false": False}[value]
    return value
