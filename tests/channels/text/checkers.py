"""What the platforms take: strict checks of markup, written from their documents and not from our renderers.

Each raises AssertionError with a sentence.
"""

import re
from html.parser import HTMLParser

TELEGRAM = {"b", "i", "s", "u", "code", "pre", "a", "blockquote", "tg-spoiler"}
ALONE = {"code", "pre"}  # in which no other element of Telegram's may stand, but for the code of a pre
MATRIX = {
    "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "p", "a", "ul", "ol", "li", "strong", "em", "del", "code", "hr",
    "br", "pre", "span", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
EMPTY = {"hr", "br"}
ATTRIBUTES = {("a", "href"), ("ol", "start"), ("code", "class"), ("span", "data-mx-spoiler")}
ENTITY = re.compile(r"&(?!(?:amp|lt|gt|quot|#x27|#39);)")
LINK = re.compile(r"(?:https?://|mailto:|tel:)[^\s<>\"]+\Z", re.IGNORECASE)
INSIDE = {
    "li": {"ul", "ol"},
    "tr": {"thead", "tbody"},
    "td": {"tr"},
    "th": {"tr"},
    "thead": {"table"},
    "tbody": {"table"},
}


class _Strict(HTMLParser):
    """Every tag is one that is allowed, and closed in its order."""

    def __init__(self, tags: set[str], *, nests_quotes: bool) -> None:
        super().__init__(convert_charrefs=True)
        self._tags = tags
        self._nests_quotes = nests_quotes
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self._tags, f"<{tag}> is not allowed"
        if not self._nests_quotes:
            assert not (tag == "blockquote" and "blockquote" in self.open), "a quote stands in a quote"
            alone = [each for each in self.open if each in ALONE]
            assert not alone or (tag == "code" and self.open[-1] == "pre"), f"<{tag}> stands in {alone}"
        if tag in INSIDE:
            assert "".join(self.open[-1:]) in INSIDE[tag], f"<{tag}> stands in {self.open}"
        assert not (tag == "a" and "a" in self.open), "a link stands in a link"
        for name, value in attrs:
            assert (tag, name) in ATTRIBUTES, f"<{tag} {name}> is not allowed"
            assert name != "href" or LINK.match(value or ""), f"{value!r} is no safe address"
            assert name != "class" or re.fullmatch(r"language-[\w+#.-]+", value or ""), value
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another"

    def handle_comment(self, data: str) -> None:
        raise AssertionError("there is a comment")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError("there is a declaration")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError("there is a declaration")

    def handle_pi(self, data: str) -> None:
        raise AssertionError("there is an instruction")


def _check_html(text: str, tags: set[str], *, nests_quotes: bool) -> None:
    bad = ENTITY.search(text)
    assert bad is None, f"a bare & at {text[bad.start() : bad.start() + 20]!r}" if bad else ""
    assert "<" not in re.sub(r"<[^<>]*>", "", text), "a bare <"
    assert ">" not in re.sub(r"<[^<>]*>", "", text), "a bare >"
    parser = _Strict(tags, nests_quotes=nests_quotes)
    parser.feed(text)
    parser.close()
    assert parser.open == [], f"{parser.open} is never closed"


def check_telegram(text: str) -> None:
    _check_html(text, TELEGRAM, nests_quotes=False)
    assert text.count("<") - text.count("</") <= 100, "more entities than Telegram shows"
    bare = re.sub(r"<(?:pre|code)\b.*?</(?:pre|code)>", "\0", text, flags=re.DOTALL)
    mention = re.search(r"(?<!\w)@[A-Za-z]\w*", re.sub(r"<[^>]*>", "", bare))
    assert mention is None, f"{mention and mention[0]} is a mention"


def check_html(text: str) -> None:
    _check_html(text, MATRIX, nests_quotes=True)


def check_matrix(text: str) -> None:
    check_html(text)
    assert not re.search(r"@room\b", text, re.IGNORECASE), "@room is a mention"


def check_slack(text: str) -> None:
    """Angle brackets are around links alone, ampersands begin the three entities, fences are closed."""
    rest = re.sub(r"<(?:https?://|mailto:|tel:)[^<>|\s]+(?:\|[^<>\n]*)?>", "", text, flags=re.IGNORECASE)
    assert not re.search(r"[<>]", rest), f"a bare angle bracket in {rest[:200]!r}"
    assert not re.search(r"&(?!amp;|lt;|gt;)", text), "a bare ampersand"
    assert text.count("```") % 2 == 0, "a fence is never closed"


def check_discord(text: str) -> None:
    """Nobody is mentioned, fences are closed, and masked links are safe."""
    assert not re.search(r"@(?:everyone|here)", text, re.IGNORECASE), "everyone is mentioned"
    assert not re.search(r"<(?:@[!&]?\d+|#\d+|a?:\w+:\d+)>", text), "somebody is mentioned"
    assert text.count("```") % 2 == 0, "a fence is never closed"
    without_code = re.sub(r"\\[^\w\s]|```.*?```|`` .*? ``|`[^`]*`", "", text, flags=re.DOTALL)
    for address in re.findall(r"\]\(([^)]*)\)", without_code):
        assert re.fullmatch(r"<https?://[^<>\s]+>", address), f"{address} is no safe address"


def check_plain(text: str) -> None:
    """Nothing that steers, turns or cannot be seen."""
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
