"""Checks parameters against botocore's models. botocore itself does not check patterns, enums or maximums."""

import base64
import datetime
import functools
from collections.abc import Iterator

import regex
from botocore.model import Shape

TYPES = {
    "structure": dict,
    "map": dict,
    "list": list,
    "string": str,
    "character": str,
    "integer": int,
    "long": int,
    "float": (int, float),
    "double": (int, float),
    "boolean": bool,
    "blob": (str, bytes),
    "timestamp": (int, float, str, datetime.datetime),
}


def problems(shape: Shape | None, value, where: str = "") -> Iterator[str]:
    """Yields each rule of the shape that the value breaks."""
    if shape is None:
        if value:
            yield f"takes no parameters, and has {sorted(value)}"
        return
    kind = shape.type_name
    if not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        yield f"{where} is {shown(value)}, which is not a {kind}"
        return
    yield from outside(shape, value, where)
    match kind:
        case "structure":
            for name in shape.required_members:
                if value.get(name) is None:
                    yield f"{joined(where, name)} is required but missing"
            for name, part in value.items():
                if name not in shape.members:
                    yield f"{joined(where, name)} is not in the model"
                elif part is not None:
                    yield from problems(shape.members[name], part, joined(where, name))
        case "list":
            for index, part in enumerate(value):
                yield from problems(shape.member, part, f"{where}[{index}]")
        case "map":
            for key, part in value.items():
                yield from problems(shape.key, key, f"a key of {where}")
                yield from problems(shape.value, part, joined(where, key))
        case "string":
            if shape.enum and value not in shape.enum:
                yield f"{where} is {shown(value)}, which is none of {', '.join(shape.enum)}"
            pattern = shape.metadata.get("pattern")
            if pattern and not compiled(pattern).fullmatch(value):
                yield f"{where} is {shown(value)}, which does not match {pattern}"


def outside(shape: Shape, value, where: str) -> Iterator[str]:
    """Yields a length or a number that is outside the model's limits."""
    match shape.type_name:
        case "blob" if isinstance(value, str):
            size, what = len(base64.b64decode(value)), "bytes"
        case "blob":
            size, what = len(value), "bytes"
        case "string":
            size, what = len(value), "characters"
        case "list" | "map":
            size, what = len(value), "items"
        case "integer" | "long" | "float" | "double":
            size, what = value, ""
        case _:
            return
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if low is not None and size < low:
        yield f"{where} is {size} {what}".rstrip() + f"; the minimum is {low}"
    if high is not None and size > high:
        yield f"{where} is {size} {what}".rstrip() + f"; the maximum is {high}"


@functools.cache
def compiled(pattern: str):
    # Python's `re` does not support \p{L}.
    return regex.compile(pattern)


def joined(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def shown(value) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
