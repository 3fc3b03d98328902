"""What nobody knows: calls that had started when a process ended, and of which no trace says whether they took effect.

The model is told, but a model may gloss over it. So the person who asked is told in the house's own words as well.
"""

from collections.abc import Sequence

from .approval import one_line
from .tool import ToolCall

_LONGEST = 500  # characters of a call


def not_known(call: ToolCall) -> str:
    """The sentence for one call, on one line, with nothing in it that a person cannot see."""
    shown = one_line(f"{call.name} {call.args}".strip())
    return f"Not known whether this took effect: {shown[:_LONGEST]}{'…' if len(shown) > _LONGEST else ''}"


def with_unknown(text: str, unknown: Sequence[str]) -> str:
    """An answer for a door that has room for one text alone."""
    return "\n\n".join(filter(None, (text, "\n".join(unknown))))
