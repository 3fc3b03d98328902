"""Which part of a file a request asks for: RFC 9110, 14, with one range at a time."""

import re

from aiohttp import web

_ONE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class RangeRefused(Exception):
    """A part that the file does not have."""


def asked_range(request: web.Request, size: int, tag: str) -> tuple[int, int, int]:
    """The first byte, the one after the last, and the status to answer with. What is not understood, or is about
    another version of the file (If-Range), is answered with all of it. Raises RangeRefused."""
    whole = (0, size, 200)
    found = _ONE.fullmatch(request.headers.get("Range", "").replace(" ", ""))
    meant = request.headers.get("If-Range")
    if not size or not found or found.groups() == ("", "") or (meant is not None and meant != f'"{tag}"'):
        return whole
    first, last = found.groups()
    begin = int(first) if first else max(0, size - int(last))
    end = min(int(last) + 1, size) if first and last else size
    if first and last and int(last) < int(first):
        return whole
    if begin >= size:
        raise RangeRefused(f"The file has {size:,} bytes.")
    return begin, end, 206
