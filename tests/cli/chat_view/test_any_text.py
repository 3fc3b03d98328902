"""What holds for every answer: the pieces make no difference, nothing is lost, no line is too long, and nothing in it
steers the terminal."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.chat_view.screens import DARK, LINKED, PLAIN, left_open, letters, shown, steering, streamed
from tests.cli.test_nothing_steers_the_terminal import CORPUS
from tests.effort import examples

from everloop.cli.cells import cells
from everloop.cli.chat_view.markdown import StreamedMarkdown
from everloop.cli.chat_view.theme import dimmed
from everloop.cli.chat_view.thoughts import thoughts

MARKS = [
    "\n", "\n\n", "\n- ", "\n  - ", "\n1. ", "\n   2) ", "\n> ", "\n>> ", "\n# ", "\n### ", "\n---\n", "\n===\n",
    "\n```\n", "\n```python\n", "\n~~~\n", "\n    ", "\n|", "|", "\n|-|-|\n", "\n|a|b|\n|-|:-:|\n|1|2|\n", "**",
    "*", "_", "~~", "`", "``", "[", "](", "](https://x.y)", ")", "![", "<", ">", "<https://x.y>", "&amp;", "&#27;",
    "&#x202e;", "\\",
    "\\|", "!", " ", "  ", "\t", "\r\n", "\r", "- [ ] ", "- [x] ", "https://x.y/z ",
    "日本", "👩‍👩‍👧", "e\u0301", "שלום", "❤️", "0",
]  # fmt: skip
WORDS = ["one ", "two ", "three ", "x", "def f():\n", "  return 1\n"]
CONTROLS = [*map(chr, range(0x20)), "\x7f", *map(chr, range(0x80, 0xA0)), *CORPUS.values(), *"\u200e\u2066\u2069\ufeff"]
MARKDOWN = st.lists(st.sampled_from(MARKS + WORDS), max_size=60).map("".join)
HOSTILE = st.lists(st.one_of(st.sampled_from(MARKS + CONTROLS), st.text(max_size=5)), max_size=40).map("".join)
WIDTHS = st.sampled_from([12, 20, 33, 60, 120])


@given(HOSTILE, st.lists(st.integers(0, 200), max_size=8), WIDTHS, st.booleans())
@examples(400)
def test_the_pieces_make_no_difference(text: str, cuts: list[int], width: int, looks: bool):
    """Not even if somebody looks in between."""
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    markdown = StreamedMarkdown(DARK, lambda: width)
    said = []
    for start, end in pairwise(places):
        said.append(markdown.feed(text[start:end]))
        if looks:
            markdown.live(5)
    assert "".join(said) + markdown.close() == streamed([text], width, DARK)


@given(st.lists(st.sampled_from(MARKS), min_size=1, max_size=60), WIDTHS)
@examples(400)
def test_no_word_is_lost(marks: list[str], width: int):
    marks = [mark for mark in marks if mark not in ("](https://x.y)", "&#27;", "&#x202e;")]
    text = "".join(f"{mark}w{at:03}" for at, mark in enumerate(marks))
    expected = [f"w{at:03}" for at in range(len(marks))]
    for theme in (PLAIN, DARK):
        said = re.sub(r"[\s│]", "", letters(streamed([text], width, theme)))
        assert [word for word in expected if word not in said] == []


@given(MARKDOWN, WIDTHS, st.integers(1, 30))
@examples(300)
def test_no_line_is_longer_than_the_terminal_is_wide(text: str, width: int, rows: int):
    """What still grows never is; of what is finished, code may be, which the terminal breaks."""
    markdown = StreamedMarkdown(DARK, lambda: width)
    said = markdown.feed(text)
    live = letters(markdown.live(rows)).split("\n")
    assert [line for line in live if cells(line) > width] == []
    assert len(live) <= rows
    if not any(mark in text for mark in ("```", "~~~", "    ", "\t")):
        lines = letters(said + markdown.close()).split("\n")
        assert [line for line in lines if cells(line) > width] == []


@given(HOSTILE, WIDTHS)
@examples(400)
def test_nothing_steers_the_terminal_and_no_look_goes_on(text: str, width: int):
    plain, linked = StreamedMarkdown(PLAIN, lambda: width), StreamedMarkdown(LINKED, lambda: width)
    thought = [dimmed(text, PLAIN), thoughts(text, PLAIN, width)]
    assert steering("".join([plain.feed(text), plain.live(8), plain.close(), *thought])) == []
    said = [linked.feed(text), linked.live(8), linked.close(), dimmed(text, LINKED), thoughts(text, LINKED, width)]
    assert [steering(letters(each)) for each in said] == [[]] * 5
    assert [left_open(each) for each in said] == [[]] * 5


@pytest.mark.parametrize(
    "form",
    ["{}", "# {}", "- {}", "> {}", "`{}`", "**{}**", "[{}](https://x.y)", "[x]({})", "[x](<{}>)", '[x](y "{}")',
     "![{}]({})", "<https://x.y/{}>", "|{}|b|\n|-|-|\n|1|{}|", "```\n{}\n```", "```python\n'{}'\n```", "```{}\nx\n```",
     "    {}", "https://x.y/{}"],
)  # fmt: skip
def test_every_sequence_in_every_place_is_shown_and_not_obeyed(form: str):
    for text in CORPUS.values():
        entities = "".join(f"&#{ord(letter)};" for letter in text)
        for source in (form.replace("{}", text), form.replace("{}", entities)):
            assert steering(shown(source, theme=PLAIN)) == []
            assert steering(letters(shown(source, theme=LINKED))) == []
            assert left_open(shown(source, theme=LINKED)) == []


@pytest.mark.parametrize("name, text", CORPUS.items(), ids=CORPUS)
def test_that_would_be_noticed(name: str, text: str):
    assert steering(PLAIN.paint(text, "bold")) != []
    assert steering(f"before {text}") != []


def test_a_look_that_goes_on_would_be_noticed():
    assert left_open("a \x1b[1mb\nc\x1b[0m") == ["a \x1b[1mb"]


def test_thoughts_are_dimmed_each_line_by_itself():
    assert thoughts("one two\nthree", DARK, 5).split("\n") == [dimmed(word, DARK) for word in ("one", "two", "three")]
    assert dimmed("a\nb", DARK) == "\x1b[3;38;5;244ma\x1b[0m\n\x1b[3;38;5;244mb\x1b[0m"
