"""What a file is, by what it holds and never by its name; and how large images and documents may be that models are
shown."""

HEAD = 32  # bytes that tell what a file is that models are shown
SNIFFED = 65_536  # bytes that tell what any file is
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
UNKNOWN = "application/octet-stream"
# Nothing here is of a type that a browser would run: a page or an SVG is text.
_BEGINNINGS = {
    b"\x1f\x8b": "application/gzip",
    b"BZh": "application/x-bzip2",
    b"\xfd7zXZ\0": "application/x-xz",
    b"(\xb5/\xfd": "application/zstd",
    b"7z\xbc\xaf'\x1c": "application/x-7z-compressed",
    b"Rar!\x1a\x07": "application/vnd.rar",
    b"PK\5\6": "application/zip",  # an empty one
    b"ID3": "audio/mpeg",
    b"\xff\xfb": "audio/mpeg",
    b"\xff\xf3": "audio/mpeg",
    b"fLaC": "audio/flac",
    b"OggS": "audio/ogg",
    b"\x1aE\xdf\xa3": "video/x-matroska",
    b"\x7fELF": "application/x-executable",
    b"MZ": "application/vnd.microsoft.portable-executable",
    b"\xcf\xfa\xed\xfe": "application/x-mach-binary",
    b"\0asm": "application/wasm",
    b"SQLite format 3\0": "application/vnd.sqlite3",
    b"PAR1": "application/vnd.apache.parquet",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "application/x-ole-storage",
    b"BM": "image/bmp",
    b"II*\0": "image/tiff",
    b"MM\0*": "image/tiff",
}
_RIFF = {b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_BRANDS = {b"M4A ": "audio/mp4", b"qt  ": "video/quicktime", b"heic": "image/heic", b"avif": "image/avif"}


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
    return "application/zip" if data.startswith(_ARCHIVE) else _binary_kind(data)


def mime_of_head(head: bytes, size: int) -> str:
    """As `mime_of`, of a file that has `size` bytes and begins so: that may end in the middle of a letter."""
    if size <= len(head):
        return mime_of(head)
    cuts = (head[: len(head) - cut] for cut in range(4))
    return "text/plain" if any(is_text(each) for each in cuts) else mime_of(head)


def _binary_kind(data: bytes) -> str:
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12], "video/mp4")
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12], UNKNOWN)
    if data[257:262] == b"ustar":
        return "application/x-tar"
    return next((mime for begins, mime in _BEGINNINGS.items() if data.startswith(begins)), UNKNOWN)


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
