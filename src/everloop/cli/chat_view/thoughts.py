"""What a model thinks before it speaks, in lines that fit."""

from ...readings.visible import visible
from .inked import Inked, painted, wrap
from .theme import Theme


def thoughts(text: str, theme: Theme, width: int) -> str:
    """As `dimmed`, broken between words into lines of so many cells."""
    inks = [Inked(visible(text).expandtabs(4), "reasoning")]
    return "\n".join(painted(line, theme) for line in wrap(inks, width))
