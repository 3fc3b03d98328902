"""Values that must not be shown, taken out of a text: as they are, and as programs write them for others."""

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from json import dumps
from urllib.parse import quote, quote_plus

_SHORTEST = 8  # of a form: a shorter one would be found where it is not


def redacted(text: str, values: Mapping[str, str]) -> str:
    """With the name of each in its place."""
    for name, value in values.items():
        for form in forms_of(value):
            if form in text:
                text = text.replace(form, f"[{name}]")
    return text


def holds(data: bytes, values: Mapping[str, str]) -> bool:
    """Whether one of them is in there, where nothing can be taken out."""
    return any(form.encode() in data for value in values.values() for form in forms_of(value))


def forms_of(value: str) -> list[str]:
    """The longest first, so that no end of one is left."""
    words = [value, *(word for word in value.split() if len(word) >= _SHORTEST)]
    found = {form for word in words for form in _forms(word) if len(form) >= _SHORTEST}
    return sorted(found, key=len, reverse=True)


def _forms(word: str) -> Iterator[str]:
    data = word.encode("utf-8", "replace")
    yield from (word, word[::-1], quote(word, safe=""), quote_plus(word), word.replace("/", r"\/"))
    yield dumps(word)[1:-1]
    yield from (data.hex(), data.hex().upper())
    for encode in (b64encode, urlsafe_b64encode):
        yield from (encode(data).decode(), encode(data).decode().rstrip("="))
        for before in range(3):  # what stands before it decides where in a group it begins
            whole = encode(b"\0" * before + data + b"\0\0").decode()
            yield whole[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6]
