"""Images and documents that a model may be shown, made small enough for every host."""

import asyncio
import io
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from ..readings.media import LARGEST_DOCUMENT, is_text, kind_of, mime_of, office_of
from .enclosing import READ_AS_TEXT

if TYPE_CHECKING:
    from PIL.Image import Image as Pixels

MOST = 3_500_000  # bytes: the strictest host takes 5 MB, of which base64 eats a quarter
_EDGE = 8000  # pixels
_COMFORT = 2000  # pixels: more than any host looks at
_PIXELS = 80_000_000  # more would take too much memory to be made smaller


class AttachedFile(Struct, frozen=True):
    """A file that comes with a message. `mime` is that of what is shown; else `kind` says what it is, "" being text,
    which is shown as text. `why` tells why something is not shown that would be."""

    name: str
    data: bytes
    mime: str = ""
    kind: str = ""
    why: str = ""


async def looked_at(name: str, data: bytes) -> AttachedFile:
    """A file by what it holds; a picture that is too large for hosts is made smaller."""
    return await asyncio.to_thread(_looked_at, name, data)


async def fit(data: bytes, mime: str) -> bytes:
    """What is shown of an image or a document: the same, or an image of the same kind that is smaller.

    Raises ValueError when it cannot be shown: a host would refuse it, and with it all that follows.
    """
    _check(data, mime)
    return data if _fits(data, mime) else await asyncio.to_thread(_shrink, data, mime)


def _looked_at(name: str, data: bytes) -> AttachedFile:
    mime = kind_of(data)
    if not mime and is_text(data):
        return AttachedFile(name, data)
    if not mime:
        kind = office_of(data)
        return AttachedFile(name, data, kind=kind if kind in READ_AS_TEXT else mime_of(data))
    try:
        _check(data, mime)
        return AttachedFile(name, data if _fits(data, mime) else _shrink(data, mime), mime)
    except ValueError as error:
        return AttachedFile(name, data, kind=mime, why=str(error))


def _check(data: bytes, mime: str) -> None:
    """Refuse what no host can read, as far as that is seen without decoding it."""
    if kind_of(data) != mime:
        raise ValueError(f"it is not {mime}")
    if not _is_whole(data, mime):
        raise ValueError("the image is cut off")
    if mime == "application/pdf" and len(data) > LARGEST_DOCUMENT:
        raise ValueError(f"it has {len(data):,} bytes; a document may have {LARGEST_DOCUMENT:,}")


def _fits(data: bytes, mime: str) -> bool:
    return mime == "application/pdf" or (len(data) <= MOST and max(_size(data, mime)) <= _EDGE)


def _is_whole(data: bytes, mime: str) -> bool:
    match mime:
        case "image/png":
            return b"IEND" in data
        case "image/jpeg":
            scan = next((at for marker, at in _segments(data) if marker == 0xDA), len(data))
            return data.find(b"\xff\xd9", scan) >= 0  # what is before the scan may hold a small image of its own
        case "image/webp":
            return len(data) >= 8 + int.from_bytes(data[4:8], "little")
    return True


def _size(data: bytes, mime: str) -> tuple[int, int]:
    """Width and height, as far as the head of an image tells them; (0, 0) when it does not."""
    try:
        match mime:
            case "image/png":
                width, height = struct.unpack(">II", data[16:24])
            case "image/gif":
                width, height = struct.unpack("<HH", data[6:10])
            case "image/webp":
                width, height = _size_of_webp(data)
            case _:
                frames = (at for marker, at in _segments(data) if _is_frame(marker))
                at = next(frames, len(data))
                height, width = struct.unpack(">HH", data[at + 5 : at + 9])
    except struct.error:
        return 0, 0
    return width, height


def _segments(data: bytes) -> Iterator[tuple[int, int]]:
    """The markers of a JPEG up to its first scan, and where they stand."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # padding
            at += 1
            continue
        yield marker, at
        if marker == 0xDA:
            return
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")


def _is_frame(marker: int) -> bool:
    return 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC)


def _size_of_webp(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack("<HH", data[26:30])
    return width & 0x3FFF, height & 0x3FFF


def _shrink(data: bytes, mime: str) -> bytes:
    width, height = _size(data, mime)
    if width * height > _PIXELS:
        raise ValueError(f"it has {width * height:,} pixels; at most {_PIXELS:,} are taken")
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise ValueError(
            "it is too large, and Pillow, which makes it smaller, is not installed (extra [images])"
        ) from None
    try:
        image = _plain(Image.open(io.BytesIO(data)), mime)
        edge = _COMFORT
        while True:
            image.thumbnail((edge, edge))
            out = io.BytesIO()
            # The way up is written beside the picture and would be lost, so it is turned.
            ImageOps.exif_transpose(image).save(out, mime.removeprefix("image/"))
            if out.tell() <= MOST:
                return out.getvalue()
            edge //= 2
    except Exception as error:  # a stranger's code reads a stranger's bytes
        raise ValueError(f"it is too large, and cannot be made smaller ({error})") from error


def _plain(image: "Pixels", mime: str) -> "Pixels":
    """Colours that can be mixed, so that letters stay readable, and that this kind of file can hold."""
    if image.mode in ("L", "RGB") or (image.mode in ("LA", "RGBA") and mime != "image/jpeg"):
        return image
    if image.mode == "I;16":  # a conversion alone would cut 16 bits of grey off at white
        return image.convert("I").point(lambda grey: grey / 256).convert("L")
    return image.convert("RGBA" if image.has_transparency_data and mime != "image/jpeg" else "RGB")
