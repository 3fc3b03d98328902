"""What can be searched for in an entry, and what is shown of it when it is found.

Words are made here and not by the databases, so that both find the same: letters and digits, without case and accents.
Chinese and Japanese have no spaces, so there each character is a word.
"""

import re
import unicodedata
from collections.abc import Sequence

from ..core.errors import StoreError
from ..core.log import AgentTold, CallReturned, Entry, GaveUp, ModelSaid, UserSaid, decode
from ..core.message import Text

LONGEST = 64  # letters of a word; what is longer is not typed by anyone
MOST = 5000  # different words of an entry
AROUND = 70  # characters before and after what was found

_ALONE = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+")
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "a about am an and any are as at be been but by can could did do does for from had has have how i if in "
        "into is it its me my no not of on or our please remember s said say so t tell that the their them then "
        "there these they this to told us was we were what when where which who whose why will with would you your",
    )
)
_KINDS = ("user_said", "model_said", "call_returned", "gave_up", "agent_told")
_SPOKEN = tuple(f'{{"kind":"{kind}"' for kind in _KINDS)


def words_of(text: str) -> list[str]:
    """The different words of a text, in their order."""
    return list(dict.fromkeys(word[:LONGEST] for word in _WORD.findall(_plain(text))))[:MOST]


def telling(words: Sequence[str]) -> list[str]:
    """Those that say what is looked for; people ask in sentences. All of them, if there is no other."""
    return [word for word in words if word not in _COMMON] or list(words)


def _plain(text: str) -> str:
    folded = text.casefold()
    if folded.isascii():
        return folded
    return "".join(letter for letter in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(letter))


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
        case GaveUp(text=text) | AgentTold(text=text):
            return "assistant", text
    return None


def snippet(text: str, words: Sequence[str]) -> str:
    """What stands around the first of these words, or of those that begin so."""
    starts = (match.start() for match in _WORD.finditer(text) if any(_begins(match[0], word) for word in words))
    at = next(starts, 0)
    begin, end = max(0, at - AROUND), at + AROUND
    shown = _in_a_line(text[begin:end])
    return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"


def _begins(word: str, wanted: str) -> bool:
    return any(each.startswith(wanted) for each in _WORD.findall(_plain(word)))


def shortened(text: str, most: int = 60) -> str:
    """The beginning of a text, in one line."""
    line = _in_a_line(text[: 4 * most])
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def _in_a_line(text: str) -> str:
    """Without what would move a terminal's cursor."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
