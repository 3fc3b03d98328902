"""What was said last in a conversation, in a line, by which one is told from its copies."""

from collections.abc import Iterable

from ..core.log import Entry
from .spoken import spoken
from .visible import in_one_line

LOOKED = 20  # entries at the end of a log among which it is looked for
LONGEST = 60  # letters


def last_words(entries: Iterable[Entry]) -> str:
    """Of a person or the agent; "" where nobody has said anything."""
    said = [told for entry in entries if (told := spoken(entry)) and told.who in ("user", "assistant")]
    text = in_one_line(next((told.text for told in reversed(said) if told.text.strip()), "").strip())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
