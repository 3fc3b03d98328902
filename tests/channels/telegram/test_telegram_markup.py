"""The fake's own reading of HTML, by which it knows what Telegram refuses, agrees with what we write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everloop.channels.text import TELEGRAM, draft, render
from everloop.testing.telegram_markup import CannotParse, parse_html, units
from tests.channels.text.corpus import ANSWERS, PIECES
from tests.effort import examples


@examples(200)
@given(st.lists(st.one_of(st.sampled_from([*ANSWERS, *PIECES]), st.text(max_size=60)), max_size=30).map("".join))
def test_whatever_is_answered_telegram_can_read_it(markdown: str):
    for part in (*render(markdown, TELEGRAM), draft(markdown, TELEGRAM)):
        text, entities = parse_html(part.text)
        assert units(text) <= 4_096
        assert len(entities) <= 100


@pytest.mark.parametrize(
    ("markup", "text", "entities"),
    [
        ("a &lt;b&gt; &amp;amp; &quot; &#39; &#x27; &nope;", "a <b> &amp; \" ' ' &nope;", []),
        ("<b>x<i>y</i></b>", "xy", [("bold", 0, 2), ("italic", 1, 1)]),
        ("😀<code>x</code>", "😀x", [("code", 2, 1)]),
        ('<span class="tg-spoiler">x</span><b></b>', "x", [("spoiler", 0, 1)]),
        ('<a href="https://x.example/?a=1&amp;b">x</a>', "x", [("text_link", 0, 1)]),
    ],
)
def test_what_is_shown_and_how(markup: str, text: str, entities: list[tuple[str, int, int]]):
    shown, found = parse_html(markup)
    assert (shown, [(each["type"], each["offset"], each["length"]) for each in found]) == (text, entities)


@pytest.mark.parametrize(
    "markup", ["<", "a < b", "<b", "<b>", "</b>", "<b></i>", "<p>x</p>", "<span>x</span>", "<b ?>x</b>"]
)
def test_what_telegram_would_refuse_is_refused(markup: str):
    with pytest.raises(CannotParse):
        parse_html(markup)
