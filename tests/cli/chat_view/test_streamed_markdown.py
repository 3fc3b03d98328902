"""An answer in markdown is shown the same whatever pieces it came in, and nothing of it is lost."""

import pytest

from everloop.cli.chat_view.markdown import StreamedMarkdown
from everloop.cli.chat_view.theme import theme_named

PLAIN = theme_named("plain", colour=True)


def shown(text: str, width: int = 60, size: int = 0, theme=PLAIN) -> str:
    """All that is shown of a text that comes in pieces of this size."""
    streamed = StreamedMarkdown(theme, lambda: width)
    pieces = [text[at : at + size] for at in range(0, len(text), size)] if size else [text]
    return "".join(map(streamed.feed, pieces)) + streamed.close()


@pytest.mark.parametrize(
    "text, expected",
    [
        ("one\ntwo\n\nthree", "one\ntwo\n\nthree\n"),
        ("# Title\ntext", "# Title\ntext\n"),
        ("- a\n- b\n  - c\n\n    d", "• a\n• b\n  • c\n\n    d\n"),
        ("3. a\n3. b\n7. c", "3. a\n4. b\n7. c\n"),
        ("- [ ] a\n- [x] b", "☐ a\n☑ b\n"),
        ("> a\n> > b\nc", "│ a\n│ │ b\n│ │ c\n"),
        ("a **b** _c_ ~~d~~ `e`", "a b c d e\n"),
        ("[a](https://x.y/z)", "a (https://x.y/z)\n"),
        ("<https://x.y/z>", "https://x.y/z\n"),
        ("```py\nx = 1\n```\nafter", "```py\nx = 1\n```\nafter\n"),
        ("|a|b|\n|-|-:|\n|1|2|\n", "a │ b\n──┼──\n1 │ 2\n"),
    ],
)
def test_markdown_as_it_is_shown(text: str, expected: str):
    assert shown(text) == expected
    assert shown(text, size=1) == expected
