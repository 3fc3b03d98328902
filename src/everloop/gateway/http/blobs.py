"""Files that come with a request: as their bytes, as a data: URL, or by an address from which they are fetched."""

import base64
import binascii
import re
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from ...core.message import Part
from ...readings.media import LARGEST_IMAGE
from ..ports import TurnAgent
from .errors import Refused

_KIND = re.compile(r"[a-zA-Z0-9_-]{1,64}")


NO_CONTENT = "A file is sent with its content, its address, or the reference (file:…) of one that you have uploaded."


class Blob(Struct, frozen=True):
    """A file that comes with a message: its content, where it lies, or the reference of one that is kept here."""

    name: str
    data: bytes = b""
    url: str = ""
    ref: str = ""


def blob_of(url: str, name: str) -> Blob:
    """A file by its address, which may be a data URL. Raises Refused."""
    if not url.startswith("data:"):
        if not url.startswith(("https://", "http://")):
            raise Refused(400, "invalid_url", "A file is given as a data: URL, or by an http or https address.")
        return Blob(name or url.split("?")[0].rstrip("/").rpartition("/")[2][:100] or "file", url=url)
    head, comma, body = url.partition(",")
    if not comma:
        raise Refused(400, "invalid_url", "A data: URL has a comma before its content.")
    return Blob(name or _named(head), _decoded(body) if head.endswith(";base64") else unquote_to_bytes(body))


def data_of(text: str, name: str) -> Blob:
    """A file given as a data URL, or as base64 alone."""
    return blob_of(text, name) if text.startswith("data:") else Blob(name or "file", _decoded(text))


def kept(ref: str, name: str) -> Blob:
    """One that was uploaded before (POST /api/files)."""
    if not ref.startswith("file:"):
        raise Refused(400, "file_not_found", NO_CONTENT)
    return Blob(name, ref=ref)


def _named(head: str) -> str:
    kind = head.removeprefix("data:").partition(";")[0].rpartition("/")[2]
    return f"file.{kind}" if _KIND.fullmatch(kind) else "file"


def _decoded(text: str) -> bytes:
    check_size(max(0, len(text) - 4) * 3 // 4)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refused(400, "invalid_base64", f"A file's content is not valid base64 ({error}).") from error


async def enclosed(agent: TurnAgent, blob: Blob, owner: str) -> Part:
    """The part of a message that shows it. An address is whatever a stranger has aimed at, and fetched as such; a
    reference is that of a file of the owner's own."""
    if blob.ref:
        return await agent.enclose_kept(blob.name, blob.ref, owner)
    data = await agent.fetch(blob.url, LARGEST_IMAGE) if blob.url else blob.data
    check_size(len(data))
    return await agent.enclose(blob.name, data, owner)


def check_size(size: int) -> None:
    if size > LARGEST_IMAGE:
        raise Refused(
            413,
            "file_too_large",
            f"A file has more than {LARGEST_IMAGE:,} bytes: upload it (POST /api/files), and name it by its reference.",
        )
