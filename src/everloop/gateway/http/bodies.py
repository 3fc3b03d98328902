"""Reading what a request carries."""

from typing import TypeVar

import msgspec
from aiohttp import web

from .errors import Refused

LARGEST = 32_000_000  # bytes: a document of the largest size, as base64, and an image beside it

Shape = TypeVar("Shape")


async def read_body(request: web.Request, most: int = LARGEST) -> bytes:
    """Raises Refused when there is more than `most`; what comes after that is not read."""
    body = bytearray()
    async for piece in request.content.iter_any():
        body += piece
        if len(body) > most:
            raise Refused(413, "request_too_large", f"The request has more than {most:,} bytes.")
    return bytes(body)


def read_json(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Refused(400, "invalid_json", f"The request is not valid JSON ({error}).") from error


def shaped(plain: object, shape: type[Shape]) -> Shape:
    """A JSON value as what it is meant to be. Raises Refused, which names the field."""
    try:
        return msgspec.convert(plain, shape)
    except (msgspec.ValidationError, RecursionError) as error:
        text, _, place = str(error).partition(" - at `$")
        param = place.rstrip("`").removeprefix(".") or None
        where = f" at {param}" if param else ""
        raise Refused(
            400, "invalid_request", f"The request is not as it should be{where}: {text}.", param=param
        ) from error
