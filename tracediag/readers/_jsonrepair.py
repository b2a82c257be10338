"""Make damaged JSON of one event readable: NaN and Infinity, bad UTF-8, raw control characters, wrong escapes, unescaped quotes."""

from __future__ import annotations

import re

import msgspec

__all__ = ["UNREADABLE", "repair"]

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding of JSON raises: no JSON, no UTF-8, nested too deep."""

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|-?\b(?:NaN|nan|Infinity|inf)\b', re.DOTALL)
_CONTROL = {code: f"\\u{code:04x}" for code in range(32)}
_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_NAME = re.compile(r'"name":\s*"')
_NAME_END = re.compile(r'"\s*,\s*"(?:pid|ph|cat|ts|tid|args|dur)"')
_QUOTE = re.compile(r'(?<!\\)"')


def repair(text: bytes) -> tuple[bytes, bool]:
    """(readable JSON, whether bytes that are no UTF-8 were replaced).

    NaN and Infinity become -1e400 in `dur` and `ts`, so that the event counts as one with a bad duration, and null elsewhere.
    """
    plain = text.decode("utf-8", "replace")
    replaced = "\ufffd" in plain and "\ufffd".encode() not in text
    plain = _names(plain)
    plain = re.sub(r'("(?:dur|ts)"\s*:\s*)-?\b(?:NaN|nan|Infinity|inf)\b', r"\g<1>-1e400", plain)
    return _TOKEN.sub(_token, plain).encode(), replaced


def _names(text: str) -> str:
    """`text` with the quotes in names escaped."""
    parts = []
    pos = 0
    while (begin := _NAME.search(text, pos)) and (end := _NAME_END.search(text, begin.end())):
        parts += [text[pos : begin.end()], _QUOTE.sub(r'\\"', text[begin.end() : end.start()]), end.group()]
        pos = end.end()
    return "".join((*parts, text[pos:]))


def _token(match: re.Match[str]) -> str:
    token = match.group()
    if not token.startswith('"'):
        return "null"
    if "\\" in token:
        token = _BAD_ESCAPE.sub(r"\\\\", token)
    return token.translate(_CONTROL)
