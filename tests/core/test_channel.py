"""The table of traits: what a conversation may count on is asked of its channel's traits, never of its name."""

import ast
from pathlib import Path

import pytest

import everloop
from everloop.app.channels import OURS
from everloop.ports.channel import ASIDE, DOORS, Traits, traits_of

PACKAGE = Path(everloop.__file__).parent


def test_a_channel_that_nobody_knows_promises_nothing():
    assert traits_of("telegram:7") == traits_of("") == traits_of("apis:x") == Traits()


def test_the_doors_of_the_house_are_told_apart_by_their_traits():
    assert traits_of("page:1") == traits_of("page") == DOORS["page"]
    assert [name for name in DOORS if traits_of(name).private] == ["api", "cli", "mcp", "openai", "page"]
    assert [name for name in DOORS if traits_of(name).self_delivering] == ["api", "mcp", "openai", "page"]
    assert [name for name in DOORS if traits_of(name).open] == ["api", "mcp", "page"]
    assert ASIDE == "openai:"


def test_a_channel_of_ones_own_is_found_among_those_that_are_given():
    mine = Traits(once=True, text_limit=4096, text_unit="utf16")
    assert traits_of("mine:7", {**DOORS, "mine": mine}) == mine


def comparisons(source: str) -> list[int]:
    """The lines that compare something with the name of a door or a channel of ours, alone or as the beginning of a
    session key."""
    named = {name for door in (*DOORS, *OURS) for name in (door, f"{door}:")}
    found: list[int] = []
    if not any(f'"{name}"' in source for name in named):  # as in most: to parse a thousand files takes seconds
        return found
    for node in ast.walk(ast.parse(source)):
        beginning = (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "startswith"
        )
        if isinstance(node, ast.Compare) or beginning:
            found += [each.lineno for each in ast.walk(node) if isinstance(each, ast.Constant) and each.value in named]
    return found


@pytest.mark.parametrize(
    "source",
    [
        'channel == "cli"',
        'key.startswith("api:")',
        'x in ("page", "api")',
        'key.startswith(("page:", "x"))',
        'name != "slack"',
    ],
)
def test_a_comparison_with_a_channels_name_is_found(source: str):
    assert comparisons(source)


def test_nothing_asks_for_a_channels_name():
    # In `providers` and `settings` `openai` is a host and a dialect; other agents' settings have channels, too; what is
    # in a channel's own folder, or plays its platform, is that channel's.
    apart = {"providers", "settings", "channels", "testing", "moving"}
    files = [file for file in PACKAGE.rglob("*.py") if file.relative_to(PACKAGE).parts[0] not in apart]
    found = {str(file.relative_to(PACKAGE)): comparisons(file.read_text()) for file in files}
    assert {file: lines for file, lines in found.items() if lines} == {}
