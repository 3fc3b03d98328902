"""What becomes of a changed prompt file, and what a person is shown of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everloop.ports.permission import FileState, Held, PromptFile
from everloop.ports.rows import Taint
from everloop.readings.held import COMPARED, ChangeSource, difference, judge, latest, settled, told

OLD, NEW, OTHER = FileState(b"old\n"), FileState(b"new\n"), FileState(b"other\n")
THEIRS = ChangeSource("t1", "cli:direct")
KNOWN = PromptFile("USER.md", OLD, version=7)


def judged(before: PromptFile | None, found: FileState, source: ChangeSource | None = None) -> PromptFile:
    return judge(before, "USER.md", found, source, "/w")


def held(found: FileState = NEW) -> PromptFile:
    return judged(KNOWN, found, THEIRS)


def test_what_is_seen_first_is_accepted():
    assert judged(None, OLD, THEIRS) == PromptFile("USER.md", OLD)


def test_what_is_as_accepted_stays_as_it_is():
    assert judged(KNOWN, OLD, THEIRS) is KNOWN


def test_what_changed_without_a_taint_is_accepted():
    assert judged(KNOWN, NEW) == PromptFile("USER.md", NEW, version=8)


@pytest.mark.parametrize("found", [NEW, FileState(), FileState(b"old\n", "elsewhere"), FileState(b"old\n", names=2)])
def test_what_changed_while_a_taint_lasted_is_held(found: FileState):
    after = held(found)
    assert (after.accepted, after.held and after.held.found, after.version) == (OLD, found, 8)


def test_what_is_held_is_asked_about_once():
    assert judged(held(), NEW, THEIRS) == held()
    assert judged(told(held()), NEW) == told(held())


def test_another_change_of_what_is_held_is_another_question_even_by_hand():
    first, after = held().held, judged(told(held()), OTHER).held
    assert first
    assert after
    assert (after.found, after.asked, after.thread, after.id != first.id) == (OTHER, False, "t1", True)


def test_what_is_again_as_accepted_is_held_no_more():
    assert judged(held(), OLD) == PromptFile("USER.md", OLD, version=9)


def test_yes_accepts_what_was_found_and_no_what_was_there():
    assert settled(held(), True) == PromptFile("USER.md", NEW, version=9)
    assert settled(held(), False) == PromptFile("USER.md", OLD, version=9)


def test_the_same_change_after_a_no_is_another_question():
    again = judged(settled(held(), False), NEW, THEIRS).held
    first = held().held
    assert first
    assert again
    assert first.id != again.id


def test_a_change_came_by_a_strangers_call_rather_than_by_a_plain_command():
    plain, theirs = Taint("b:1:0", "/w", 5.0, outside=False), Taint("a:1:0", "/w", 1.0)
    assert (latest([plain, theirs]), latest([plain]), latest([])) == (theirs, plain, None)


def shown(accepted: FileState, found: FileState) -> str:
    return difference(Held("id", "USER.md", accepted, found))


def test_a_difference_has_nothing_in_it_that_cannot_be_seen():
    text = shown(FileState(b"a\n"), FileState("a\n\x1b]0;hacked\x07 \u202egnorts\n\u200b\r\n".encode() + b"\xff\n"))
    assert text == ("@@ -1,2 +1,5 @@\n a\n+\\u001b]0;hacked\\u0007 \\u202egnorts\n+\\u200b\\u000d\n+\\xff\n ")


def test_lines_that_look_like_the_head_of_a_difference_are_shown():
    assert shown(FileState(b"-- a"), FileState(b"++ b")) == "@@ -1 +1 @@\n--- a\n+++ b"


def test_notes_say_what_lines_cannot():
    assert shown(FileState(), FileState(b"a")) == "(there was no such file)\n@@ -0,0 +1 @@\n+a"
    assert shown(FileState(b"a"), FileState(b"a", "b.md")) == "(it is a link to 'b.md' now)"


def test_a_long_file_is_shown_whole_without_comparing_each_line_with_each():
    old = "\n".join(["first", *(f"a{n}" for n in range(COMPARED)), "last"]).encode()
    new = "\n".join(["first", *(f"b{n}" for n in range(COMPARED)), "last"]).encode()
    lines = shown(FileState(old), FileState(new)).split("\n")
    assert lines[0] == f"@@ -2,{COMPARED} +2,{COMPARED} @@"
    assert lines[1:] == [*(f"-a{n}" for n in range(COMPARED)), *(f"+b{n}" for n in range(COMPARED))]


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_every_line_that_is_new_is_shown(old: list[str], new: list[str]):
    lines = shown(FileState("\n".join(old).encode()), FileState("\n".join(new).encode())).split("\n")
    added = [line[1:] for line in lines if line.startswith("+")]
    assert not set(new) - set(old) - set(added)
