"""As much of protobuf's wire format as OTLP needs: fields of text, bytes, numbers and messages."""

import struct

VARINT, FIXED64, LENGTH = 0, 1, 2


def number(field: int, value: int) -> bytes:
    """An int64, a bool or an enum. A negative one takes ten bytes, as the format wants it."""
    return _varint(field << 3 | VARINT) + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def fixed(field: int, value: int) -> bytes:
    return _varint(field << 3 | FIXED64) + struct.pack("<Q", value)


def double(field: int, value: float) -> bytes:
    return _varint(field << 3 | FIXED64) + struct.pack("<d", value)


def data(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | LENGTH) + _varint(len(value)) + value


def text(field: int, value: str) -> bytes:
    return data(field, value.encode("utf-8", "replace"))


def message(field: int, *parts: bytes) -> bytes:
    return data(field, b"".join(parts))


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
