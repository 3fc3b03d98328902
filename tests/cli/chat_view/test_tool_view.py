"""A call of a tool, as it is shown while it runs and afterwards."""

import json

import pytest
from tests.cli.chat_view.screens import DARK, PLAIN, left_open, letters, steering
from tests.cli.test_nothing_steers_the_terminal import CORPUS, EVIL

from everloop.cli.cells import cells
from everloop.cli.chat_view.theme import Theme
from everloop.cli.chat_view.tool_view import KEPT, LONGEST, ToolView

OUTCOMES = ("done", "failed", "denied", "unknown", "cancelled", "repeated", "abandoned", "handed")
FILE = "".join(f"line {number}\n" for number in range(1, 21))


def view(tool: str, theme: Theme = PLAIN, width: int = 40, read=None, **args: object) -> ToolView:
    return ToolView(tool, json.dumps(args), theme, lambda: width, read)


@pytest.mark.parametrize(
    "tool, args, head",
    [
        ("exec", {"command": "ls -la", "timeout": 5}, "● exec ls -la"),
        ("exec", {"command": "one\ntwo"}, "● exec one\\ntwo"),
        ("read_file", {"path": "a.png"}, "● read_file a.png"),
        ("spawn", {"task": "look at it", "wait": True}, "● spawn look at it"),
        ("web_search", {"query": "x y"}, "● web_search x y"),
        ("mcp_git_log", {"repo": "a", "n": 3}, "● mcp_git_log repo: a, n: 3"),
        ("list_dir", {}, "● list_dir()"),
        ("exec", {"command": "x" * 100}, f"● exec {'x' * 32}…"),
    ],
)
def test_its_head_is_one_line_that_says_what_is_called(tool: str, args: dict[str, object], head: str):
    assert view(tool, **args).head() == head


@pytest.mark.parametrize("args", ["", "[]", "{", "null", '"x"', '{"a": {"b": [1]}}', "{" * 5_000])
def test_arguments_that_are_none_are_no_fault(args: str):
    assert ToolView("x", args, PLAIN, lambda: 40).head().startswith("● x")


def test_what_it_says_is_shown_with_its_last_lines_and_how_many_there_are():
    running = view("exec", command="x")
    assert running.live(5) == ""
    running.output("1\n2\n")
    assert running.live(5) == "  1\n  2"
    running.output("3\n4\n5\n6")
    assert running.live(5) == "  … 6 lines\n  3\n  4\n  5\n  6"
    running.output(" and more\n" + "7\n" * 1_000 + "x" * 100)
    assert running.live(2) == f"  … 1,007 lines\n  {'x' * 37}…"
    assert (running.live(1), running.live(0)) == ("  … 1,007 lines", "")


def test_endless_output_is_not_kept():
    running = view("exec", command="x")
    for _ in range(2_000):
        running.output("x" * 5_000)
    running.output("\n" * 100_000)
    assert "… 100,000 lines" in running.live(3)
    assert sum(map(len, running._lines)) + len(running._open) <= KEPT * LONGEST


def test_a_sub_agent_tells_how_far_it_is():
    running = view("spawn", task="look")
    running.progress(3, "web_search\x1b[2J")
    assert running.live(5) == "  step 3: web_search\\u001b[2J"


@pytest.mark.parametrize(
    "outcome, told",
    [
        ("done", "✓ exec x\n  out"),
        ("failed", "✗ exec x\n  failed\n  out"),
        ("denied", "✗ exec x\n  not allowed\n  out"),
        ("unknown", "? exec x\n  nobody knows whether it took effect\n  out"),
        ("cancelled", "■ exec x\n  stopped\n  out"),
        ("handed", "→ exec x\n  works in the background\n  out"),
        ("other\n", "✗ exec x\n  other\\n\n  out"),
    ],
)
def test_what_stays_of_it_says_what_came_of_it(outcome: str, told: str):
    assert view("exec", command="x").done(outcome, "out\n") == told


def test_long_output_is_folded_and_says_how_much_is_left_out():
    lines = [str(number) for number in range(482)]
    expected = [*lines[:6], "… 470 more lines", *lines[-6:]]
    assert view("exec", command="x").done("done", "\n".join(lines)).split("\n")[1:] == [
        f"  {each}" for each in expected
    ]
    lines[200] = "… [4096 bytes left out] …"  # of which nobody knows how many lines they were
    assert "… over 470 more lines" in view("exec", command="x").done("done", "\n".join(lines))
    short = "\n".join(lines[:15])
    assert view("exec", command="x").done("done", short).count("\n") == 15


def test_a_long_line_is_broken_below_its_beginning_and_one_that_is_too_long_says_so():
    assert view("exec", width=12, command="x").done("done", "0123456789ab\n\n日本語日本語\n") == (
        "✓ exec x\n  0123456789\n  ab\n\n  日本語日本\n  語"
    )
    assert view("exec", width=3_000, command="x").done("done", "x" * 5_000).endswith("x… (5,000 letters)")


class TestChanges:
    def test_an_edit_of_a_known_file_is_shown_with_what_is_around_it(self):
        edit = {"path": "a.txt", "old_text": "line 10\n", "new_text": "line ten\n"}
        assert view("edit_file", read=lambda path: FILE, **edit).done("done", "Edited a.txt at line 10.") == (
            "✓ edit_file a.txt\n"
            "  a.txt +1 -1\n"
            "   ⋮\n"
            "   7   line 7\n"
            "   8   line 8\n"
            "   9   line 9\n"
            "  10 - line 10\n"
            "  10 + line ten\n"
            "  11   line 11\n"
            "  12   line 12\n"
            "  13   line 13\n"
            "  Edited a.txt at line 10."
        )

    def test_one_of_an_unknown_file_at_the_line_that_the_tool_tells(self):
        edit = {"path": "a.txt", "old_text": "line 10\n", "new_text": "line ten\n"}
        assert view("edit_file", **edit).done("done", "Edited a.txt at line 10.") == (
            "✓ edit_file a.txt\n  a.txt +1 -1\n  10 - line 10\n  10 + line ten\n  Edited a.txt at line 10."
        )

    def test_a_new_file_is_all_added(self):
        written = view("write_file", read=lambda path: None, path="a.txt", content="one\ntwo\n")
        assert written.done("done", "Wrote 8 bytes to a.txt.") == (
            "✓ write_file a.txt\n  a.txt +2\n  1 + one\n  2 + two\n  Wrote 8 bytes to a.txt."
        )

    def test_a_file_that_was_read_too_late_shows_no_change(self):
        written = view("write_file", read=lambda path: "one\n", path="a.txt", content="one\n")
        assert written.done("done", "Wrote 4 bytes to a.txt.") == "✓ write_file a.txt\n  Wrote 4 bytes to a.txt."

    def test_an_edit_that_changed_nothing_shows_none(self):
        edit = {"path": "a.txt", "old_text": "a", "new_text": "b"}
        told = "a.txt already reads so; nothing was changed."
        assert view("edit_file", width=60, **edit).done("done", told) == f"✓ edit_file a.txt\n  {told}"

    def test_one_that_failed_shows_why_and_no_change(self):
        edit = {"path": "a.txt", "old_text": "line 10\n", "new_text": "line ten\n"}
        assert view("edit_file", **edit).done("failed", "there is no 'a.txt'") == (
            "✗ edit_file a.txt\n  failed\n  there is no 'a.txt'"
        )

    def test_a_patch_is_shown_as_it_was_written(self):
        patch = "--- a\n+++ a\n@@ -1 +1 @@\n-one\n+two\n"
        assert view("apply_patch", patch=patch).done("done", "Changed a.").endswith("  -one\n  +two\n  Changed a.")


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("tool", ["exec", "write_file", "edit_file", "apply_patch", "spawn", EVIL])
def test_nothing_that_a_tool_says_or_is_called_with_steers_the_terminal(tool: str, outcome: str):
    names = ("command", "path", "content", "old_text", "new_text", "patch", "task")
    args = {name: EVIL + ("x" if name == "new_text" else "") for name in names}
    for theme in (PLAIN, DARK):
        running = view(tool, theme, 50, read=lambda path: EVIL, **args)
        running.output(EVIL)
        said = [running.head(), running.live(9), running.done(outcome, EVIL)]
        assert [steering(letters(each) if theme is DARK else each) for each in said] == [[], [], []]
        assert [left_open(each) for each in said] == [[], [], []]
        assert [line for each in said[:2] for line in letters(each).split("\n") if cells(line) > 50] == []


def test_that_would_be_noticed():
    assert all(steering(text) for text in CORPUS.values())
