"""Terminal injection: control characters in a stranger's text, as letters that can be seen and do nothing.

A terminal obeys what it is told to show: an escape sequence clears the screen, hides text, writes to the clipboard.
What begins one (C0, DEL, C1), what turns the order of letters around and what cannot be seen at all is written as JSON
writes it, so that JSON stays JSON. The joiners of emoji and of Persian and Indic scripts do none of this and stay.
"""

import re

from ..core.wording import escaped
from ..errors import MailRefused

# In a class of a pattern, also of JSON schema: DEL and C1, what turns the order around, separators, what has no width.
UNSEEN = r"\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
_INVISIBLE = (
    rf"\x00-\x08\x0b-\x1f{UNSEEN}"  # with C0, but for tab and newline
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff"  # shorthand, music, tags
    r"\ud800-\udfff"  # halves of characters, which no stream can take
)
_HIDDEN = re.compile(f"[{_INVISIBLE}]")
_HIDDEN_OR_BREAK = re.compile(f"[\t\n{_INVISIBLE}]")
_SHORT = {"\t": "\\t", "\n": "\\n"}


def visible(text: str) -> str:
    """With nothing in it that steers a terminal but newline and tab; the end of a line may be that of Windows."""
    return _HIDDEN.sub(lambda found: escaped(found[0]), text.replace("\r\n", "\n"))


def in_one_line(text: str) -> str:
    """As `visible`, for what stands in a line with something else: it can neither begin a new one nor leave its
    column."""
    return _HIDDEN_OR_BREAK.sub(lambda found: _SHORT.get(found[0]) or escaped(found[0]), text)


def checked_name(text: str, what: str, longest: int = 200) -> str:
    """A name that a person gives to something, in one line. Raises MailRefused for one that cannot be shown."""
    name = " ".join(text.split())[:longest]
    if not name:
        raise MailRefused(f"{what} is more than spaces")
    refuse_unseen(name, what)
    return name


def refuse_unseen(name: str, what: str) -> None:
    """Raises MailRefused if there is something in it that a person would not see, or a terminal obey."""
    if found := _HIDDEN_OR_BREAK.search(name):
        raise MailRefused(f"{what} cannot hold control characters or others that are not seen ({escaped(found[0])})")
