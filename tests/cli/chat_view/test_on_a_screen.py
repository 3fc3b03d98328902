"""What a terminal makes of it: each line stands in a row of its own, at any width, and a screen that is redrawn is
right."""

import unicodedata

import pyte
import pytest
from tests.cli.chat_view.screens import DARK, LINKED, letters, shown

from everloop.cli.chat_view.markdown import StreamedMarkdown

ANSWER = """\
# A heading of **some** words that is long enough to be broken at forty cells

Words in 日本語 and 한국어, e\u0301 with an accent, שלום and مرحبا, and a [link](https://example.com/a/long/path?with=more).
> quoted: 中文字符没有空格所以可以在任何地方断行而不会丢失任何字符
1. one `code` **bold and *italic***
   - [x] below, with a verylongwordthatisbrokenbecauseithasnoroomanywhereinthisline
2. two

| name | 値段 | what it is |
|------|-----:|------------|
| a    | 12   | some words that have to be broken |
| 日本 | 3    | **bold** |

done
"""


BACK = "\x1b8\x1b7\x1b[J"  # to where the draft began, which is remembered again


def rows_of(screen: pyte.Screen) -> list[str]:
    return [row.rstrip() for row in screen.display]


def lines_of(text: str) -> list[str]:
    """As pyte has them, which joins an accent with its letter."""
    return unicodedata.normalize("NFC", letters(text)).split("\n")


@pytest.mark.parametrize("width", [20, 33, 40, 80, 132])
def test_each_line_takes_one_row(width: int):
    text = shown(ANSWER, width, theme=DARK)
    screen = pyte.Screen(width, text.count("\n") + 2)
    pyte.Stream(screen).feed(text.replace("\n", "\r\n"))
    assert rows_of(screen) == [*lines_of(text), ""]


def test_one_that_were_too_long_would_be_noticed():
    text = shown(ANSWER, 60, theme=DARK)
    screen = pyte.Screen(40, text.count("\n") + 2)
    pyte.Stream(screen).feed(text.replace("\n", "\r\n"))
    assert rows_of(screen) != [*lines_of(text), ""]


def test_a_block_that_grows_and_is_then_finished_leaves_nothing_of_its_drafts():
    """As a chat does it: what is finished is written over the draft, and the next draft below it."""
    width, rows = 40, 6
    screen = pyte.Screen(width, 60)
    stream = pyte.Stream(screen)
    markdown = StreamedMarkdown(LINKED.with_links(False), lambda: width)
    stream.feed("\x1b7")
    for at in range(0, len(ANSWER), 3):
        if said := markdown.feed(ANSWER[at : at + 3]):
            stream.feed(BACK + said.replace("\n", "\r\n") + "\x1b7")
        stream.feed(BACK + markdown.live(rows).replace("\n", "\r\n"))
    stream.feed(BACK + markdown.close().replace("\n", "\r\n"))
    expected = lines_of(shown(ANSWER, width, theme=DARK))
    assert rows_of(screen) == [*expected, *[""] * (60 - len(expected))]
