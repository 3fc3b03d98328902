"""An answer in markdown, as it is shown."""

import pytest
from tests.cli.chat_view.screens import DARK, LINKED, letters, shown

from everloop.cli.chat_view.leaves import LONG_CODE, LONG_PARAGRAPH, LONG_TABLE
from everloop.cli.chat_view.markdown import StreamedMarkdown

LISTS = {
    "items": ("- a\n- b\n* c\n+ d", "• a\n• b\n• c\n• d\n"),
    "nested": ("- a\n- b\n  - c\n    - d\n- e", "• a\n• b\n  • c\n    • d\n• e\n"),
    "paragraphs of an item": ("- a\n\n  b\n\n- c", "• a\n\n  b\n\n• c\n"),
    "a lazy line": ("- a\nb", "• a\n  b\n"),
    "numbers as written": ("3. a\n4. b\n7. c", "3. a\n4. b\n7. c\n"),
    "numbers that are all the same": ("1. a\n1. b\n1. c", "1. a\n2. b\n3. c\n"),
    "numbers of another list": ("1. a\n   1. b\n   2. c\n2. d\n   1. e", "1. a\n   1. b\n   2. c\n2. d\n   1. e\n"),
    "tasks": ("- [ ] a\n- [x] b", "☐ a\n☑ b\n"),
    "an item of items": ("- - a\n  - b", "• • a\n  • b\n"),
    "an empty item": ("- a\n-\n- c", "• a\n•\n• c\n"),
    "code in an item": ("1. a\n   ```\n   x\n     y\n   ```\n2. b", "1. a\n   ```\n   x\n     y\n   ```\n2. b\n"),
    "no list: a year within a paragraph": ("It was\n1984. Then", "It was\n1984. Then\n"),
    "a list after a paragraph": ("a\n- b", "a\n• b\n"),
}
BLOCKS = {
    "line ends stay": ("one\ntwo\n\nthree", "one\ntwo\n\nthree\n"),
    "many empty lines are one": ("one\n\n\n\n\ntwo\n\n\n", "one\n\ntwo\n"),
    "windows": ("one\r\ntwo\r\n\r\nthree", "one\ntwo\n\nthree\n"),
    "heading": ("a\n## Title ##\ntext", "a\n\n## Title\ntext\n"),
    "heading that is underlined": ("a\n\nTitle\n===\ntext", "a\n\n# Title\ntext\n"),
    "no heading": ("#tag and #1", "#tag and #1\n"),
    "rule": ("a\n\n---\n\nb", f"a\n\n{'─' * 60}\n\nb\n"),
    "quote": ("> a\n> > b\nc\n\nd", "│ a\n│ │ b\n│ │ c\n\nd\n"),
    "quote with an empty line": ("> a\n>\n> b", "│ a\n│\n│ b\n"),
    "quote of a list": ("> - a\n> - b", "│ • a\n│ • b\n"),
    "fence": ("```py\nx = 1\n\n\n```\nafter", "```py\nx = 1\n\n\n```\nafter\n"),
    "fence of tildes": ("~~~~\n~~~\n```\n~~~~", "~~~~\n~~~\n```\n~~~~\n"),
    "fence that is not closed": ("```\nx", "```\nx\n"),
    "fence with tabs": ("```\n\tx\n```", "```\n    x\n```\n"),
    "empty fence": ("```\n```", "```\n```\n"),
    "indented code": ("a\n\n    x\n\n      y\n\nb", "a\n\nx\n\n  y\n\nb\n"),
    "table": ("|a|b|\n|-|-:|\n|1|2|\n|333|4|\ntext", "a   │ b\n────┼──\n1   │ 2\n333 │ 4\ntext\n"),
    "table without bars at its ends": ("a | b\n--- | ---\n1 | 2", "a │ b\n──┼──\n1 │ 2\n"),
    "table with a bar in a cell": ("|a|\n|-|\n|x \\| y|", "a\n─────\nx | y\n"),
    "table with more cells than its head": ("|a|\n|-|\n|1|2|", "a\n──┼──\n1 │ 2\n"),
    "no table": ("a | b\nc | d", "a | b\nc | d\n"),
    "html": ("<div>\n<b>x</b>\n</div>", "<div>\n<b>x</b>\n</div>\n"),
    "nothing": ("", ""),
    "only spaces": ("  \n \n", ""),
}
INLINE = {
    "looks": ("a **b** _c_ ~~d~~ `e` ***f***", "a b c d e f\n"),
    "escaped": (r"\*a\* \[b\]", "*a* [b]\n"),
    "half": ("a **b and `c", "a **b and `c\n"),
    "snake_case": ("a_b_c and 2*3*4", "a_b_c and 234\n"),
    "link": ("[a](https://x.y/z)", "a (https://x.y/z)\n"),
    "link with a title": ('[a](https://x.y/z "b c")', "a (https://x.y/z “b c”)\n"),
    "link of an address": ("<https://x.y/z>", "https://x.y/z\n"),
    "link that says where it leads": ("[https://x.y](https://x.y)", "https://x.y\n"),
    "link that says where it does not lead": ("[https://x.y](https://e.vil)", "https://x.y (https://e.vil)\n"),
    "link that is none": ("[a](javascript:alert)", "a (javascript:alert)\n"),
    "image": ("![a](https://x.y/z.png)", "[image: a] (https://x.y/z.png)\n"),
    "entities": ("a &amp; b &lt;c&gt; &copy;", "a & b <c> ©\n"),
    "wide letters": ("日本語" * 12, f"{('日本語' * 12)[:30]}\n{('日本語' * 12)[30:]}\n"),
}
CASES = {**LISTS, **BLOCKS, **INLINE}


@pytest.mark.parametrize("text, expected", CASES.values(), ids=CASES)
def test_markdown_as_it_is_shown(text: str, expected: str):
    assert shown(text) == expected
    assert shown(text, size=1) == expected
    assert letters(shown(text, theme=DARK)) == expected.replace("# Title", "Title").replace("#Title", "Title")


def test_looks():
    text = "# a\n**b** *c* `d` ~~e~~ [f](https://x.y)\n```python\nreturn 1\n```"
    assert shown(text, theme=DARK) == (
        "\x1b[1;4;38;5;117ma\x1b[0m\n"
        "\x1b[1mb\x1b[0m \x1b[3mc\x1b[0m \x1b[38;5;180md\x1b[0m \x1b[9me\x1b[0m "
        "\x1b[4;38;5;111mf\x1b[0m (\x1b[4;38;5;244mhttps://x.y\x1b[0m)\n"
        "\x1b[38;5;244m```python\x1b[0m\n"
        "\x1b[38;5;176mreturn\x1b[0m \x1b[38;5;216m1\x1b[0m\n"
        "\x1b[38;5;244m```\x1b[0m\n"
    )


def test_a_clean_address_can_be_clicked_where_the_theme_has_links_and_no_other():
    link = "\x1b]8;;https://x.y\x1b\\\x1b[4;38;5;111mf\x1b[0m\x1b]8;;\x1b\\"
    assert shown("[f](https://x.y)", theme=LINKED).startswith(link)
    for address in ("javascript:x", "file:///etc/passwd", "https://x.y/\x1b", "https://ü.y"):
        assert "\x1b]" not in shown(f"[f]({address})", theme=LINKED)
    assert "\x1b]" not in shown("[f](https://x.y)", theme=DARK)


def test_nothing_is_said_before_it_is_finished_and_then_at_once():
    markdown = StreamedMarkdown(DARK, lambda: 60)
    said = [markdown.feed(piece) for piece in ("one", " two\n", "three\n", "\n", "- a\n- b", "\n- c\n")]
    assert said == ["", "", "", "one two\nthree\n", "", "\n\x1b[38;5;117m•\x1b[0m a\n\x1b[38;5;117m•\x1b[0m b\n"]
    assert letters(markdown.close()) == "• c\n"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("one\n\ntwo **thr", "\ntwo thr"),
        ("a [link](https://exa", "a link"),
        ("- a\n- b", "• a\n• b"),
        ("```py\na\nb\nc\nd", "b\nc\nd"),
        ("|a|b|\n|-|-|\n|1|2|\n|3|4|\n|5", "1 │ 2\n3 │ 4\n5"),
        ("word " * 30, "word word word word\nword word word word\nword word"),
        ("", ""),
    ],
)
def test_what_still_grows_is_shown_with_its_last_rows(text: str, expected: str):
    markdown = StreamedMarkdown(DARK, lambda: 20)
    markdown.feed(text)
    assert letters(markdown.live(3)) == expected
    assert letters(markdown.live(3)) == expected  # to look changes nothing
    assert markdown.live(0) == ""


def test_a_draft_and_the_finished_text_go_on_from_each_other():
    markdown = StreamedMarkdown(DARK, lambda: 60)
    markdown.feed("1. a\n1. b\n")
    markdown.live(5)
    assert letters(markdown.feed("1. c\n") + markdown.close()) == "2. b\n3. c\n"


def test_the_width_is_asked_for_each_time():
    width = 60
    markdown = StreamedMarkdown(DARK, lambda: width)
    wide = markdown.feed("word " * 10 + "\n\n")
    width = 20
    assert (wide.count("\n"), markdown.feed("word " * 10 + "\n\n").count("\n")) == (1, 4)


@pytest.mark.parametrize(
    "line, most, before",
    [
        ("x = 1\n", LONG_CODE, "```python\n"),
        ("- item\n", 1, ""),
        ("| cell | b |\n", LONG_TABLE, "|a|b|\n|-|-|\n"),
        ("word\n", LONG_PARAGRAPH // 4, ""),
        ("> quoted\n", LONG_PARAGRAPH // 6 + 1, ""),
        ("  x = 1\n", LONG_CODE, "- ```\n"),
    ],
)
def test_a_long_block_is_let_go_before_it_ends_and_no_line_of_it_is_lost(line: str, most: int, before: str):
    markdown = StreamedMarkdown(DARK, lambda: 60)
    said = [markdown.feed(before), *(markdown.feed(line) for _ in range(10_000))]
    kept = markdown.close()
    assert kept.count("\n") <= most + 2
    assert max(each.count("\n") for each in said) <= most + 4
    word = line.strip("-|> \n").split()[0]
    assert letters("".join(said) + kept).count(word) == 10_000
