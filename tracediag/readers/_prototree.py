"""Small protobuf messages -> trees of dictionaries, from the wire format or from text format, by a table of the fields that matter.

A tree maps a field's name to the list of its values: numbers, str, or trees. Text format: https://protobuf.dev/reference/protobuf/textformat-spec/
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tracediag.readers._wire import BYTES, VARINT, WireError, fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Schema", "Tree", "decode", "first", "parse_text"]

Tree = dict[str, list[Any]]
Schema = dict[str, dict[int, tuple[str, str]]]
"""Message -> field number -> (name, type); type: "int", "str" or the name of a message."""

_DEPTH = 60
_TOKEN = re.compile(
    r"\s*(?:#[^\n]*\n\s*)*"
    r"""(?:([A-Za-z_]\w*)|("[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*')|([-+]?[\w.+-]+)|([{}<>\[\]:,;]))""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)


def decode(schema: Schema, message: str, data: bytes, start: int, end: int) -> tuple[Tree, bool]:
    """(tree of the message in data[start:end], whether it was whole); fields that the schema does not name are passed over."""
    tree: Tree = {}
    table = schema[message]
    whole = True
    try:
        for number, wire, a, b in fields(data, start, end):
            name, kind = table.get(number, ("", ""))
            if not name:
                continue
            if kind == "int" and wire == VARINT:
                tree.setdefault(name, []).append(a - (1 << 64) if a >> 63 else a)
            elif kind == "str" and wire == BYTES:
                tree.setdefault(name, []).append(data[a:b].decode("utf-8", "replace"))
            elif kind in schema and wire == BYTES:
                child, child_whole = decode(schema, kind, data, a, b)
                whole &= child_whole
                tree.setdefault(name, []).append(child)
    except WireError as error:
        whole = False
        number, at = (error.args[1], error.args[2]) if len(error.args) == 3 else (0, 0)
        name, kind = table.get(number, ("", ""))
        if kind in schema:  # the file ends inside this message: take what is whole of it
            tree.setdefault(name, []).append(decode(schema, kind, data, at, end)[0])
    return tree, whole


def parse_text(text: str) -> tuple[Tree, bool]:
    """(tree of a message in text format, whether it was whole). Numbers become int, everything else str."""
    tokens = _tokens(text)
    return _message(tokens, "", 0)


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while match := _TOKEN.match(text, at):
        at = match.end()
        yield match.group(match.lastindex or 0)
    if text[at:].strip():
        yield "\0"  # no token of the format


def _message(tokens: Iterator[str], closing: str, depth: int) -> tuple[Tree, bool]:
    tree: Tree = {}
    for token in tokens:
        if token in ("}", ">"):
            return tree, token == closing
        if token in (",", ";"):
            continue
        if depth > _DEPTH or not (token[0].isalpha() or token[0] == "_"):
            return tree, False
        value, whole = _value(tokens, depth)
        if value is not None:
            tree.setdefault(token, []).extend(value if isinstance(value, list) else [value])
        if not whole:
            return tree, False
    return tree, not closing


def _value(tokens: Iterator[str], depth: int) -> tuple[Any, bool]:
    token = next(tokens, "\0")
    if token == ":":
        token = next(tokens, "\0")
    if token in ("{", "<"):
        return _message(tokens, "}" if token == "{" else ">", depth + 1)
    if token == "[":
        found: list[Any] = []
        for item in tokens:
            if item == "]":
                return found, True
            if item in ("{", "<"):
                child, whole = _message(tokens, "}" if item == "{" else ">", depth + 1)
                found.append(child)
                if not whole:
                    return found, False
            elif item != ",":
                found.append(_scalar(item))
        return found, False
    return (None, False) if token in ("\0", "}", ">", "]") else (_scalar(token), True)


def _scalar(token: str) -> Any:
    if token[0] in "\"'":
        return _ESCAPE.sub(_unescape, token[1:-1])
    try:
        return int(token)
    except ValueError:
        return token


def _unescape(match: re.Match[str]) -> str:
    octal, hexadecimal, plain = match.groups()
    if octal:
        return chr(int(octal, 8))
    return chr(int(hexadecimal, 16)) if hexadecimal else {"n": "\n", "t": "\t", "r": "\r"}.get(plain, plain)


def first(tree: Mapping[str, list[Any]], name: str, default: Any = None) -> Any:
    """First value of a field, `default` where it is missing."""
    values = tree.get(name)
    return values[0] if values else default
