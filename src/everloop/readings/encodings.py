"""A secret as programs write it: whoever takes secrets out of a text (redaction) has to know it in each of these."""

import re
from base64 import b64encode
from collections.abc import Iterator

_PLAIN = re.compile(rb"[A-Za-z0-9_.~-]")  # in an address


def forms_of(secret: str) -> set[str]:
    """As it is; as JSON, in three ways; as an address, and with every byte escaped there; in hexadecimal; in base64,
    whatever stands around it."""
    data = secret.encode("utf-8", "surrogatepass")
    in_json = secret.replace("\\", r"\\").replace('"', r"\"")
    forms = {secret, in_json, in_json.replace("/", r"\/")}
    forms.add("".join(letter if letter.isascii() else _escaped(letter, "x") for letter in in_json))
    forms.add("".join(chr(byte) if _PLAIN.match(bytes((byte,))) else f"%{byte:02X}" for byte in data))
    forms |= {"".join(_escaped(letter, case) for letter in secret) for case in "xX"}
    return forms | {*_in_either_case("%", data), *_in_either_case("", data), *_in_base64(data)}


def _escaped(letter: str, case: str) -> str:
    return rf"\u{ord(letter):04{case}}"


def _in_either_case(mark: str, data: bytes) -> Iterator[str]:
    for case in "xX":
        yield "".join(f"{mark}{byte:02{case}}" for byte in data)


def _in_base64(data: bytes) -> Iterator[str]:
    """As a whole; and the characters that are the same whatever stands before and after, which depend on where in a
    group it begins."""
    whole = b64encode(data).decode()
    yield from (whole, whole.replace("+", "-").replace("/", "_"))
    for before in range(3):
        length = before + len(data)
        form = b64encode(b"\0" * before + data + b"\0\0").decode()[(before * 8 + 5) // 6 : length * 8 // 6]
        yield from (form, form.replace("+", "-").replace("/", "_"))
