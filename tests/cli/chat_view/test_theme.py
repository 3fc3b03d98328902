"""Themes, by their names."""

import re

import pytest
from tests.cli.chat_view.screens import SGR, shown

from everloop.cli.chat_view.theme import THEMES, theme_named, without_colour
from everloop.errors import ThemeUnknown

TEXT = "# a\n**b** `c` [d](https://x.y)\n\n- e\n\n> f\n\n```python\nreturn 'x' # y\n```\n\n|a|\n|-|\n|b|"
COLOUR = re.compile(r"(?:^|;)(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;|$)")


@pytest.mark.parametrize("name", THEMES)
def test_without_colour_there_is_none_and_the_words_are_the_same(name: str):
    coloured, bare = (shown(TEXT, theme=theme_named(name, colour)) for colour in (True, False))
    assert [code for code in SGR.findall(bare) if COLOUR.search(code[2:-1])] == []
    assert SGR.sub("", coloured) == SGR.sub("", bare)
    assert bool([code for code in SGR.findall(coloured) if COLOUR.search(code[2:-1])]) == (name != "plain")


def test_there_are_dark_and_light_ones_those_of_the_terminal_and_a_plain_one():
    assert THEMES == ("dark", "light", "ansi", "contrast", "plain")
    assert SGR.findall(shown(TEXT, theme=theme_named("plain", colour=True))) == []


@pytest.mark.parametrize(
    "code, left",
    [("1;4;38;5;117", "1;4"), ("38;5;9;1", "1"), ("31", ""), ("7;32", "7"), ("1;97", "1"), ("2;3", "2;3"), ("", ""),
     ("1;38;5;232;48;5;114", "1")],
)  # fmt: skip
def test_what_is_left_without_colour(code: str, left: str):
    assert without_colour(code) == left


def test_a_theme_that_there_is_not_is_refused_with_those_that_there_are():
    with pytest.raises(ThemeUnknown, match="there is no theme 'x'; there are dark, light, ansi, contrast, plain"):
        theme_named("x", colour=True)
