"""Long answers in parts: where they are cut, and what is written again."""

from everloop.channels.text import DISCORD, MATRIX, PLAIN, RESERVE, SLACK, TELEGRAM, TextDialect, length, render
from everloop.ports.channel import Unit

LIMIT = 240
ROOM = LIMIT - RESERVE


def texts(markdown: str, dialect: TextDialect = PLAIN, limit: int = LIMIT, unit: Unit | None = None) -> list[str]:
    return [part.text for part in render(markdown, dialect, limit, unit)]


def test_an_answer_that_fits_is_one_part():
    assert texts("word\n\n" * 30) == ["\n\n".join(["word"] * 30)]


def test_a_part_ends_between_blocks():
    a, b, c = "a" * 90, "b" * 90, "c" * 90
    assert texts(f"{a}\n\n{b}\n\n{c}") == [f"{a}\n\n{b}", c]


def test_a_heading_stays_with_what_follows():
    a, b = "a" * 150, "b" * 100
    assert texts(f"{a}\n\n# Next\n\n{b}") == [a, f"Next\n\n{b}"]


def test_a_long_paragraph_ends_with_a_sentence_or_a_word():
    sentence = "This is the first of many sentences. "
    assert texts(sentence * 10) == [(sentence * 5).strip()] * 2
    assert texts("word " * 60) == [("word " * 40).strip(), ("word " * 20).strip()]
    assert texts("x" * 300) == ["x" * ROOM, "x" * (300 - ROOM)]


def test_a_fence_is_closed_and_opened_again():
    code = "\n".join(f"line_{n:02} = '{'x' * 20}'" for n in range(8))
    lines = code.split("\n")
    assert texts(f"```python\n{code}\n```", DISCORD) == [
        "```python\n" + "\n".join(lines[:5]) + "\n```",
        "```python\n" + "\n".join(lines[5:]) + "\n```",
    ]
    opening, closing = '<pre><code class="language-python">', "</code></pre>"
    assert texts(f"```python\n{code}\n```", TELEGRAM) == [
        opening + "\n".join(lines[:6]) + closing,
        opening + "\n".join(lines[6:]) + closing,
    ]


def test_a_list_keeps_its_numbers():
    items = [f"{n}. {'x' * 60}" for n in range(8, 13)]
    assert texts("\n".join(items), SLACK) == ["\n".join(items[:2]), "\n".join(items[2:4]), items[4]]
    x = "x" * 50
    assert texts("\n".join(f"{n}. {x}" for n in range(8, 13)), MATRIX, 400) == [
        f'<ol start="8"><li>{x}</li><li>{x}</li></ol>',
        f'<ol start="10"><li>{x}</li><li>{x}</li></ol>',
        f'<ol start="12"><li>{x}</li></ol>',
    ]


def test_an_item_that_goes_on_has_no_second_number():
    assert texts("7. " + "word " * 60) == ["7. " + ("word " * 39).strip(), "   " + ("word " * 21).strip()]
    [first, second] = texts("7. " + "word " * 30, MATRIX, 300)
    assert first.startswith('<ol start="7"><li>word')
    assert second.startswith("word")


def test_a_look_goes_on_in_the_next_part():
    assert texts("**" + "word " * 59 + "word**", TELEGRAM) == [
        f"<b>{('word ' * 40).strip()}</b>",
        f"<b>{('word ' * 20).strip()}</b>",
    ]


def test_a_link_is_whole():
    text = "x" * 190 + " [a label of some words](https://e.com) end"
    assert texts(text, TELEGRAM) == ["x" * 190, '<a href="https://e.com">a label of some words</a> end']


def test_a_link_that_is_longer_than_a_part_is_told_as_text():
    address = "https://e.com/" + "y" * 400
    parts = texts(f"[label]({address})", DISCORD)
    assert "".join(parts).replace("\\", "") == f"label ({address})"


def test_characters_are_whole():
    family, flag, accent = "👨‍👩‍👧‍👦", "🇩🇪", "é"
    for one in (family, flag, accent, "👍🏽", "각", "क्ष"):
        for before in range(len(one) + 4):
            parts = texts("x" * before + one * 300, TELEGRAM)
            assert "".join(parts) == "x" * before + one * 300
            assert all(part.replace("x", "").replace(one, "") == "" for part in parts), (one, before)


def test_a_character_without_end_is_cut():
    zalgo = "a" + "\u0301" * 1_000
    assert "".join(texts(zalgo, TELEGRAM)) == zalgo


def test_lengths_are_those_of_the_platform():
    text = "😀é" * 300
    units: list[Unit] = ["char", "utf16", "byte"]
    assert [max(length(part, unit) for part in texts(text, PLAIN, LIMIT, unit)) for unit in units] == [200, 200, 198]


def test_telegram_counts_what_is_shown_and_both_forms_fit():
    parts = render("[a](https://e.com/x) " * 40, TELEGRAM, 400)
    assert all(len(part.plain) <= 400 - RESERVE for part in parts)
    assert max(len(part.text) for part in parts) > 400
    assert max(part.text.count("<a") for part in render("`a` **b** " * 300, TELEGRAM)) == 0
    assert [part.text.count("<") // 2 for part in render("`a` **b** " * 150, TELEGRAM)] == [100, 100, 100]


def test_a_table_too_long_for_a_part_is_told_row_by_row_where_there_are_tables():
    table = "| a | b |\n|---|---|\n" + "\n".join(f"| {n} | {'x' * 20} |" for n in range(20))
    parts = texts(table, MATRIX, 400)
    assert parts[0].startswith("<p><strong>a</strong>: 0<br><strong>b</strong>: x")
    assert len(parts) > 1


def test_what_stands_too_deep_for_its_part_comes_out():
    deep = "10000000. " * 10 + "word " * 100
    assert "".join(texts(deep)).count("word") == 100
