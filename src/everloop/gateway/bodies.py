"""Reading what a request carries."""

from typing import TypeVar

import msgspec
from aiohttp import web

from .refusals import Refused

LARGEST = 32_000_000  # bytes: a document of the largest size, as base64, and an image beside it
DEEPEST = 200

Shape = TypeVar("Shape")


async def read_body(request: web.Request, most: int = LARGEST) -> bytes:
    """Raises Refused when there is more than `most`; what comes after that is not read."""
    if request.headers.get("Content-Encoding", "identity") != "identity":  # a little may become much
        raise Refused("Send the request as it is, without Content-Encoding.", "unsupported_encoding", status=415)
    body = bytearray()
    async for piece in request.content.iter_any():
        body += piece
        if len(body) > most:
            raise Refused(f"The request has more than {most:,} bytes.", "request_too_large", status=413)
    return bytes(body)


def read_json(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Refused(f"The request is not valid JSON ({error}).", "invalid_json") from error


def shaped(plain: object, shape: type[Shape]) -> Shape:
    """A JSON value as what it is meant to be. Raises Refused, which names the field."""
    try:
        return msgspec.convert(plain, shape)
    except (msgspec.ValidationError, RecursionError) as error:
        text, _, place = str(error).partition(" - at `$")
        param = place.rstrip("`").removeprefix(".") or None
        where = f" at {param}" if param else ""
        raise Refused(f"The request is not as it should be{where}: {text}.", param=param) from error
