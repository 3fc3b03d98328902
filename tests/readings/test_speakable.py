"""What is read aloud of an answer."""

import time

import pytest

from everloop.readings.speakable import cut_to_parts, speakable

ANSWER = """# Milk

It costs **two** euros; see [the shop](https://example.org/milk) or https://example.org/all.

- whole
- `skimmed_milk`, _cold_
1. [ ] snake_case and 2 * 3 stay

| name | price |
|------|------:|
| whole | 2 € |

![a cow](https://example.org/cow.png)

$$
E = mc^2
$$

---

```python
print("milk")
print("more")
```
> quoted
"""


def test_an_answer_becomes_words_and_code_is_announced():
    assert speakable(ANSWER).split("\n") == [
        "Milk.",
        "It costs two euros; see the shop or a link to example.org.",
        "whole.",
        "skimmed_milk, cold.",
        "[ ] snake_case and 2 * 3 stay.",
        "name, price.",
        "whole, 2 €",
        "A picture: a cow.",
        "A formula.",
        "A block of python code, 2 lines.",
        "quoted.",
    ]


@pytest.mark.parametrize("nothing", ["", "\n\n", "---", "***", "🙂", "```\n", "$$"])
def test_where_there_is_nothing_to_say_at_most_that_is_announced(nothing):
    assert speakable(nothing) in ("", "A block of code, 0 lines.", "A formula.")


@pytest.mark.parametrize("size", [20, 50, 220])
def test_a_text_is_cut_where_something_ends_and_nothing_is_lost(size):
    text = "One sentence. Another one of words!\nA line without an end and more words than fit\n" * 4 + "x" * 300
    parts = cut_to_parts(text, size)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert max(map(len, parts)) <= size


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "*" * 100_000, "`" * 99_999, "| " * 50_000, "- " * 50_000, "> " * 50_000]
)
def test_marks_without_end_take_no_time(text):
    assert len(speakable(text)) <= len(text)


@pytest.mark.parametrize("piece", [" ", "- ", "|-", "\\(", "\\[", "[a](", "`", "http://", "\n"])
def test_an_answer_that_is_made_to_be_slow_to_read_is_read_in_a_moment(piece: str):
    """A page may bring a model to say it, and all that the gateway does would wait."""
    before = time.process_time()
    speakable(f"x{piece * (40_000 // len(piece))}")
    speakable(piece * (40_000 // len(piece)))
    assert time.process_time() - before < 3


def test_what_stands_under_the_titles_of_a_table_is_not_read():
    for line in ("|---|:-:|", "--- | ---|", ":--|--:|--|", " | - | ", "---", "- - -"):
        assert speakable(f"a\n{line}\nb") == "a.\nb."
    assert speakable("| a - b |") == "a - b."
