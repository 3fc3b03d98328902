"""A chat as someone has it at a real terminal: what they paste and write, what they see, and how they leave it."""

import asyncio
import io
import signal
import sys

import pytest
from tests.cli.at_terminal import AtTerminal
from tests.cli.person import Person, Ran, asked_in

from everloop.cli.terminal import Terminal
from everloop.core.prompt import Usage
from everloop.ports.events import ToolOutput
from everloop.readings.tool_hints import tool_hint
from everloop.testing import Call, Line, Say, Shown, Spend, Think, Wait
from everloop.testing.model_server import ModelServer


def count(shown: Shown) -> Line:
    return Say(f"answer {len(asked_in(shown))}")


def pasted(text: str) -> str:
    """As a terminal that marks pastes sends it."""
    return f"\x1b[200~{text.replace(chr(10), chr(13))}\x1b[201~"


@pytest.fixture(params=["dumb", "xterm"])
async def terminal(request: pytest.FixtureRequest, person: Person, model: ModelServer):
    model.play(count)
    person.environment["EVERLOOP_AGENTS__SHUTDOWN_SECONDS"] = "0"  # for an answer that never comes
    async with AtTerminal(person, "--plain", term=request.param) as terminal:
        await terminal.sees("> ")
        yield terminal


async def test_a_turn_that_a_kill_cut_off_is_seen_to_go_on(person: Person, model: ModelServer):
    model.play(lambda shown: [Say("half "), Wait(model.gates["go"]), Say("whole")])
    async with AtTerminal(person, "--plain") as killed:
        await killed.sees("> ")
        killed.type("hi")
        await killed.sees("half ")
    async with AtTerminal(person, "--plain") as again:
        await again.sees("(finishing what was cut off)")
        await again.sees("half ")
        model.gates["go"].set()
        await again.sees("whole")
    assert again.raw.count(b"whole") == 1


class TestSeveralLines:
    @pytest.mark.parametrize("text", ["one\ntwo", "one\ntwo\n", "one\n\n\ttwo\n\n", "/help\nis what I mean"])
    async def test_a_paste_is_one_message(self, model, terminal, text: str):
        terminal.send(pasted(f"look: {text}"))
        terminal.send("\r")
        await terminal.sees("answer 1")
        assert asked_in(model.prompts[-1]) == [f"look: {text}".rstrip("\n")]

    async def test_four_hundred_lines_are_one_message(self, model, terminal):
        lines = "\n".join(f"line {number}" for number in range(400))
        terminal.send(pasted(lines) + "\r")
        await terminal.sees("answer 1")
        assert asked_in(model.prompts[-1]) == [lines]

    async def test_what_is_pasted_into_a_line_stays_in_it(self, model, terminal):
        terminal.send(f"look: {pasted('one' + chr(10) + 'two')} and say\r")
        await terminal.sees("answer 1")
        assert asked_in(model.prompts[-1]) == ["look: one\ntwo and say"]

    async def test_a_paste_while_an_answer_comes_is_one_message_too(self, model, terminal):
        model.play(lambda shown: [Say("half "), Wait(model.gates["go"]), count(shown)])
        terminal.type("hi")
        await terminal.sees("half ")
        terminal.send(pasted("one\ntwo\nthree"))
        terminal.send("\r")
        await terminal.sees("three")
        model.gates["go"].set()
        await terminal.sees("answer 1")
        await terminal.sees("answer 2")
        assert asked_in(model.prompts[-1]) == ["hi", "one\ntwo\nthree"]

    async def test_a_backslash_at_the_end_goes_on_in_the_next_line(self, model, terminal):
        terminal.type("one\\")
        await terminal.sees("… ")
        terminal.type("two\\")
        await terminal.sees("… ")
        terminal.type("three")
        await terminal.sees("answer 1")
        assert asked_in(model.prompts[-1]) == ["one\ntwo\nthree"]

    async def test_two_backslashes_are_two(self, model, terminal):
        terminal.type("C:\\\\")
        await terminal.sees("answer 1")
        assert asked_in(model.prompts[-1]) == ["C:\\\\"]

    async def test_alt_enter_begins_a_line(self, model, terminal):
        terminal.send("one\x1b\rtwo\r")
        await terminal.sees("answer 1")
        assert asked_in(model.prompts[-1]) == ["one\ntwo"]

    async def test_without_marks_each_line_is_a_message_as_ever(self, model, terminal):
        """Which is also how it was with a paste, before these were marked."""
        terminal.send("one\rtwo\r")
        await terminal.sees("answer 2")
        assert asked_in(model.prompts[-1]) == ["one", "two"]

    async def test_from_a_pipe_each_line_is_a_message(self, person, model):
        model.play(count)
        assert (await person.run("agent", typed=b"one\\\ntwo\n")).out == "answer 1\nanswer 2\n"
        assert asked_in(model.prompts[-1]) == ["one\\", "two"]


class TestLeaving:
    async def test_the_terminal_is_otherwise_while_one_writes(self, terminal):
        """Else the tests below would show nothing."""
        assert terminal.state() != terminal.before
        assert terminal.raw.rfind(b"\x1b[?2004h") > terminal.raw.rfind(b"\x1b[?2004l")

    @pytest.mark.parametrize("how", ["\x04", "exit\r", "/quit\r"])
    async def test_it_is_as_before_when_one_leaves(self, terminal, how: str):
        terminal.send(how)
        assert await terminal.ends() == 0
        is_as_before(terminal)

    @pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
    async def test_it_is_as_before_after_a_signal(self, terminal, number: int, status: int):
        terminal.process.send_signal(number)
        assert await terminal.ends() == status
        is_as_before(terminal)

    async def test_it_is_as_before_after_a_signal_in_the_middle_of_an_answer(self, model, terminal):
        model.play(lambda shown: [Say("half "), Wait(model.gates["never"])])
        terminal.type("hi")
        await terminal.sees("half ")
        terminal.process.terminate()
        assert await terminal.ends() == 143
        is_as_before(terminal)

    async def test_it_is_as_before_after_a_crash(self, person):
        async with AtTerminal(person, term="xterm", program=(sys.executable, "-c", CRASH)) as terminal:
            await terminal.sees("> ")
            assert terminal.state() != terminal.before
            terminal.process.send_signal(signal.SIGUSR1)
            assert await terminal.ends() == 1
            assert b"RuntimeError: crash" in terminal.raw
            is_as_before(terminal)


CRASH = """
import asyncio, signal
from everloop.cli import process
from everloop.cli.lines import LineReader
from everloop.cli.screen import guard_streams

async def main():
    crash = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, crash.set)
    with LineReader() as lines:
        reading = asyncio.ensure_future(lines.read("> "))
        await crash.wait()
        raise RuntimeError("crash")

guard_streams()
process.run(main())
"""


BETWEEN = """
import asyncio, signal
from everloop.cli.lines import LineReader

async def main():
    pressed = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, pressed.set)
    with LineReader() as lines:
        print("nobody reads")
        await pressed.wait()
        print("read:", await lines.read("> "))

asyncio.run(main())
"""


async def test_a_ctrl_d_that_comes_while_nobody_reads_is_there_for_the_next_who_does(person):
    async with AtTerminal(person, program=(sys.executable, "-uc", BETWEEN)) as terminal:
        await terminal.sees("nobody reads")
        terminal.send("\x04")
        terminal.process.send_signal(signal.SIGUSR1)
        await terminal.sees("read: None")
        assert await terminal.ends() == 0
        assert terminal.state() == terminal.before


def is_as_before(terminal: AtTerminal) -> None:
    assert terminal.state() == terminal.before
    assert terminal.raw.rfind(b"\x1b[?2004l") > terminal.raw.rfind(b"\x1b[?2004h")


class TestWhatIsSeen:
    async def test_thoughts_are_on_stderr_and_the_answer_alone_on_stdout(self, person, model):
        model.play([[Think("I wonder"), Say("hello")]])
        async with AtTerminal(person, stdout=asyncio.subprocess.PIPE) as terminal:
            await terminal.sees("everloop, custom/scripted")
            terminal.type("hi")
            await terminal.sees("I wonder")
            terminal.send("\x04")
            await terminal.ends()
            assert terminal.process.stdout is not None
            assert (await terminal.process.stdout.read()).decode().count("hello") == 1
        assert b"hello" not in terminal.raw

    async def test_thoughts_are_nowhere_where_nobody_looks(self, person, model):
        model.play([[Think("I wonder"), Say("hello")]])
        assert await person.run("agent", typed=b"hi\n") == Ran(0, "hello\n", "")

    async def test_what_a_command_prints_is_shown_as_it_comes(self, model, terminal):
        model.play([Call("exec", {"command": "printf 'o%se\\ntwo\\n' n; sleep 0.1; echo thr''ee"}), Say("done")])
        terminal.type("hi")
        for seen in ("exec(", "one", "two", "three", "done"):
            await terminal.sees(seen)

    async def test_a_long_output_is_folded_and_what_is_left_out_is_counted(self, model, terminal):
        model.play([Call("exec", {"command": "seq 1 500"}), Say("done")])
        terminal.type("hi")
        await terminal.sees("\r\n30\x1b")
        await terminal.sees("(… and 470 more lines)")
        await terminal.sees("done")
        assert b"\r\n31" not in terminal.raw

    async def test_one_answer_at_a_terminal_comes_piece_by_piece(self, person, model):
        model.play([[Say("half "), Wait(model.gates["go"]), Say("done")]])
        async with AtTerminal(person, "-m", "hi") as terminal:
            await terminal.sees("thinking …")
            await terminal.sees("half ")
            model.gates["go"].set()
            await terminal.sees("done")
            assert await terminal.ends() == 0
        assert terminal.raw.count(b"half ") == 1

    async def test_elsewhere_it_comes_whole(self, person, model):
        model.play([[Say("half "), Say("done")]])
        assert await person.run("agent", "-m", "hi") == Ran(0, "half done\n", "")

    def test_output_of_a_tool_is_a_note(self):
        out, err = io.StringIO(), io.StringIO()
        Terminal(out, err).follow(ToolOutput("t", 0, "c", "one\ntwo\n"))
        assert (out.getvalue(), err.getvalue()) == ("", "one\ntwo\n")

    @pytest.mark.parametrize(
        ("used", "err"),
        [
            (4000, ""),
            (
                5200,
                "(this conversation fills most of what the model can read; earlier parts will soon become a summary)\n",
            ),
        ],
    )
    @pytest.mark.parametrize("how", [["-m", "hi"], []])
    async def test_at_four_fifths_of_the_window_one_is_told(self, person, model, used: int, err: str, how: list[str]):
        person.environment["EVERLOOP_AGENTS__DEFAULTS__CONTEXT_WINDOW"] = "8192"
        model.play([[Say("hello"), Spend(Usage(used, 3))]])
        assert await person.run("agent", *how, typed=b"" if how else b"hi\n") == Ran(0, "hello\n", err)


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        ('{"query":"%s"}' % ("x" * 40), 'look("%s")' % ("x" * 40)),
        ('{"query":"%s"}' % ("x" * 41), 'look("%s…")' % ("x" * 40)),
        ('{"limit":3,"query":"first","more":"second"}', 'look("first")'),
        ('{"limit":3}', "look()"),
        ("[1]", "look()"),
        ("no json", "look()"),
        ("", "look()"),
    ],
)
def test_a_hint_has_the_first_text_and_of_that_forty_letters(args: str, shown: str):
    assert tool_hint("look", args) == shown


class TestWhatComesByItself:
    async def test_a_reminder_is_shown_at_the_prompt_and_what_was_being_written_stays(self, model, terminal):
        terminal.type("/cron add after 1s message: take the bread out")
        await terminal.sees("tells you: take the bread out")
        terminal.send("look: ")
        await terminal.sees("take the bread out")
        await terminal.sees("> look: ")
        terminal.send("all\r")
        await terminal.sees("answer ")
        assert asked_in(model.prompts[-1])[-1] == "look: all"

    async def test_a_report_of_a_task_is_shown_at_the_prompt(self, model, terminal):
        model.play(
            lambda shown: (
                Call("spawn", {"task": "look into it"})
                if shown.asked.startswith("go") and not shown.step
                else Say("handed on" if shown.asked.startswith("go") else f"heard: {'(done)' in shown.asked}")
            )
        )
        terminal.type("go")
        await terminal.sees("handed on")
        await terminal.sees("heard: True")
