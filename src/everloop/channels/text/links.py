"""What may become a link, and what a person would not see.

A link is only ever http, https, mailto or tel: `javascript:`, `data:`, `file:` and an application's own scheme (with
which Telegram mentions people) stay text. Its label never hides that it leads elsewhere than it says.
"""

import re
from collections.abc import Iterator

from .tree import CODE, Run

_SCHEME = re.compile(r"(?:https?://[^\s/?#]|mailto:[^\s?]|tel:[\d+])", re.IGNORECASE)
_UNSAFE = re.compile(r"[\s<>\"'`|\\^{}()\[\]]")  # what ends or splits an address in some dialect
_BARE = re.compile(r"(?<![\w@])https?://[^\s<>\"`|\\^{}]{1,2000}", re.IGNORECASE)
_TRAILING = ".,;:!?*_~'"
_LIKE_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]{0,30}://|www\.)\S*", re.IGNORECASE)
LONGEST = 2_000  # characters of an address that is still a link

# As tools/untrusted.py: control characters, what has no width or turns the direction of writing, and tags, which spell
# ASCII invisibly. Joiners stay, which emoji and some scripts need. Halves of characters cannot be sent at all.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e00ff]"
)
_LINES = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_HALVES = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Without what a person would not see; every line ends with a newline."""
    if text.isascii() and text.isprintable():
        return text
    return _HALVES.sub("\ufffd", _HIDDEN.sub("", _LINES.sub("\n", text)))


def safe(href: str) -> str:
    """The address as it may be linked, or "" if it may not."""
    href = clean(href)
    if len(href) > LONGEST or not _SCHEME.match(href):
        return ""
    return _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), href)


def linked(label: tuple[Run, ...], href: str) -> Iterator[Run]:
    """The runs of a link that somebody wrote. One that may not be a link, or whose label is another address, is told
    with its address."""
    address = safe(href)
    text = "".join(run.text for run in label).replace("\n", " ")
    style = label[0].style & ~CODE if label else 0
    for run in label[1:]:
        style &= run.style
    if not address or not all(_same(found[0], address) for found in _LIKE_ADDRESS.finditer(text)):
        yield from (Run(run.text, run.style) for run in label)
        if not href.lower().startswith("data:") and href.strip() != text.strip():
            yield Run(" (" if text else "(", style)
            yield Run(address or clean(href), style, address)
            yield Run(")", style)
    else:
        yield Run(text.strip() or address, style, address)


def _same(text: str, address: str) -> bool:
    """Whether what looks like an address in a label names the host that the link leads to."""
    return _host(_trimmed(text)) == _host(address)


def _host(address: str) -> str:
    return re.split(r"[/?#\s\\]", address.lower().partition("://")[2] or address.lower(), maxsplit=1)[0]


def linkified(run: Run) -> Iterator[Run]:
    """With addresses that stand in the text as links."""
    if run.href or run.style & CODE or "://" not in run.text:
        yield run
        return
    at = 0
    for found in _BARE.finditer(run.text):
        address = _trimmed(found[0])
        if safe(address):
            yield Run(run.text[at : found.start()], run.style)
            yield Run(address, run.style, safe(address))
            at = found.start() + len(address)
    yield Run(run.text[at:], run.style)


def _trimmed(address: str) -> str:
    """Without what belongs to the sentence: a full stop, a bracket that was opened before it."""
    opened = address.count("(") - address.count(")")
    while address and (address[-1] in _TRAILING or (address[-1] == ")" and opened < 0) or address[-1] == "]"):
        opened += address[-1] == ")"
        address = address[:-1]
    return address
