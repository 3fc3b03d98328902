"""What can be searched for in an entry, and what is shown of it when it is found."""

from collections.abc import Mapping

from ..core.log import UserSaid, decode
from ..core.message import Text, enclosed, is_strange
from ..errors import StoreError
from ..readings.spoken import COUNTED, Utterance, spoken
from ..readings.words import placed

AROUND = 70  # characters before and after what was found

_SPOKEN = tuple(f'{{"kind":"{kind}"' for kind in COUNTED)


def spoken_in(body: str) -> tuple[str, str] | None:
    """Who says what in a stored entry, if anyone does. What cannot be read cannot be found."""
    if not body.startswith(_SPOKEN):
        return None
    try:
        said = spoken(decode(body))
    except StoreError:
        return None
    return _searched(said) if said else None


def is_strange_in(body: str) -> bool:
    """Whether a stranger has written what a stored entry says, or a part of it; also what cannot be read."""
    try:
        said = spoken(decode(body))
    except StoreError:
        return True
    return said is not None and (said.strange or any(map(is_strange, said.parts)))


def _searched(said: Utterance) -> tuple[str, str] | None:
    """Files are found by their names."""
    if said.who == "user":
        return "user", "\n".join(part.text if isinstance(part, Text) else part.name for part in said.parts)
    if said.who == "tool":
        return "tool", said.text
    told = said.with_calls().strip()
    return ("assistant", told) if told else None


def title_in(body: str) -> str:
    """The beginning of what someone says in a stored entry; where nothing is said, of the names of the files."""
    try:
        entry = decode(body) if body else None
    except StoreError:
        return ""
    parts = entry.parts if isinstance(entry, UserSaid) else ()
    names = [media.name for part in parts if (media := enclosed(part))]
    said = [part.text for part in parts if isinstance(part, Text) and not enclosed(part)]
    return shortened("\n".join(said or names))


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
