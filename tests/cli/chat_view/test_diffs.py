"""What changes in a file, in colours and as unified text."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.chat_view.screens import DARK, PLAIN, left_open, letters, steering
from tests.cli.test_nothing_steers_the_terminal import EVIL
from tests.effort import examples

from everloop.cli.cells import cells
from everloop.cli.chat_view.diffs import coloured, diff, diff_of_call, rows_of

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "a b c\n", "\n", "日本\n", "\tx\n"]), max_size=30).map("".join)
TEXTS = st.builds(str.__add__, LINES, st.sampled_from(["", "end"]))


def test_a_line_that_differs_little_shows_which_words():
    assert diff("one two three\n", "one 2 three\n", "a", DARK, 60).split("\n")[1:] == [
        "\x1b[38;5;242m1\x1b[0m \x1b[38;5;203m-\x1b[0m "
        "\x1b[38;5;203mone \x1b[0m\x1b[1;38;5;232;48;5;203mtwo\x1b[0m\x1b[38;5;203m three\x1b[0m",
        "\x1b[38;5;242m1\x1b[0m \x1b[38;5;114m+\x1b[0m "
        "\x1b[38;5;114mone \x1b[0m\x1b[1;38;5;232;48;5;114m2\x1b[0m\x1b[38;5;114m three\x1b[0m",
    ]


def test_texts_that_are_the_same_have_no_difference():
    assert diff("a\nb", "a\nb", "x", PLAIN, 60) == ""


def test_the_end_of_the_last_line_is_a_difference():
    end = "\\ No newline at end of file"
    assert diff("a\n", "a", "x", PLAIN, 60) == f"x\n1   a\n    {end}"
    assert diff_of_call("write_file", json.dumps({"path": "x", "content": "a"}), lambda path: "a\n") == (
        f"--- x\n+++ x\n@@ -1 +1,2 @@\n a\n{end}"
    )


def test_a_long_line_is_shown_whole_in_rows_that_fit():
    shown = diff("", "x" * 50 + "日本" * 10 + "\n", "a", PLAIN, 24).split("\n")[1:]
    assert "".join(row[4:] for row in shown) == "x" * 50 + "日本" * 10
    assert max(map(cells, shown)) <= 24


@given(TEXTS, TEXTS)
@examples(200)
def test_a_difference_makes_of_one_text_the_other(before: str, after: str):
    rows = list(rows_of(before, after))
    old, new = before.split("\n"), after.split("\n")
    for sign, number, text in rows:
        if text.startswith("\\ No newline") or sign == "@":
            continue
        if sign in "- ":
            assert text in old
        if sign in "+ ":
            assert new[number - 1] == text
        if sign == "-":
            assert old[number - 1] == text
    assert len([row for row in rows if row.sign == "+"]) - len([row for row in rows if row.sign == "-"]) == (
        len(new) - len(old) + (bool(new[-1]) - bool(old[-1])) * 2 if rows else 0
    )


def test_long_files_are_compared_in_a_moment_and_none_of_it_is_lost():
    """Lines that are all different, and in another order: what takes the most to compare."""
    lines = [f"{number}\n" for number in range(20_000)]
    mixed = random.Random(1).sample(lines, len(lines))
    rows = list(rows_of("".join(lines), "".join(mixed)))
    assert sorted(row.text for row in rows if row.sign == "+") == sorted(line.strip() for line in mixed)


class TestWhatACallWouldChange:
    def changed(self, tool: str, held: str | None, **args: str) -> str | None:
        return diff_of_call(tool, json.dumps(args), {"a.txt": held}.get)

    def test_a_file_that_is_written(self):
        assert self.changed("write_file", "one\ntwo\n", path="a.txt", content="one\n2\n") == (
            "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2"
        )

    def test_a_new_file(self):
        assert self.changed("write_file", None, path="a.txt", content="one\n") == (
            "--- a.txt\n+++ a.txt\n@@ -0,0 +1 @@\n+one"
        )

    def test_an_edit(self):
        assert self.changed("edit_file", "one\ntwo\n", path="a.txt", old_text="two", new_text="2") == (
            "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2"
        )

    def test_a_patch_is_one(self):
        assert self.changed("apply_patch", None, patch="*** Begin Patch") == "*** Begin Patch"

    @pytest.mark.parametrize("old", ["three", "", "o"])
    def test_an_edit_that_would_fail_changes_nothing(self, old: str):
        assert self.changed("edit_file", "one\ntwo\n", path="a.txt", old_text=old, new_text="2") is None

    def test_nor_does_one_of_a_file_that_is_not_there_or_another_tool(self):
        assert self.changed("edit_file", None, path="a.txt", old_text="a", new_text="b") is None
        assert self.changed("exec", "x", command="rm a.txt") is None

    @pytest.mark.parametrize("args", ["", "{", "[]", '{"path": 1, "content": "x"}', '{"path": "a.txt"}'])
    def test_arguments_that_are_none_are_no_fault(self, args: str):
        assert diff_of_call("write_file", args, {}.get) is None


def test_unified_text_is_coloured_line_by_line_and_a_row_that_goes_on_cannot_pass_for_another():
    assert coloured("--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n z", DARK, 60) == (
        "\x1b[1m--- a\x1b[0m\n\x1b[1m+++ a\x1b[0m\n\x1b[38;5;110m@@ -1 +1 @@\x1b[0m\n"
        "\x1b[38;5;203m-x\x1b[0m\n\x1b[38;5;114m+y\x1b[0m\n z"
    )
    assert coloured("+" + "x" * 15 + "-y", PLAIN, 16) == f"+{'x' * 15}\n  ↪ -y"


def test_nothing_in_a_file_steers_the_terminal():
    for theme in (PLAIN, DARK):
        said = [diff(EVIL, f"{EVIL}x\n{EVIL}", EVIL, theme, 50), coloured(f"+{EVIL}\n-{EVIL}", theme, 50)]
        assert [steering(letters(each) if theme is DARK else each) for each in said] == [[], []]
        assert [left_open(each) for each in said] == [[], []]
