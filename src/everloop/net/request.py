"""A request as it is written on a connection."""

import re
from collections.abc import Mapping

_NAMES = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_FRAMING = {"content-length", "transfer-encoding"}  # how long a body is, which nobody says but `write`


def write(
    method: str, where: str, host: str, headers: Mapping[str, str], body: bytes, always: Mapping[str, str]
) -> bytes:
    """`always` is said unless the headers say something else. Raises ValueError when a line would be more than one, or
    another than it seems."""
    given = {name.lower() for name in headers}
    if not given.isdisjoint(_FRAMING):
        headers = {name: value for name, value in headers.items() if name.lower() not in _FRAMING}
    lines = [f"{method} {where} HTTP/1.1"] if "host" in given else [f"{method} {where} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in always.items() if name.lower() not in given]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body or method == "POST":
        lines.append(f"Content-Length: {len(body)}")
    if " " in where or "" in given or not _NAMES.fullmatch(method + "".join(headers)):
        raise ValueError("a method, an address or the name of a header has characters that it cannot have")
    if not "".join(lines).isprintable():
        raise ValueError("a header has characters that cannot be sent")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
