"""A request as it is written on a connection."""

from collections.abc import Mapping


def write(
    method: str, where: str, host: str, headers: Mapping[str, str], body: bytes, always: Mapping[str, str]
) -> bytes:
    """`always` is said unless the headers say something else. Raises ValueError when a line would be more than one."""
    given = {name.lower() for name in headers}
    lines = [f"{method} {where} HTTP/1.1"] if "host" in given else [f"{method} {where} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in always.items() if name.lower() not in given]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body or method == "POST":
        lines.append(f"Content-Length: {len(body)}")
    if not "".join(lines).isprintable():
        raise ValueError("a header has characters that cannot be sent")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
