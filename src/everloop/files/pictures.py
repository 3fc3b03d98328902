"""Images and documents that a model may be shown: what kind a file is, and how it is made small enough."""

import asyncio
import io
import struct
from pathlib import Path

from msgspec import Struct

from everloop.core.errors import MailRefused

MOST = 3_500_000  # bytes: the strictest host takes 5 MB, of which base64 eats a quarter
_EDGE = 8000  # pixels
_COMFORT = 2000  # pixels: more than any host looks at
_LARGEST = 30_000_000
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


class Attachment(Struct, frozen=True):
    """A file that comes with a message. `mime` is "" for text, which is shown as text."""

    name: str
    data: bytes
    mime: str = ""


def kind_of(data: bytes) -> str:
    """The mime type of an image or document that models are shown; "" for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in _MAGIC if data.startswith(magic)), "")


async def attach(path: str | Path) -> Attachment:
    """Read a file that someone wants to show. Raises MailRefused when it cannot be."""
    return await asyncio.to_thread(_attach, Path(path))


async def fit(data: bytes, mime: str) -> bytes:
    """The image, made smaller if it has to be. Raises ValueError when that cannot be done."""
    return data if _fits(data) else await asyncio.to_thread(_shrink, data, mime)


def _fits(data: bytes) -> bool:
    return len(data) <= MOST and max(_size(data)) <= _EDGE


def _attach(path: Path) -> Attachment:
    try:
        size = path.stat().st_size
        if size > _LARGEST:
            raise MailRefused(f"{path} has {size:,} bytes; at most {_LARGEST:,} are taken")
        data = path.read_bytes()
    except OSError as error:
        raise MailRefused(f"{path} cannot be read ({error.strerror})") from error
    mime = kind_of(data)
    if not mime and not _is_text(data):
        raise MailRefused(f"{path} is neither text nor an image (PNG, JPEG, GIF, WebP) nor a PDF")
    try:
        if mime and not _fits(data):
            _shrink(data, mime)
    except ValueError as error:
        raise MailRefused(f"{path} cannot be shown: {error}") from error
    return Attachment(path.name, data, mime)


def _is_text(data: bytes) -> bool:
    try:
        return "\x00" not in data.decode()
    except UnicodeDecodeError:
        return False


def _size(data: bytes) -> tuple[int, int]:
    """Width and height of a PNG, GIF or JPEG, as far as its head tells; (0, 0) when it does not."""
    try:
        if data.startswith(b"\x89PNG"):
            width, height = struct.unpack(">II", data[16:24])
            return width, height
        if data.startswith(b"GIF"):
            width, height = struct.unpack("<HH", data[6:10])
            return width, height
        if data.startswith(b"\xff\xd8"):
            return _size_of_jpeg(data)
    except (struct.error, IndexError):
        pass  # cut off: the host will say so
    return 0, 0


def _size_of_jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while data[at] == 0xFF:
        marker, length = data[at + 1], struct.unpack(">H", data[at + 2 : at + 4])[0]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + length
    return 0, 0


def _shrink(data: bytes, mime: str) -> bytes:
    if not mime.startswith("image/"):
        raise ValueError(f"it has {len(data):,} bytes; a document may have {MOST:,}")
    try:
        from PIL import Image
    except ImportError:
        raise ValueError(
            "it is too large, and Pillow, which makes it smaller, is not installed (extra [images])"
        ) from None
    try:
        image = Image.open(io.BytesIO(data))
        image.load()
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError("it is too large, and not an image that can be made smaller") from error
    for edge in (_COMFORT, _COMFORT // 2, _COMFORT // 4):
        image.thumbnail((edge, edge))
        out = io.BytesIO()
        image.save(out, mime.removeprefix("image/"))
        if out.tell() <= MOST:
            return out.getvalue()
    raise ValueError("it stays too large")
