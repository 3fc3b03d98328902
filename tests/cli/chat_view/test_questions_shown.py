"""What a person has to decide on is shown whole."""

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.cli.chat_view.screens import DARK, PLAIN, left_open, letters, steering
from tests.cli.test_nothing_steers_the_terminal import EVIL
from tests.effort import examples

from everloop.cli.cells import cells
from everloop.cli.chat_view.approvals import args_of, question
from everloop.core.mail import Decision
from everloop.core.tool import Risk, ToolCall
from everloop.ports.permission import Approval, FileState, Held, WantedCall
from everloop.readings.held import difference
from everloop.readings.questions import shown

NOBODY_KNOWS = Risk("high", mutates=True, why="it removes something")


def approval(tool: str, text: str, held: Held | None = None, risk: Risk = NOBODY_KNOWS) -> Approval:
    return Approval(
        id="x",
        session="s",
        requester="owner",
        tool=tool,
        text=text,
        risk=risk,
        until=0.0,
        decision=Decision("t", 1, 0, "allowed"),
        address="",
        wanted=None if held else WantedCall(tool, "owner", "t", "d", "d", risk),
        held=held,
    )


def asked(tool: str, **args: str) -> Approval:
    return approval(tool, shown(ToolCall("", tool, json.dumps(args))))


def test_a_call_with_its_risk():
    assert question(asked("exec", command="rm -rf x\nls"), PLAIN, 60) == (
        "May I run exec\n  command: \n    | rm -rf x\n    | ls\n"
        "(risk: high, changes something)\nWhy: it removes something"
    )


def test_a_call_that_writes_a_file_with_what_would_change():
    write = asked("write_file", path="a.txt", content="one\n2\n")
    assert question(write, PLAIN, 60, read=lambda path: "one\ntwo\n").split("\n")[-7:] == [
        "What would change:", "--- a.txt", "+++ a.txt", "@@ -1,2 +1,2 @@", " one", "-two", "+2",
    ]  # fmt: skip
    assert "What would change" not in question(write, PLAIN, 60)


def test_a_change_that_is_held_back_is_in_colours():
    held = Held("x", "MEMORY.md", FileState(b"one\ntwo\n"), FileState(b"one\n2\n"))
    said = question(approval("MEMORY.md", difference(held), held), DARK, 70)
    assert "\x1b[38;5;203m-two\x1b[0m\n\x1b[38;5;114m+2\x1b[0m" in said
    assert letters(said).startswith("MEMORY.md was changed, and the change is held back. May it stay?\n@@")


@given(st.text(max_size=400), st.sampled_from([10, 20, 60]))
@examples(100)
def test_every_letter_of_a_call_is_shown_in_rows_that_fit(command: str, width: int):
    whole = shown(ToolCall("", "exec", json.dumps({"command": command})))
    said = question(approval("exec", whole), PLAIN, width)
    assert max(map(cells, said.split("\n"))) <= max(width, 12)
    joined = said.replace("\n  ↪ ", "")
    assert joined.replace(" ", "").startswith(f"May I run {whole.expandtabs(4)}".replace(" ", ""))


def test_a_row_that_goes_on_cannot_pass_for_a_line_of_the_question():
    said = question(asked("exec", command="x" * 49 + "(risk: low)"), PLAIN, 60)
    assert "\n(risk: low)" not in said
    assert "\n  ↪ " in said


def test_one_that_is_long_says_so_and_is_there_all_the_same():
    lines = "".join(f"line {number}\n" for number in range(5_000))
    said = question(asked("write_file", path="a.txt", content=lines), PLAIN, 60, read=lambda path: None)
    assert said.count("line 4999") == 2
    assert said.endswith("lines: scroll up to see all of it)")


@given(st.dictionaries(st.sampled_from(["path", "content", "old_text", "new_text"]), st.text(max_size=40)))
@examples(200)
def test_arguments_are_read_again_as_they_are_shown(args: dict[str, str]):
    assert json.loads(args_of(shown(ToolCall("", "write_file", json.dumps(args))))) == args


def test_nothing_that_is_asked_steers_the_terminal():
    for theme in (PLAIN, DARK):
        said = question(approval(EVIL, EVIL, risk=Risk(why=EVIL)), theme, 50, read=lambda path: EVIL)
        assert steering(letters(said) if theme is DARK else said) == []
        assert left_open(said) == []
