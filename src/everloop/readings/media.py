"""Images and documents that models are shown: what a file is, by its first bytes, and how large it may be."""

HEAD = 32  # bytes that tell what a file is
LARGEST_IMAGE = 20_000_000  # bytes; what is more than hosts take is made smaller
LARGEST_DOCUMENT = 14_000_000  # bytes: in base64 nearly 20 MB, and some hosts take no larger request

_ARCHIVE = b"PK\3\4"
_INSIDE = {b"word/document.xml": "docx", b"xl/workbook.xml": "xlsx", b"ppt/presentation.xml": "pptx"}
_OPEN_XML = "application/vnd.openxmlformats-officedocument"
_OFFICE = {
    "docx": f"{_OPEN_XML}.wordprocessingml.document",
    "xlsx": f"{_OPEN_XML}.spreadsheetml.sheet",
    "pptx": f"{_OPEN_XML}.presentationml.presentation",
}
_PNG = b"\x89PNG\r\n\x1a\n"


def kind_of(data: bytes) -> str:
    """The mime type of an image or document that models are shown; "" for anything else, such as text."""
    if data.startswith(_PNG) and len(data) >= 24:
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if _is_gif(data):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "application/pdf" if data.startswith(b"%PDF-") else ""


def mime_of(data: bytes) -> str:
    """What a file is, for whoever takes it along, by what it holds."""
    if kind := kind_of(data):
        return kind
    if is_text(data):
        return "text/plain"
    if kind := office_of(data):
        return _OFFICE[kind]
    return "application/zip" if data.startswith(_ARCHIVE) else "application/octet-stream"


def office_of(data: bytes) -> str:
    """docx, xlsx or pptx, by what is inside; "" for anything else."""
    # Names stand in an archive as they are; whether it is what it seems is seen when it is read.
    return next((kind for part, kind in _INSIDE.items() if part in data), "") if data.startswith(_ARCHIVE) else ""


def is_text(data: bytes) -> bool:
    try:
        return "\x00" not in data.decode()
    except UnicodeDecodeError:
        return False


def limit_of(mime: str) -> int:
    """How many bytes of it are taken at all."""
    return LARGEST_IMAGE if mime.startswith("image/") else LARGEST_DOCUMENT


def _is_gif(data: bytes) -> bool:
    # A text that begins so has letters where an image has its size, of which the high bytes are small.
    return data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 13 and max(data[7], data[9]) < 0x20
