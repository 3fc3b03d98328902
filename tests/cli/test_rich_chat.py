"""The chat at a terminal that can be drawn on: what is shown, what is typed, and how the terminal is left."""

import os
import signal
import sys

import pytest
from tests.cli.person import Person, asked_in
from tests.cli.rich_terminal import RichTerminal
from tests.effort import in_full

from everloop.testing import Call, Line, Say, Shown, Think, Wait
from everloop.testing.model_server import ModelServer


def count(shown: Shown) -> Line:
    return Say(f"answer {len(asked_in(shown))}")


def pasted(text: str) -> str:
    return f"\x1b[200~{text.replace(chr(10), chr(13))}\x1b[201~"


@pytest.fixture
async def terminal(request: pytest.FixtureRequest, person: Person, model: ModelServer):
    """With what is set in the environment beside that, as the test's parameter."""
    model.play(count)
    person.environment |= getattr(request, "param", {})
    person.environment["EVERLOOP_AGENTS__SHUTDOWN_SECONDS"] = "0"  # for an answer that never comes
    async with RichTerminal(person) as terminal:
        await terminal.shows("everloop, custom/scripted")
        yield terminal


async def leaves(terminal: RichTerminal, status: int = 0) -> None:
    """Whatever stood there, the terminal is as it was, and only finished text is left on it."""
    assert await terminal.ends() == status
    terminal.is_sane()
    assert "scripted ·" not in "\n".join(terminal.screen)


class TestTyping:
    async def test_a_long_paste_is_folded_in_the_line_and_sent_whole(self, person, model, terminal):
        lines = "\n".join(f"line {number}" for number in range(400))
        terminal.send(f"look: {pasted(lines)}")
        await terminal.shows("> look: [pasted 400 lines]")
        terminal.send("\r")
        await terminal.shows("answer 1")
        assert asked_in(model.prompts[-1]) == [f"look: {lines}"]
        terminal.send(f"{pasted('one' + chr(10) + 'two')} and three\r")  # a short one stays as it is
        await terminal.shows("answer 2")
        assert asked_in(model.prompts[-1])[-1] == "one\ntwo and three"
        terminal.send(pasted(lines) + "\x7f" + "gone\r")  # what is folded goes as one
        await terminal.shows("answer 3")
        assert asked_in(model.prompts[-1])[-1] == "gone"
        terminal.send("a\\\rb\x1b\rc\nd\r")  # a backslash, Alt-Enter, Ctrl-J
        await terminal.shows("answer 4")
        assert asked_in(model.prompts[-1])[-1] == "a\nb\nc\nd"
        terminal.send("\x1b[A" * 8 + ", again\r")  # through the lines of those that came after it
        await terminal.shows("answer 5")
        assert asked_in(model.prompts[-1])[-1] == f"look: {lines}, again"
        terminal.send("\x04")
        await leaves(terminal)
        async with RichTerminal(person) as again:
            await again.shows("Going on with")
            again.send("\x1b[A")
            await again.shows("> look: [pasted 400 lines], again")
            again.send(" and again\r")
            await again.shows("answer 6")
            assert asked_in(model.prompts[-1])[-1] == f"look: {lines}, again and again"
            again.send("\x04")
            await leaves(again)

    async def test_what_was_typed_is_found_again_and_only_by_its_owner(self, person, model, terminal):
        terminal.send("the first thing\r")
        await terminal.shows("answer 1")
        terminal.send(" a secret thing\r")
        await terminal.shows("answer 2")
        await terminal.rests()
        terminal.send("half a thought\x03")
        await terminal.hides("> half a thought")
        terminal.send("\x04")
        await leaves(terminal)
        assert (person.home / "history").stat().st_mode & 0o777 == 0o600
        assert (person.home / "history").read_text() == '"the first thing"\n"half a thought"\n'
        async with RichTerminal(person) as again:
            await again.shows("everloop, custom/scripted")
            again.send("\x12first")  # Ctrl-R
            await again.shows("> the first thing")
            again.send("\r\r")
            await again.shows("answer 3")
            await again.rests()
            again.send("\x1b[A\x1b[A")
            await again.shows("> half a thought")
            again.send("\x03")
            await again.hides("> half a thought")
            again.send("\x04")
            await leaves(again)

    async def test_commands_files_and_conversations_are_completed_and_mistakes_told(self, person, model, terminal):
        (person.home / "workspace" / "notes of mine.md").write_text("the pin is 4711")
        terminal.send("/mod")
        await terminal.shows("Show the model that answers here")
        terminal.send("\t\r")
        await terminal.shows("> /model", "default")
        terminal.send("\x03")
        await terminal.hides("> /model")
        terminal.send("/modle\r")
        await terminal.shows("There is no /modle. Did you mean /model?")
        assert model.prompts == []
        terminal.send('see @"notes of')
        await terminal.until(lambda: any(line.startswith(' @"notes of mine.md"') for line in terminal.screen))
        [under] = (at for at, line in enumerate(terminal.screen) if line.startswith(' @"notes'))
        assert terminal.screen[under + 1].startswith("custom/scripted")  # the menu has no more rows than it needs
        terminal.send("\t please\r")
        await terminal.shows("answer 1")
        await terminal.rests()
        [said] = asked_in(model.prompts[-1])
        assert said.startswith("see notes of mine.md please")
        assert "the pin is 4711" in said
        terminal.send("/new\r")
        await terminal.shows("New session started.")
        terminal.send("/resume\r")
        await terminal.shows("> /resume", ", 2 messages: ")
        terminal.send("\t\r")
        await terminal.shows("Here we go on with")
        terminal.send("/session snapshot place\r")
        await terminal.shows("Come back to this place")
        terminal.send("/session restore ")
        await terminal.until(lambda: any(line.startswith(" place ") for line in terminal.screen))
        terminal.send("\t\r")
        await terminal.shows("Here we go on from 'place'")
        terminal.send("/fork\r")
        await terminal.shows("This is a copy now")
        terminal.send("/tree\r")
        await terminal.shows("> /tree")
        terminal.send("\x1b")  # with Esc neither the list nor its word stays
        await terminal.hides("> /tree")
        terminal.send("/help\r")
        await terminal.shows("Keys:", "Alt-Enter", "Alt-Q", "Esc", "Ctrl-R", "@file", "!command", "Ctrl-X", "Ctrl-D")
        terminal.send("\x04")
        await leaves(terminal)

    async def test_what_is_sent_while_the_house_opens_is_answered_then(self, person, model):
        model.play(count)
        async with RichTerminal(person) as terminal:
            terminal.send("early\rbird\r")
            await terminal.shows("> early", "> bird", "answer")
            await terminal.shows("answer 2")
            assert asked_in(model.prompts[-1]) == ["early", "bird"]
            terminal.send("\x04")
            await leaves(terminal)


class TestWhileItWorks:
    async def test_enter_steers_tab_queues_and_a_command_is_understood(self, model, terminal):
        model.play(lambda shown: [Say("half\n\n"), Wait(model.gates["go"]), count(shown)])
        terminal.send("hi\r")
        await terminal.shows("half")
        terminal.send("queued\t")
        await terminal.shows("> queued", "(queued: it is said when this is answered)")
        terminal.send("/status\r")
        await terminal.shows("Schedules of yours")
        terminal.send("steered\r")
        await terminal.shows("> steered", "(taken:")
        assert len(model.prompts) == 1
        model.gates["go"].set()
        await terminal.shows("(to “steered”)", "(to “queued”)", "answer 3")
        assert asked_in(model.prompts[-1]) == ["hi", "steered", "queued"]
        terminal.send("\x04")
        await leaves(terminal)

    async def test_thoughts_tools_and_answers_are_shown_and_steer_nothing(self, person, model, terminal):
        evil = "\x1b]0;EVIL\x07\x1b[2J\x1b[Hgone"
        command = "printf '\\033]0;EVIL\\007\\033[2J'; seq 1 500; touch up; while [ ! -e go ]; do sleep 0.05; done"
        thinks = [Think("I wonder " * 11), Call("exec", {"command": command})]
        model.play([thinks, Say(f"# Title\n\n**bold** {evil} שלום 日本語\n")])
        terminal.send("hi\r")
        await terminal.shows("I wonder", "● exec", "lines", "500", "working", "Esc stops")
        (person.home / "workspace" / "go").touch()
        await terminal.shows("✓ exec", "more lines", "bold", "日本語", "Title", "EVIL")
        assert terminal.title == "everloop: hi" or terminal.title == "everloop"
        assert "EVIL" not in terminal.title
        assert "**bold**" not in "\n".join(terminal.lines)
        assert "> hi" in "\n".join(terminal.lines)
        assert ("I wonder " * 2).strip() in terminal.lines  # what does not fit goes on between two words
        terminal.send("\x04")
        await leaves(terminal)

    @pytest.mark.shortened
    async def test_ten_thousand_lines_and_another_size_in_the_middle(self, model, terminal):
        many = in_full(10_000, 1500)
        half = "".join(f"- line {number}\n" for number in range(many // 2))
        rest = "".join(f"- line {number}\n" for number in range(many // 2, many))
        model.play([[Say(half), Wait(model.gates["go"]), Say(rest)]])
        terminal.send("hi\r")
        await terminal.shows(f"• line {many // 2 - 2}")
        terminal.send("typed meanwhile")
        await terminal.shows("> typed meanwhile")
        terminal.resize(60, 12)
        model.gates["go"].set()
        await terminal.shows(f"• line {many - 1}")
        await terminal.until(lambda: terminal.title == "everloop: hi")  # the turn is over
        lines = [line for line in terminal.lines if line.startswith("• line ")]
        assert lines == [f"• line {number}" for number in range(many)]
        assert [line for line in terminal.screen if line.startswith(">")] == ["> typed meanwhile"]
        terminal.send("\x03\x04")
        await leaves(terminal)

    @pytest.mark.parametrize("terminal", [{}, {"TMUX": "yes"}], ids=["wraps", "tmux"], indirect=True)
    async def test_a_window_that_becomes_narrower_while_something_runs_keeps_no_scraps_of_it(
        self, person, model, terminal
    ):
        command = "seq -f 'a long row that is wrapped in a narrow window, number %g' 30; while [ ! -e go ]; do :; done"
        model.play([[Think("I wonder whether\nthis is read"), Call("exec", {"command": command})], Say("over")])
        terminal.send("hi\r")
        await terminal.shows("● exec", "number 30")
        terminal.resize(40, 24)
        await terminal.until(lambda: any(line.startswith("● exec") and line.endswith("…") for line in terminal.screen))
        terminal.resize(30, 24)
        (person.home / "workspace" / "go").touch()
        await terminal.shows("✓ exec", "over")
        await terminal.hides("Esc stops")
        shown = "\n".join(terminal.lines)
        assert [shown.count(each) for each in ("● exec", "Esc stops", "> hi", "I wonder whether")] == [0, 0, 1, 1]
        terminal.send("\x04")
        await leaves(terminal)

    async def test_a_command_of_ones_own_joins_the_conversation(self, model, terminal):
        terminal.send("!echo a$((1+1))b\r")
        await terminal.shows("a2b", "1 output goes with the next message")
        assert model.prompts == []
        terminal.send("what was it?\r")
        await terminal.shows("answer 1")
        [said] = asked_in(model.prompts[-1])
        assert said.startswith("what was it?\nI have run this command myself: echo a$((1+1))b")  # so is the title
        assert "a2b" in said
        terminal.send("\x04")
        await leaves(terminal)


class TestCtrlC:
    async def test_in_every_state_it_does_what_one_means(self, person, model, terminal):
        terminal.send("some words\x03\x03")  # a prompt with text, then without
        await terminal.shows("(Ctrl-C once more leaves")
        await terminal.hides("some words")
        model.play(lambda shown: [Wait(model.gates["never"])])
        terminal.send("hi\r")
        await terminal.shows("thinking")
        terminal.send("kept\x03")  # before the first word: the turn is stopped, and what was typed stays
        await terminal.shows("(stopped; what was said and done so far stays)")
        await terminal.shows("> kept")
        terminal.send("\x15")
        model.play(lambda shown: [Say("half of it"), Wait(model.gates["never"])])
        terminal.send("go\r")
        await terminal.shows("half of it")
        terminal.send("\x1b")  # amid an answer, by Esc
        await terminal.shows('(say "go on" to have the rest)')
        model.play([Call("exec", {"command": "echo begun; sleep 600"})])
        terminal.send("run\r")
        await terminal.shows("begun")
        terminal.send("\x03")  # in a tool
        await terminal.shows("■ exec")
        model.play([Call("exec", {"command": "sudo git push"}), Say("over")])
        terminal.send("push\r")
        await terminal.shows("May I run", "Allow it? [y/N]", "y here")
        terminal.send("\x03")  # at a question
        await terminal.until(lambda: "\n".join(terminal.lines).count("(stopped; what was said and") == 4)
        await terminal.hides("Esc stops")
        terminal.send("\x03")
        await terminal.until(lambda: "\n".join(terminal.lines).count("(Ctrl-C once more leaves") == 2)
        terminal.send("\x03\x03")  # the first one leaves, or the second where it came after more than a moment
        await leaves(terminal, 130)

    async def test_while_it_opens_and_after_signals(self, person, model):
        async with RichTerminal(person) as terminal:
            await terminal.shows(">")
            terminal.send("\x03\x03")
            assert await terminal.ends() == 130
            terminal.is_sane()
        model.play(lambda shown: [Say("half"), Wait(model.gates["never"])])
        person.environment["EVERLOOP_AGENTS__SHUTDOWN_SECONDS"] = "0"
        for number in (signal.SIGTERM, signal.SIGHUP):
            async with RichTerminal(person, "-s", f"cli:{number}") as terminal:
                terminal.send("hi\r")
                await terminal.shows("half")
                assert terminal.state() != terminal.before  # else the next would show nothing
                terminal.process.send_signal(number)
                await leaves(terminal, 128 + number)


class TestQuestions:
    async def test_what_would_run_is_shown_and_answered_in_place(self, person, model, terminal):
        model.play(
            [Call("exec", {"command": "sudo ls"}), Say("over"), Call("exec", {"command": "sudo id"}), Say("and out")]
        )
        terminal.send("go\r")
        await terminal.shows("May I run exec", "sudo ls", "Allow it? [y/N]", "Enter answers")
        terminal.send("y\r")
        await terminal.shows("Allow it? [y/N] y", "over")
        terminal.send("again\r")
        await terminal.shows("sudo id")
        terminal.send("\x04")  # is no answer: it leaves when all is over
        await terminal.shows("(when this is answered; Ctrl-C stops it)")
        terminal.send("yes, but look first\r")  # who writes something else goes on without it
        await terminal.shows("and out")
        await leaves(terminal)


async def test_a_crash_leaves_the_terminal_as_it_was(person):
    async with RichTerminal(person, program=(sys.executable, "-c", CRASH)) as terminal:
        await terminal.shows("opening")
        assert terminal.state() != terminal.before
        terminal.process.send_signal(signal.SIGUSR1)
        assert await terminal.ends() == 1
        assert b"RuntimeError: crash" in terminal.raw
        terminal.is_sane()


CRASH = """
import asyncio, signal, sys
from everloop.cli import process
from everloop.cli.chat.opening import RichChat
from everloop.cli.screen import guard_streams
from pathlib import Path

def fail():
    raise RuntimeError("crash")

async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, fail)
    chat = RichChat(Path("."), sys.stdin, sys.stdout.terminal)
    async with chat.window.open() as drawn:
        await drawn

guard_streams()
process.run(main())
"""


async def test_who_goes_on_without_an_answer_is_asked_the_next_question_too(model, terminal):
    def tries_twice(shown: Shown) -> Line:
        tried = sum(who == "tool" for who, _ in shown.said)
        return Call("exec", {"command": f"sudo ls {tried}"}) if tried < 2 else Say("both were tried")

    model.play(tries_twice)
    terminal.send("ask\r")
    await terminal.shows('command: "sudo ls 0"')
    await terminal.shows("Allow it? [y/N]")
    terminal.send("use another folder\r")
    await terminal.shows('command: "sudo ls 1"')
    await terminal.shows(" y here")
    terminal.send("\x1b\x03")  # the menu goes, then what runs
    await terminal.shows("(stopped; what was said and done so far stays)")
    await terminal.hides(" y here")
    terminal.send("\x04")
    await leaves(terminal)


async def test_a_typed_command_is_stopped_and_goes_with_no_slash_command(model, terminal):
    terminal.send("!sleep 100\r")
    await terminal.shows("Esc stops")
    terminal.send("\x1b")
    await terminal.shows("  stopped")
    terminal.send("!echo hi there; false\r")
    await terminal.shows("✗ exec echo hi there; false")
    terminal.send("/usage\r")
    await terminal.shows("Nothing has been used in this conversation yet.")
    terminal.send("and now?\r")
    await terminal.shows("answer 1")
    assert "hi there" in str(model.prompts[-1].said)
    await terminal.rests()
    terminal.send("!sleep 200\r")
    await terminal.shows("● exec sleep 200")
    terminal.send("\x04")  # whoever leaves stops it
    await leaves(terminal)
    assert terminal.lines[-3:] == ["(to go on: everloop)", "■ exec sleep 200", "  stopped"]


async def test_how_a_folded_paste_begins_is_neither_run_nor_a_command(model, terminal):
    for number, first in enumerate(("!echo ran", "/new and"), start=1):
        paste = "\n".join([first, *(f"line {each}" for each in range(30))])
        terminal.send(f"{pasted(paste)}")
        await terminal.shows("> [pasted 31 lines]")
        terminal.send("\r")
        await terminal.shows(f"answer {number}")
        assert asked_in(model.prompts[-1])[-1] == paste
    terminal.send("\x04")
    await leaves(terminal)


async def test_two_chats_of_a_session_notice_each_other(person, model, terminal):
    async with RichTerminal(person) as second:
        await second.shows("another chat is open in this session")
        await terminal.shows("another chat has been opened")
        second.send("from there\r")
        await second.shows("answer 1")
        await terminal.shows("(in another chat) > from there", "answer 1", "tokens · cli:direct")
        model.play(lambda shown: [Say("half "), Wait(model.gates["go"]), count(shown)])
        second.process.send_signal(signal.SIGSTOP)  # it might be the quicker one to take the letter and drive its turn
        terminal.send("from here\r")
        await terminal.shows("half")
        second.process.send_signal(signal.SIGCONT)
        second.send("at the same time\r")
        await second.until(lambda: any("Esc stops" in line for line in second.screen))
        model.gates["go"].set()
        await second.shows("half answer 3", "(in another chat) > from here", "half answer 2")
        await terminal.shows("(in another chat) > at the same time", "half answer 3")
        for each, own in (second, "at the same time"), (terminal, "from here"):  # what is one's own is told once
            told = "\n".join(each.lines)
            assert [told.count(text) for text in (own, "half answer 2", "half answer 3")] == [1, 1, 1]
        os.kill(second.process.pid, signal.SIGKILL)
        await terminal.shows("the other chat of this session is closed")
    terminal.send("\x04")
    await leaves(terminal)


async def test_an_editor_pictures_signs_and_no_colour(person, model, tmp_path):
    """By programs of the machine: an editor, and what fetches from the clipboard."""
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\ntest -t 0 && printf "%s and edited" "$(cat "$1")" > "$1"\n')
    fetch = tmp_path / "wl-paste"
    fetch.write_text("#!/bin/sh\nprintf '\\211PNG\\r\\n\\032\\n'\n")
    for each in (editor, fetch):
        each.chmod(0o755)
    person.environment |= {"VISUAL": str(editor), "NO_COLOR": "1", "EVERLOOP_TERMINAL__NOTIFY_SECONDS": "0"}
    person.environment |= {"EVERLOOP_TERMINAL__NOTIFY": "osc9"}
    model.play(count)
    async with RichTerminal(person) as terminal:
        await terminal.shows("everloop, custom/scripted")
        terminal.send("typed\x18\x05")
        await terminal.shows("> typed and edited")
        terminal.send("\r")
        await terminal.shows("answer 1")
        assert asked_in(model.prompts[-1]) == ["typed and edited"]
        await terminal.until(lambda: b"\x1b]9;everloop has answered\x07" in terminal.raw)
        assert b"\x1b[3" not in terminal.raw  # none of the sixteen colours
        terminal.send("\x16")
        await terminal.shows("a picture cannot be fetched from the clipboard here")
        terminal.send("\x04")
        await leaves(terminal)
    person.environment |= {"WAYLAND_DISPLAY": "x", "PATH": f"{tmp_path}:{person.environment['PATH']}"}
    async with RichTerminal(person) as terminal:
        await terminal.shows("Going on with")
        terminal.send("see \x16")
        await terminal.shows("> see [picture]")
        terminal.send("\x03\x04")
        await leaves(terminal)
