"""Bytes from the web as text that a model can read: markdown of a page, JSON with its lines, plain text, a PDF's words.

Everything here is a function of the bytes and of what the server calls them. A parser can be made to run for hours by
three megabytes, so pages and PDFs are read in a process of their own, of which `main` is the beginning.
"""

import codecs
import io
import json
import re
import sys
from html import unescape
from html.parser import HTMLParser
from importlib import import_module
from urllib.parse import urljoin

import msgspec
from msgspec import Struct

from ..errors import ToolError
from ..readings.media import HEAD, kind_of
from .untrusted import short
from .worker import run_apart

LARGEST_PAGE = 3_000_000  # bytes of HTML: more is never prose, and takes seconds to be understood
_LARGEST_TEXT = 2_000_000  # characters that are kept of anything
_MOST_PDF_PAGES = 500

_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
# What browsers know. Python knows more, and some of that is no encoding of text or takes quadratic time.
_CHARSETS = re.compile(r"utf-8|utf-16(-[lb]e)?|iso8859-\d+|cp\d+|koi8-[rut]|mac-\w+|gb\w+|big5\w*|euc_\w+|shift_jis\w*|"
                       r"iso2022_jp\w*|tis-620|johab|hz")  # fmt: skip
_LATIN = {"iso8859-1", "ascii"}  # https://encoding.spec.whatwg.org: both mean windows-1252
_PLAIN_KIND = re.compile(r"[a-z]{1,20}/[a-z0-9.+-]{1,60}")
_SPACES = re.compile(r"[ \t\xa0]+")
_GAPS = re.compile(r"\n{3,}")


class WebPage(Struct, frozen=True):
    """What came from an address. `text` is "" when there is nothing to read; `mime` is set for what is to be shown."""

    text: str
    mime: str = ""


class WebBody(Struct, frozen=True):
    """What came from an address, as it was sent."""

    url: str
    content_type: str
    body: bytes


async def read_apart(sent: WebBody, seconds: float) -> WebPage:
    """Raises ToolError when it is neither text nor a picture, or takes too long."""
    ran = await run_apart(__name__, msgspec.msgpack.encode(sent), seconds=seconds)
    if ran.late or ran.problem:
        why = f"takes longer than {seconds:g} s to be read" if ran.late else "cannot be read"
        raise ToolError(f"the page at {short(sent.url)} {why}")
    return msgspec.msgpack.decode(ran.out, type=WebPage)


def main() -> None:
    sent = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=WebBody)
    sys.stdout.buffer.write(msgspec.msgpack.encode(read_page(sent)))


def is_simple(sent: WebBody) -> bool:
    """Whether it can be read without a parser."""
    return kind_of(sent.body[:HEAD]) != "application/pdf" and not _is_html(sent)


def read_page(sent: WebBody) -> WebPage:
    """Raises ToolError when it is neither text nor a picture."""
    shown = kind_of(sent.body[:HEAD])
    if shown == "application/pdf":
        return WebPage(_tidy(read_pdf(sent.body)), shown)
    if shown:
        return WebPage("", shown)
    kind = _kind(sent)
    text = decode(sent.body, sent.content_type)
    if "\0" in text[:100_000]:
        named = kind if _PLAIN_KIND.fullmatch(kind) else "binary data"  # a stranger's words have no place in an error
        raise ToolError(f"{short(sent.url)} is neither text nor an image but {named} ({len(sent.body):,} bytes)")
    if _is_html(sent):
        return WebPage(_tidy(read_html(text[:LARGEST_PAGE], sent.url)))
    return WebPage(_tidy(read_json(text) if kind.endswith("json") else text))


def _kind(sent: WebBody) -> str:
    return sent.content_type.partition(";")[0].strip().lower()


def _is_html(sent: WebBody) -> bool:
    kind, start = _kind(sent), sent.body[:200].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    looks = start.startswith((b"<!doctype html", b"<html"))
    return "html" in kind or (looks and kind in ("", "text/plain", "application/octet-stream"))


def _tidy(text: str) -> str:
    return text.strip()[:_LARGEST_TEXT]


def decode(body: bytes, content_type: str) -> str:
    """By its byte order mark, by what the server says, by what the page says, as UTF-8, as windows-1252."""
    for bom, name in _BOMS.items():
        if body.startswith(bom):
            return body.decode(name, "replace")
    head = body[:2048].decode("ascii", "replace")
    named = _CHARSET.search(content_type) or _CHARSET.search(head if "<" in head else "")
    charset = _known(named[1]) if named else ""
    if charset:
        return body.decode(charset, "replace")
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        # What was cut off in the middle of a character is still UTF-8.
        is_cut = error.reason == "unexpected end of data"
        return body.decode("utf-8" if is_cut else "cp1252", "replace")


def _known(name: str) -> str:
    try:
        found = codecs.lookup(name).name
    except LookupError:
        return ""
    if found in _LATIN:
        return "cp1252"
    return found if _CHARSETS.fullmatch(found) else ""


def read_json(text: str) -> str:
    """With its lines, unless it is very long or broken."""
    if len(text) > _LARGEST_TEXT:
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text


def read_pdf(body: bytes) -> str:
    """The words of a PDF; "" if it has none, cannot be read, or pypdf is not installed (extra [documents])."""
    try:
        pypdf = import_module("pypdf")
    except ImportError:
        return ""
    try:
        pages = pypdf.PdfReader(io.BytesIO(body)).pages
        words = [pages[number].extract_text() for number in range(min(len(pages), _MOST_PDF_PAGES))]
    except Exception:  # a stranger's file in a stranger's parser, which raises whatever it trips over
        return ""
    return "\n\n".join(filter(None, (each.strip() for each in words)))


def read_html(text: str, url: str) -> str:
    """What a page is about, as markdown; all of its text when that cannot be told."""
    try:
        trafilatura = import_module("trafilatura")
    except ImportError:
        return plain_text(text, url)
    try:
        found = trafilatura.extract(
            text, url=url, output_format="markdown", include_links=True, include_comments=False, favor_recall=True
        )
    except Exception:  # as above
        found = None
    title, plain = title_of(text), plain_text(text, url)
    if not found or len(found) < min(200, len(plain)):  # a page that is a list or a form has no "main text"
        return plain
    return found if not title or title in found[:500] else f"# {title}\n\n{found}"


def title_of(text: str) -> str:
    found = re.search(r"<title[^>]*>([^<]{1,300})", text[:100_000], re.IGNORECASE)
    return " ".join(unescape(found[1]).split()) if found else ""


def plain_text(text: str, url: str = "") -> str:
    """All that a reader of the page would see, with its headings, items and links, by the standard library alone. Links
    are told as whole addresses, where `url` is that of the page: only these count as given by it."""
    reader = _HtmlReader(url)
    reader.feed(text)
    reader.close()
    lines = (_SPACES.sub(" ", line).strip() for line in "".join(reader.said).split("\n"))
    return _GAPS.sub("\n\n", "\n".join(lines)).strip()


_SILENT = {"script", "style", "noscript", "template", "svg", "iframe", "object", "select"}
_BLOCKS = {
    "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset", "figure", "footer",
    "form", "header", "hr", "main", "nav", "ol", "p", "pre", "section", "table", "tr", "ul",
}  # fmt: skip
_BEGINNINGS = (
    dict.fromkeys(_BLOCKS, "\n")
    | {f"h{level}": f"\n\n{'#' * level} " for level in range(1, 7)}
    | {"title": "\n\n# ", "li": "\n- ", "td": " | ", "th": " | "}
)
_ENDS = dict.fromkeys(_BLOCKS, "\n") | dict.fromkeys(("title", "h1", "h2", "h3", "h4", "h5", "h6"), "\n\n")


def _whole(url: str, link: str) -> str:
    """The address that a link leads to; "" if it is to nowhere else."""
    if link.startswith("#"):
        return ""
    try:
        whole = urljoin(url, link.strip())
    except ValueError:
        return ""
    return whole if whole.startswith("http") else ""


class _HtmlReader(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self._url = url
        self.said: list[str] = []
        self._silence = ""
        self._link = ""

    def parse_html_declaration(self, i: int) -> int:
        try:
            return super().parse_html_declaration(i)
        except AssertionError:  # how the library tells that `<![` is followed by nothing it knows
            return self.parse_bogus_comment(i)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._silence:
            return
        if tag in _SILENT:
            self._silence = tag
        elif tag == "a" and (link := _whole(self._url, dict(attrs).get("href") or "")):
            self._link = link
            self.said.append("[")
        else:
            self.said.append(_BEGINNINGS.get(tag, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == self._silence:
            self._silence = ""
        elif tag == "a" and self._link:
            self.said.append(f"]({self._link})")
            self._link = ""
        elif not self._silence:
            self.said.append(_ENDS.get(tag, ""))

    def handle_data(self, data: str) -> None:
        if not self._silence:
            self.said.append(data.replace("\n", " "))
