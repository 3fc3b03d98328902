"""A request as it is made, and as it is written on a connection."""

import re
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

_NAMES = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_FRAMING = {"content-length", "transfer-encoding"}  # how long a body is, which nobody says but `write`

_Lines = tuple[tuple[str, str], ...]


class HttpRequest(Struct, frozen=True):
    """What somebody asks for. `seconds` and `deadline` are as the Http port says; what `follows` goes where it is
    redirected to."""

    method: str
    url: str
    body: bytes
    headers: Mapping[str, str]
    seconds: float
    deadline: float | None = None
    follows: bool = True


def write(
    method: str, where: str, host: str, headers: Mapping[str, str], body: bytes, always: Mapping[str, str]
) -> bytes:
    """`always` is said unless the headers say something else. Raises ValueError when a line would be more than one, or
    another than it seems."""
    head = _head(method, where, host, tuple(headers.items()), tuple(always.items()))
    if body or method == "POST":
        return b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body)
    return head + b"\r\n"


@lru_cache(maxsize=128)  # a model's host is told the same with every turn
def _head(method: str, where: str, host: str, headers: _Lines, always: _Lines) -> bytes:
    given = {name.lower() for name, _ in headers}
    headers = tuple((name, value) for name, value in headers if name.lower() not in _FRAMING)
    lines = [f"{method} {where} HTTP/1.1"] if "host" in given else [f"{method} {where} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in always if name.lower() not in given]
    lines += [f"{name}: {value}" for name, value in headers]
    if " " in where or "" in given or not _NAMES.fullmatch(method + "".join(name for name, _ in headers)):
        raise ValueError("a method, an address or the name of a header has characters that it cannot have")
    if not "".join(lines).isprintable():
        raise ValueError("a header has characters that cannot be sent")
    return "".join(f"{line}\r\n" for line in lines).encode()
