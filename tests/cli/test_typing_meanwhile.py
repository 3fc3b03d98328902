"""What someone types while an answer comes: it is heard, and seen, and the answer is whole."""

import fcntl
import io
import signal
import struct
import termios

import pytest
from tests.cli.at_terminal import AtTerminal
from tests.cli.emulator import Emulator
from tests.cli.person import Person, asked_in, said_in

from everloop.cli.below import after
from everloop.cli.cells import beginning, fitting
from everloop.cli.terminal import Terminal
from everloop.cli.typed import LEAVE, TypedLine
from everloop.ports.events import AnswerBegan, AnswerEnded, AnswerPiece
from everloop.testing import Call, Line, Say, Shown, Wait
from everloop.testing.model_server import ModelServer

STEERED = "(taken: it hears this at its next step, or answers it next)"
WORDS = [f"word{number} " for number in range(30)]


class TestKeys:
    @pytest.mark.parametrize(
        ("keys", "lines", "left"),
        [
            ("hi\r", ["hi"], ""),
            ("one\ntwo\nthr", ["one", "two"], "thr"),
            ("hxx\x7f\x08i\r", ["hi"], ""),
            ("one two\x17three\r", ["one three"], ""),
            ("gone\x15hi\r", ["hi"], ""),
            ("\x1b[200~one\rtwo\tx\x1b[201~\r", ["one\ntwo\tx"], ""),
            ("one\\\rtwo\r", ["one\ntwo"], ""),
            ("C:\\\\\r", ["C:\\\\"], ""),
            ("one\x1b\rtwo\r", ["one\ntwo"], ""),
            ("a\x1b[A\x1b[1;5C\x1bOPb\r", ["ab"], ""),  # keys that mean nothing here
            ("caf\xe9 漢字 😀\r", ["café 漢字 😀"], ""),
            ("\x04", [LEAVE], ""),
            ("x\x04\x07\x00\r", ["x"], ""),
            ("\r", [""], ""),
        ],
    )
    def test_keys_become_lines_however_they_arrive(self, keys: str, lines: list[str], left: str):
        data = keys.encode()
        for size in (1, 2, 3, len(data)):
            typed = TypedLine()
            found = [line for at in range(0, len(data), size) for line in typed.feed(data[at : at + size])]
            assert (found, typed.text) == (lines, left)

    def test_what_is_no_text_and_a_code_without_an_end_hold_nothing_up(self):
        typed = TypedLine()
        assert typed.feed(b"\xff\x1b[" + b"1" * 40 + b"\rhi\r")[-1].endswith("hi")


class TestWidths:
    @pytest.mark.parametrize(
        ("text", "column"),
        [("abc", 3), ("a" * 10, 10), ("a" * 11, 1), ("漢" * 5, 10), ("a" + "漢" * 5, 2), ("a\nbc", 2), ("e\u0301", 1)],
    )
    def test_the_column_is_the_terminals(self, text: str, column: int):
        assert after(text, 0, 10) == column

    def test_a_line_is_shown_by_its_end_and_a_status_by_its_beginning(self):
        assert fitting("one two", 3) == "two"
        assert fitting("漢字", 3) == "字"
        assert (beginning("one two", 5), beginning("one", 5)) == ("one …", "one")


def count(shown: Shown) -> Line:
    return Say(f"answer {len(asked_in(shown))}")


@pytest.fixture(params=[(80, 24), (40, 10), (23, 6)], ids=lambda size: f"{size[0]}x{size[1]}")
def size(request: pytest.FixtureRequest) -> tuple[int, int]:
    return request.param


def resize(terminal: AtTerminal, size: tuple[int, int]) -> None:
    fcntl.ioctl(terminal._inner, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))


def screen(terminal: AtTerminal, size: tuple[int, int]) -> list[str]:
    return Emulator(*size).feed(terminal.raw).lines


async def test_it_is_taken_as_a_message_and_the_answer_is_whole(person: Person, model: ModelServer, size):
    """Typed letter by letter, with a word of the answer after each."""
    typed = "and 漢字?"
    gates = [model.gates[f"g{number}"] for number in range(len(typed) + 2)]
    pieces: list[Line] = []
    for word, gate in zip(WORDS, [*gates, *[None] * 30], strict=False):
        pieces += [Say(word), *([Wait(gate)] if gate else [])]
    model.play(lambda shown: [*pieces, Say("\nover")] if len(asked_in(shown)) == 1 else count(shown))
    async with AtTerminal(person, "--plain", term="xterm") as terminal:
        resize(terminal, size)
        await terminal.sees("> ")
        terminal.type("hi")
        for letter, word, gate in zip(typed, WORDS, gates, strict=False):
            await terminal.sees(word.strip())
            terminal.send(letter)
            await terminal.sees(letter)
            gate.set()
        await terminal.sees(WORDS[len(typed)].strip())
        await terminal.sees(f"> {typed}")
        terminal.send("\r")
        await terminal.sees(f"> {typed}")  # below, until a line of the answer ends
        for gate in gates:
            gate.set()
        await terminal.sees("answer 2")
        await terminal.sees("> ")
    said = "".join(screen(terminal, size)).replace(" ", "")
    whole = "".join(WORDS).replace(" ", "")
    assert f"hi{whole}>and漢字?{STEERED.replace(' ', '')}over(to“and漢字?”)answer2" in said
    assert asked_in(model.prompts[-1]) == ["hi", typed]


async def test_a_tool_that_runs_is_steered(person, model):
    """The message is in the very next call of the same turn."""
    model.play([Call("exec", {"command": "echo begun; while [ ! -e go ]; do sleep 0.05; done"}), Say("both done")])
    async with AtTerminal(person, "--plain", term="xterm") as terminal:
        await terminal.sees("> ")
        terminal.type("hi")
        await terminal.sees("begun")
        terminal.type("and that")
        await terminal.sees(STEERED)
        (person.home / "workspace" / "go").touch()
        await terminal.sees("both done")
        await terminal.sees("> ")
        assert asked_in(model.prompts[-1]) == ["hi", "and that"]
        assert (model.calls, terminal.raw.count(b"both done")) == (2, 1)


@pytest.mark.parametrize(
    ("steering", "sentence"),
    [("queue", "(taken: it is answered next)"), ("interrupt", "(taken: what was going on is stopped for it)")],
)
async def test_it_does_what_the_settings_say_and_says_so(person, model, steering, sentence):
    person.environment["EVERLOOP_AGENTS__DEFAULTS__STEERING"] = steering
    model.play(
        lambda shown: (
            [Say("half\n"), Wait(model.gates["go"]), Say("over")] if len(asked_in(shown)) == 1 else count(shown)
        )
    )
    async with AtTerminal(person, "--plain", term="xterm") as terminal:
        await terminal.sees("> ")
        terminal.type("hi")
        await terminal.sees("half")
        terminal.type("more")
        await terminal.sees(sentence)
        if steering == "queue":
            model.gates["go"].set()
            await terminal.sees("over")
        await terminal.sees("(to “more”)")
        await terminal.sees("answer 2")


async def test_a_command_is_understood_meanwhile_and_stop_stops(person, model):
    model.play(lambda shown: [Say("half\n"), Wait(model.gates["never"])])
    async with AtTerminal(person, "--plain", term="xterm") as terminal:
        await terminal.sees("> ")
        terminal.type("hi")
        await terminal.sees("half")
        terminal.type("/model")
        await terminal.sees("custom/scripted answers in this conversation.")
        terminal.type("/stop")
        await terminal.sees("Stopped 1 task(s).")
        await terminal.sees('say "go on" to have the rest')
        await terminal.sees("> ")
        terminal.type("exit")
        assert await terminal.ends() == 0


async def test_what_is_not_finished_stands_in_the_next_prompt(person, model):
    model.play(lambda shown: [Say("half "), Wait(model.gates["go"]), count(shown)])
    async with AtTerminal(person, "--plain", term="xterm") as terminal:
        await terminal.sees("> ")
        terminal.type("hi")
        await terminal.sees("half ")
        terminal.send("next qu")
        await terminal.sees("> next qu")
        model.gates["go"].set()
        await terminal.sees("answer 1")
        await terminal.sees("next qu")
        terminal.send("estion\r")
        await terminal.sees("answer 2")
        assert asked_in(model.prompts[-1]) == ["hi", "next question"]


async def test_a_question_is_not_answered_by_what_was_begun_before_it(person, model):
    risky = Call("exec", {"command": "su --version"})
    model.play([[Say("wait "), Wait(model.gates["go"]), risky], Say("so be it")])
    async with AtTerminal(person, "--plain", term="xterm") as terminal:
        await terminal.sees("> ")
        terminal.type("hi")
        await terminal.sees("wait ")
        terminal.send("y")
        await terminal.sees("> y")
        model.gates["go"].set()
        await terminal.sees("Allow it? [y/N] ")
        terminal.send("\r")  # nothing: no
        await terminal.sees("so be it")
        assert "did not allow" in said_in(model.prompts[-1])[-1][1]
        terminal.send("\r")  # what was begun before the question is a message still
        await terminal.sees("> ")


@pytest.mark.parametrize("term", ["dumb", "xterm"])
class TestControlC:
    async def test_once_stops_the_turn_and_keeps_what_was_said_twice_leaves(self, person, model, term):
        model.play(lambda shown: [Say("half "), Wait(model.gates["never"])])
        async with AtTerminal(person, "--plain", term=term) as terminal:
            await terminal.sees("> ")
            terminal.type("hi")
            await terminal.sees("half ")
            terminal.process.send_signal(signal.SIGINT)
            await terminal.sees("(stopped; what was said and done so far stays)")
            await terminal.sees("> ")
            terminal.process.send_signal(signal.SIGINT)
            assert await terminal.ends() == 130
            assert terminal.state() == terminal.before
        assert "half" in (await person.run("sessions", "show", "cli:direct")).out

    async def test_twice_leaves_also_while_something_does_not_end(self, person, model, term):
        model.play([Call("exec", {"command": "trap '' TERM INT; echo begun; sleep 3"})])
        async with AtTerminal(person, "--plain", term=term) as terminal:
            await terminal.sees("> ")
            terminal.type("hi")
            await terminal.sees("begun")
            terminal.process.send_signal(signal.SIGINT)
            await terminal.sees("stopping …")
            terminal.process.send_signal(signal.SIGINT)
            assert await terminal.ends() == 130
            assert terminal.state() == terminal.before

    async def test_who_has_begun_to_write_is_asked_once_more(self, person, model, term):
        async with AtTerminal(person, "--plain", term=term) as terminal:
            await terminal.sees("> ")
            terminal.send("some words")
            await terminal.sees("some words")
            terminal.process.send_signal(signal.SIGINT)
            await terminal.sees("(Ctrl-C once more leaves, and so does Ctrl-D)")
            await terminal.sees("> some words")
            terminal.process.send_signal(signal.SIGINT)
            assert await terminal.ends() == 130
            assert terminal.state() == terminal.before


def test_without_a_terminal_nothing_is_drawn():
    out, err = io.StringIO(), io.StringIO()
    terminal = Terminal(out, err)
    for event in (AnswerBegan("t", 1, 1), AnswerPiece("t", 1, 1, "one "), AnswerPiece("t", 1, 2, "two\n")):
        terminal.follow(event)
        terminal.aside("> hi")
    terminal.follow(AnswerEnded("t", 1, 1, True))
    assert out.getvalue() == "one two\n\n"
    assert "\x1b" not in err.getvalue()


def test_the_emulator_sees_what_is_garbled():
    """The negative control: what is typed in the middle of an answer, as a terminal echoes it by itself."""
    assert Emulator(8, 3).feed(b"one typ two\r\nmore\r\n\x1b[Ax").lines == ["one typ", "two", "xore"]
