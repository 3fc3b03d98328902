"""What is looked at in text for a terminal: its letters, its codes, its cells."""

import re
import unicodedata

from everloop.cli.chat_view.markdown import StreamedMarkdown
from everloop.cli.chat_view.theme import Theme, theme_named
from everloop.readings.visible import visible

DARK, PLAIN = theme_named("dark", colour=True), theme_named("plain", colour=True)
LINKED = DARK.with_links(True)
SGR = re.compile(r"\x1b\[[0-9;]+m")
LINK = re.compile(r"\x1b\]8;;(?:(?:https?://|mailto:)[!#-;=?-\[\]-~]+)?\x1b\\")
_STEERS = ("Cc", "Zl", "Zp", "Cs")


def shown(text: str, width: int = 60, size: int = 0, theme: Theme = PLAIN) -> str:
    """All that is shown of an answer that comes in pieces of this size."""
    return streamed([text[at : at + size] for at in range(0, len(text), size)] if size else [text], width, theme)


def streamed(pieces: list[str], width: int = 60, theme: Theme = PLAIN) -> str:
    markdown = StreamedMarkdown(theme, lambda: width)
    return "".join([*map(markdown.feed, pieces), markdown.close()])


def letters(text: str) -> str:
    """Without codes of ours."""
    return LINK.sub("", SGR.sub("", text))


def steering(text: str) -> list[str]:
    """What of it would steer a terminal: also what turns the order of letters around. A theme that is `plain` has no
    codes of its own, so that all that is found in its text is a stranger's; of other text, look at its `letters`."""
    rest = text.replace("\n", "")
    found = [letter for letter in rest if unicodedata.category(letter) in _STEERS or visible(letter) != letter]
    return [ascii(letter) for letter in found]


def left_open(text: str) -> list[str]:
    """Lines that end in another look than they began with."""
    lines = text.split("\n")
    return [line for line in lines if (codes := SGR.findall(line)) and codes[-1] != "\x1b[0m"]
