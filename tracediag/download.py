"""Fetch a trace from the web, such as a file attached to an issue: whole, into memory, within limits of size and time.

A link that is read in pieces would be asked for many times, and the signed links behind attachments answer neither HEAD nor ranges.
"""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import unquote, urlsplit

from tracediag.errors import InputError

__all__ = ["LARGEST", "LONGEST", "QUIET", "download"]

LARGEST = 1 << 30
"""Most bytes that are fetched."""
LONGEST = 600.0
"""Most seconds that it may take."""
QUIET = 30.0
"""Most seconds without a byte."""
BLOCK = 1 << 20
_PAGE = (b"<!doctype html", b"<html")
_STATUS = {
    0: "the redirects do not end",
    401: "it wants a login: fetch it with your browser and give the file",
    403: "it is not public, or the link has expired: fetch it with your browser and give the file",
    404: "not there, or not public: fetch it with your browser and give the file",
    410: "it is gone",
}


def download(url: str) -> tuple[str, bytes]:
    """The name (without query) and the bytes behind an http or https URL.

    Raises InputError when it cannot be fetched, is larger than LARGEST or takes longer than LONGEST or QUIET.
    """
    import asyncio  # here, because files of this machine are read far more often

    try:
        import aiohttp
        import fsspec
    except ImportError as error:
        raise InputError("reading from the web needs aiohttp: pip install 'tracediag[https]'") from error
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InputError(f"{url}: no address ({error})") from error
    plain = f"{parts.hostname}{parts.path}"  # a query may hold a key
    timeout = aiohttp.ClientTimeout(total=LONGEST, sock_connect=QUIET, sock_read=QUIET)
    client = {"timeout": timeout, "trust_env": True, "headers": {"User-Agent": "tracediag"}}
    web = fsspec.filesystem(parts.scheme, client_kwargs=client, skip_instance_cache=True)
    try:
        data = _read(web, url, plain)
    except FileNotFoundError as error:
        raise InputError(f"{plain}: {_STATUS[404]}") from error
    except aiohttp.ClientResponseError as error:
        raise InputError(f"{plain}: {_STATUS.get(error.status, f'the server answers {error.status}')}") from error
    except (asyncio.TimeoutError, TimeoutError) as error:
        raise InputError(f"{plain}: no answer for {QUIET:g} s; try again, or fetch it with your browser and give the file") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise InputError(f"{plain}: cannot be fetched ({' '.join(str(error).split()) or type(error).__name__})") from error
    if data[:512].lstrip().lower().startswith(_PAGE):
        raise InputError(f"{plain}: this is a web page, not a file; give the link of the attached file itself")
    return unquote(parts.path.rstrip("/").rsplit("/", 1)[-1]) or str(parts.hostname), data


def _read(web: Any, url: str, plain: str) -> bytes:
    """All bytes, in one request. size: known or not, it must not be asked for."""
    began, blocks, total = time.monotonic(), [], 0
    with web.open(url, "rb", block_size=0, size=LARGEST) as stream:
        while block := stream.read(BLOCK):
            blocks.append(block)
            total += len(block)
            if total > LARGEST:
                raise InputError(f"{plain}: more than {LARGEST >> 20} MiB; fetch it and cut it to fewer steps")
            if time.monotonic() - began > LONGEST:
                raise InputError(f"{plain}: not whole after {LONGEST:g} s; fetch it with your browser and give the file")
    return b"".join(blocks)
