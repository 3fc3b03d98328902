"""Values that must not be shown, taken out of a text: as they are, and as programs write them for others."""

from collections.abc import Mapping

from ..readings.encodings import forms_of

_SHORTEST = 8  # of a form: a shorter one would be found where it is not


def redacted(text: str, values: Mapping[str, str]) -> str:
    """With the name of each in its place."""
    for name, value in values.items():
        for form in _forms(value):
            if form in text:
                text = text.replace(form, f"[{name}]")
    return text


def holds(data: bytes, values: Mapping[str, str]) -> bool:
    """Whether one of them is in there, where nothing can be taken out."""
    return any(form.encode() in data for value in values.values() for form in _forms(value))


def _forms(value: str) -> list[str]:
    """The longest first, so that no end of one is left. Also back to front, as whoever wants it out may write it."""
    words = [value, *(word for word in value.split() if len(word) >= _SHORTEST)]
    found = {form for word in words for form in (word[::-1], *forms_of(word)) if len(form) >= _SHORTEST}
    return sorted(found, key=len, reverse=True)
