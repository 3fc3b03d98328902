"""Named styles, as the codes of a terminal (SGR). A theme without colour keeps bold, dim, italic, underlined, struck
and reversed: NO_COLOR asks for no colour, not for no look (https://no-color.org)."""

import re
from collections.abc import Mapping

from ...errors import ThemeUnknown
from ...readings.visible import visible
from .palettes import PALETTES

RESET = "\x1b[0m"
THEMES = tuple(PALETTES)
_CLEAN = re.compile(r"(?:https?://|mailto:)[\w:/?#\[\]@!$&'()*+,;=.~%-]{1,2000}", re.ASCII)
_COLOUR = re.compile(r"(?:^|;)(?:[34]8;5;\d+|(?:[34]|9|10)[0-7])(?=;|$)")


class Theme:
    """`links` says whether addresses are given to the terminal, to be clicked (OSC 8)."""

    def __init__(self, name: str, styles: Mapping[str, str], links: bool = False) -> None:
        self.name = name
        self.links = links
        self._styles = styles

    def code(self, style: str) -> str:
        """What stands between `ESC [` and `m`; nothing for a style that looks like plain text. Styles can be joined
        by a space."""
        found = self._styles.get(style)
        return found if found is not None else ";".join(filter(None, map(self._one, style.split())))

    def _one(self, style: str) -> str:
        return self._styles.get(style, "")

    def paint(self, text: str, style: str) -> str:
        """A text of one line, as it is, in that style."""
        code = self.code(style)
        return f"\x1b[{code}m{text}{RESET}" if code and text else text

    def paint_lines(self, text: str, style: str) -> str:
        """Each of its lines by itself, so that any of them can be left out."""
        return "\n".join(self.paint(line, style) for line in text.split("\n"))

    def link(self, text: str, address: str) -> str:
        """The text, to be clicked if this theme has links and the address is one that does no harm."""
        if not self.links or not _CLEAN.fullmatch(address):
            return text
        return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"

    def with_links(self, links: bool) -> "Theme":
        return Theme(self.name, self._styles, links)


def theme_named(name: str, colour: bool) -> Theme:
    """Raises ThemeUnknown."""
    styles = PALETTES.get(name)
    if styles is None:
        raise ThemeUnknown(f"there is no theme {name!r}; there are {', '.join(THEMES)}")
    if not colour:
        styles = {style: without_colour(code) for style, code in styles.items()}
    return Theme(name, styles)


def without_colour(code: str) -> str:
    return _COLOUR.sub("", code).strip(";")


def dimmed(text: str, theme: Theme) -> str:
    """What a model thinks before it speaks, each line by itself."""
    return theme.paint_lines(visible(text).expandtabs(4), "reasoning")
