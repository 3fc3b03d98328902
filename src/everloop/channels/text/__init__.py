"""What a model writes, as a channel shows it: markdown, read once into blocks and written in the channel's dialect, in
messages that are no longer than it takes. All of it is pure; it needs the extra [channels] (markdown-it-py).

    parts = render(outbound.text, TELEGRAM, limit)       an answer, in its parts
    shown = draft(text_so_far, TELEGRAM, limit)          a preview of one that is being written

A part has its text and the same without markup, for a platform that refuses the markup: both are short enough.
"""

from collections.abc import Mapping, Sequence

from ...ports.channel import Rendered, Unit
from ...readings.half_markdown import finished
from .cutting import Cutter
from .dialect import PLAIN, TextDialect, length
from .discord import DISCORD
from .html import EMAIL, MATRIX
from .reading import read
from .slack import SLACK
from .tables import lowered
from .telegram import CAPTION, TELEGRAM
from .tree import TextBlock

DIALECTS: Mapping[str, TextDialect] = {
    "plain": PLAIN,
    "telegram": TELEGRAM,
    "slack": SLACK,
    "discord": DISCORD,
    "matrix": MATRIX,
    "email": EMAIL,
}
RESERVE = 40  # units for what the outbox may put before a part: `(may be repeated) (delayed) `
LEAST = 200  # units of the smallest message that something can be split into


def render(
    markdown: str, dialect: TextDialect, limit: int | None = None, unit: Unit | None = None
) -> tuple[Rendered, ...]:
    """The parts of an answer, at least one; the same of the same text. `limit` 0 is one part, however long.

    Each is shorter than the limit by RESERVE. Raises ValueError for a limit below LEAST."""
    limit = dialect.limit if limit is None else limit
    if limit and limit < LEAST:
        raise ValueError(f"a message of at most {limit} units is too short; {LEAST} are the least")
    blocks = read(markdown)
    if dialect.table_width >= 0:
        blocks = [each for block in blocks for each in lowered(block, dialect.table_width)]
    parts = _parts(blocks, dialect, limit - RESERVE, unit or dialect.unit) if limit else [dialect.render(blocks)]
    return tuple(part for part in parts if part.text.strip()) or (Rendered("", ""),)


def _parts(blocks: Sequence[TextBlock], dialect: TextDialect, limit: int, unit: Unit) -> list[Rendered]:
    cutter = Cutter(dialect, limit, unit)
    if sum(len(run.text) for block in blocks for run in block.runs) <= limit:
        whole = dialect.render(blocks)
        if cutter.fits(whole):
            return [whole]
    return [dialect.render(message) for message in cutter.messages(blocks)]


def draft(markdown: str, dialect: TextDialect, limit: int | None = None, unit: Unit | None = None) -> Rendered:
    """What is there so far of an answer: the last part, if it is more than one message by now."""
    return render(finished(markdown), dialect, limit, unit)[-1]


__all__ = [
    "CAPTION", "DIALECTS", "DISCORD", "EMAIL", "LEAST", "MATRIX", "PLAIN", "RESERVE", "SLACK", "TELEGRAM", "Rendered",
    "TextDialect", "draft", "length", "render",
]  # fmt: skip
