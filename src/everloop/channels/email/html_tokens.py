"""HTML as a row of tags and texts, read once from the beginning to the end: it takes as long as it is long, whatever
somebody sends. The parser that Python brings can be kept busy for hours by a few hundred kilobytes (denial of service).
"""

import re
from collections.abc import Iterator, Mapping
from html import unescape

from msgspec import Struct

LONGEST = 400_000  # characters of HTML that are read
_LONGEST_TAG = 2000  # characters; of a longer one only its name is known
_PICTURE = re.compile(r"""data:[^"'\s>]{200,}""")  # within the text itself
_NAME = re.compile(r"<(/?)([a-zA-Z][^\s/>]{0,30})")
_TAG = re.compile(r"""<(/?)([a-zA-Z][^\s/>]*)((?:[^"'>]|"[^"]*"|'[^']*')*)>""")
_ATTRIBUTE = re.compile(r"""([^\s=/"'>]{1,100})(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")
_RAW = ("script", "style", "title", "textarea", "xmp", "noscript", "template")  # what is in there is no HTML


class HtmlTag(Struct, frozen=True):
    name: str
    attributes: Mapping[str, str]
    closes: bool


def tokens_of(html: str) -> Iterator[HtmlTag | str]:
    """Texts with their entities read; a tag that does not end is text, a comment that does not is the rest."""
    html, at = _PICTURE.sub("", html)[:LONGEST], 0
    lower = html.lower()
    while at < len(html):
        begin = html.find("<", at)
        if begin != at:
            yield unescape(html[at : begin if begin >= 0 else None])
            if begin < 0:
                return
            at = begin
        if html.startswith(("<!", "<?"), at):
            comment = html.startswith("<!--", at)
            end = html.find("-->" if comment else ">", at + 4 if comment else at)
            if end < 0:
                return
            at = end + (3 if comment else 1)
        elif named := _NAME.match(html, at):
            found = _TAG.match(html, at, at + _LONGEST_TAG)
            end = found.end() if found else html.find(">", at) + 1
            if not end:
                yield html[at:]
                return
            tag = HtmlTag(named[2].lower(), _attributes(found[3]) if found else {}, closes=bool(named[1]))
            yield tag
            at = end
            if tag.name in _RAW and not tag.closes:
                end = lower.find(f"</{tag.name}", at)
                at = end if end >= 0 else len(html)
        else:
            yield "<"
            at += 1


def _attributes(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(text):
        found.setdefault(name.lower(), unescape(double or single or bare))
    return found
