"""What holds for every text: lengths, markup that is well formed, no mention, and nothing lost."""

import re
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everloop.channels.text import (
    DISCORD,
    EMAIL,
    MATRIX,
    PLAIN,
    RESERVE,
    SLACK,
    TELEGRAM,
    Rendered,
    TextDialect,
    draft,
    length,
    render,
)
from tests.channels.text import checkers
from tests.channels.text.corpus import ANSWERS, PIECES
from tests.effort import examples, in_full

Check = Callable[[str], None]
DIALECTS: list[tuple[TextDialect, Check]] = [
    (PLAIN, checkers.check_plain),
    (TELEGRAM, checkers.check_telegram),
    (SLACK, checkers.check_slack),
    (DISCORD, checkers.check_discord),
    (MATRIX, checkers.check_matrix),
    (EMAIL, checkers.check_html),
]
NAMES = ["plain", "telegram", "slack", "discord", "matrix", "email"]
every_dialect = pytest.mark.parametrize("dialect, check", DIALECTS, ids=NAMES)

MARKDOWN = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=40).map("".join)
LIMITS = st.sampled_from([200, 201, 240, 333, 1_000, 4_096])


def size(part: Rendered, dialect: TextDialect) -> int:
    """How long it is for its platform, worked out here in another way."""
    if dialect in (MATRIX, EMAIL):
        return len(msgspec.json.encode([part.text, part.plain])) - 3
    if dialect is not TELEGRAM:
        return length(part.text, dialect.unit)
    shown = re.sub(r"<[^>]*>", "", part.text)
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        shown = shown.replace(entity, character)
    return sum(2 if ord(each) > 0xFFFF else 1 for each in shown)


def bare(text: str) -> str:
    """Without spaces, what is written before a line or again in a further part, and what keeps a name from one."""
    return re.sub(r"[\s>\u200b]|&gt;", "", text.replace("%40", "@"))


@every_dialect
@examples(240)
@given(MARKDOWN, LIMITS)
def test_parts_are_short_enough_well_formed_and_mention_nobody(
    dialect: TextDialect, check: Check, markdown: str, limit: int
):
    parts = render(markdown, dialect, limit)
    assert parts == render(markdown, dialect, limit)
    for part in parts:
        check(part.text)
        checkers.check_plain(part.plain)
        assert size(part, dialect) <= limit - RESERVE
        assert dialect in (MATRIX, EMAIL) or length(part.plain, dialect.unit) <= limit - RESERVE


@every_dialect
@examples(160)
@given(MARKDOWN.filter(lambda text: "|" not in text), LIMITS)
def test_the_parts_together_say_what_the_whole_says(dialect: TextDialect, check: Check, markdown: str, limit: int):
    parts, [whole] = render(markdown, dialect, limit), render(markdown, dialect, 0)
    assert bare("".join(part.plain for part in parts)) == bare(whole.plain)


@every_dialect
@examples(120)
@given(MARKDOWN)
def test_a_draft_is_well_formed(dialect: TextDialect, check: Check, markdown: str):
    check(draft(markdown, dialect, 300).text)


@pytest.mark.shortened
@every_dialect
@pytest.mark.parametrize("answer", ANSWERS, ids=range(len(ANSWERS)))
def test_every_beginning_of_an_answer_is_well_formed(dialect: TextDialect, check: Check, answer: str):
    for end in range(0, len(answer) + 1, in_full(1, 9)):
        check(draft(answer[:end], dialect).text)


@pytest.mark.parametrize(
    "check, text",
    [
        (checkers.check_telegram, "<b>x"),
        (checkers.check_telegram, "<b><i>x</b></i>"),
        (checkers.check_telegram, "<h1>x</h1>"),
        (checkers.check_telegram, "a < b"),
        (checkers.check_telegram, "AT&T"),
        (checkers.check_telegram, "hi @bob"),
        (checkers.check_telegram, '<a href="javascript:x">x</a>'),
        (checkers.check_telegram, '<a href="tg://user?id=1">x</a>'),
        (checkers.check_telegram, "<code><b>x</b></code>"),
        (checkers.check_telegram, "<blockquote><blockquote>x</blockquote></blockquote>"),
        (checkers.check_telegram, "<i>x</i>" * 101),
        (checkers.check_matrix, "<li>x</li>"),
        (checkers.check_matrix, "<script>x</script>"),
        (checkers.check_matrix, '<p onclick="x">x</p>'),
        (checkers.check_matrix, "@room"),
        (checkers.check_slack, "<!channel>"),
        (checkers.check_slack, "<@U1>"),
        (checkers.check_slack, "<javascript:x|y>"),
        (checkers.check_slack, "a & b"),
        (checkers.check_slack, "```\nx"),
        (checkers.check_discord, "@everyone"),
        (checkers.check_discord, "<@1>"),
        (checkers.check_discord, "[x](javascript:y)"),
        (checkers.check_discord, "```\nx"),
        (checkers.check_plain, "\u202e"),
    ],
)
def test_the_checks_notice_what_is_not(check: Check, text: str):
    with pytest.raises(AssertionError):
        check(text)
