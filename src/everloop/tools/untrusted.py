"""What strangers wrote, marked as theirs, so that a model can tell it from what its people say.

The mark is two lines around the text, which the text cannot forge: whatever looks like the mark inside is made
harmless, and characters that a person would not see, in which orders to models are hidden, are taken out.
"""

import re

_FORGED = re.compile(r"[<＜﹤](?=\s*[/／]?\s*untrusted)", re.IGNORECASE)
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters; tabs and line ends stay
    "\u00ad\u200b\u2060-\u2064\ufeff"  # of no width; joiners stay, which some scripts need
    "\u202a-\u202e\u2066-\u2069"  # turning the direction of writing
    "\U000e0000-\U000e007f]"  # tags, which spell ASCII invisibly
)


def visible(text: str) -> str:
    """The text without what a person would not see, its lines ended by newlines."""
    return _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def harmless(text: str) -> str:
    """The text as it may stand inside the mark; longer than before if it tried to forge it."""
    return _FORGED.sub("&lt;", visible(text))


def fence(text: str, source: str) -> str:
    """The text with the mark around it. `source` says whose it is: an address, or the name of a service."""
    return f'<untrusted source="{_attribute(source)}">\n{harmless(text)}\n</untrusted>'


def _attribute(text: str) -> str:
    plain = " ".join(visible(text).split())
    return plain.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def short(url: str) -> str:
    """An address as it is told."""
    return url if len(url) <= 300 else f"{url[:297]}..."
