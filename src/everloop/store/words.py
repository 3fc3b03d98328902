"""What can be searched for in an entry, and what is shown of it when it is found."""

from collections.abc import Mapping

from ..core.errors import StoreError
from ..core.log import CallReturned, Entry, GaveUp, ModelSaid, UserSaid, decode
from ..core.message import Text
from ..core.words import placed

AROUND = 70  # characters before and after what was found

_SPOKEN = ('{"kind":"user_said"', '{"kind":"model_said"', '{"kind":"call_returned"', '{"kind":"gave_up"')


def spoken_in(body: str) -> tuple[str, str] | None:
    """Who says what in a stored entry, if anyone does. What cannot be read cannot be found."""
    if not body.startswith(_SPOKEN):
        return None
    try:
        return spoken(decode(body))
    except StoreError:
        return None


def spoken(entry: Entry) -> tuple[str, str] | None:
    match entry:
        case UserSaid(parts=parts):
            return "user", "\n".join(part.text if isinstance(part, Text) else part.name for part in parts)
        case ModelSaid(text=text, calls=calls):
            told = "\n".join([text, *(f"{call.name} {call.args}" for call in calls)]).strip()
            return ("assistant", told) if told else None
        case CallReturned(text=text):
            return "tool", text
        case GaveUp(text=text):
            return "assistant", text
    return None


def snippet(text: str, words: Mapping[str, float]) -> str:
    """What stands around these words, or those that begin so: where those stand together that weigh most."""
    found = [(at, word) for at, spelled in placed(text) for word in words if any(w.startswith(word) for w in spelled)]
    best, at = 0.0, found[0][0] if found else 0
    for number, (start, _) in enumerate(found):
        near = {word for place, word in found[number : number + len(words) * 2] if place < start + AROUND}
        if (weight := sum(words[word] for word in near)) > best:
            best, at = weight, start
    begin, end = max(0, at - AROUND), at + AROUND
    shown = _in_a_line(text[begin:end])
    return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"


def shortened(text: str, most: int = 60) -> str:
    """The beginning of a text, in one line."""
    line = _in_a_line(text[: 4 * most])
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def _in_a_line(text: str) -> str:
    """Without what would move a terminal's cursor."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
