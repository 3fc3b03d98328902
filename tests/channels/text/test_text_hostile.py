"""Texts that are made to hurt: they are shown, well formed, without a stack that runs over."""

import pytest

from everloop.channels.text import DISCORD, MATRIX, SLACK, TELEGRAM, render
from tests.channels.text import checkers

BOMBS = {
    "quotes": ">" * 10_000,
    "spaced quotes": "> " * 5_000 + "x",
    "brackets": "[" * 10_000,
    "closed brackets": "[" * 3_000 + "x" + "](y)" * 3_000,
    "images": "![" * 5_000,
    "lists": "- " * 5_000 + "x",
    "deep lists": "\n".join("  " * depth + "- x" for depth in range(300)),
    "numbers": "1. " * 5_000 + "x",
    "mixed": "> - 1. " * 2_000 + "x",
    "stars": "*a " * 5_000,
    "nested emphasis": "*a **b " * 2_000 + "c** d*" * 2_000,
    "adjacent emphasis": "a**" * 5_000,
    "ticks": "".join("`" * n + "a" for n in range(150)),
    "fences": "```\n" * 5_000,
    "entities": "&#x202e;&lt;" * 2_000,
    "angles": "<" * 10_000,
    "one long word": "x" * 50_000,
    "one long link": "[x](https://e.com/" + "y" * 50_000 + ")",
    "links": "[x](https://e.com/y) " * 1_000,
    "addresses": "https://" * 2_000,
    "accents": "a" + "\u0301" * 20_000,
    "a wide table": "|a" * 2_000 + "\n" + "|-" * 2_000 + "\n|b",
    "a long table": "|a|b|\n|-|-|\n" + "|x|[y](https://e.com)|\n" * 800,
    "spoilers": "||a " * 5_000,
    "formulas": "\\( $a $$ " * 3_000,
    "definitions": "".join(f"[{n}]: https://e.com/{n}\n" for n in range(1_500)) + "[7]" * 1_500,
    "too much to read": "**a** <b> " * 26_000,
    "surrogates": "\ud83d" * 1_000 + "\ude00" * 1_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_it_is_shown(name: str):
    for dialect, check in (
        (TELEGRAM, checkers.check_telegram),
        (SLACK, checkers.check_slack),
        (DISCORD, checkers.check_discord),
        (MATRIX, checkers.check_matrix),
    ):
        parts = render(BOMBS[name], dialect)
        assert parts[0].text
        for part in parts[:5] + parts[-5:]:
            check(part.text)
