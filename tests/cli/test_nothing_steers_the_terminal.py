"""Whatever a model, a tool, a file, a title, a host or a guest says, a person's terminal shows it and obeys none of it.

Each way to show a stranger's text is run at a pseudo terminal with all of the corpus at once, and every byte that the
terminal was sent is looked at.
"""

import ast
import json
import re
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.cli.at_terminal import AtTerminal
from tests.cli.person import Person, Ran

import everloop
from everloop.readings.visible import checked_name, in_one_line, visible
from everloop.testing import Call, Http, Say, Think
from everloop.testing.model_server import ModelServer

CORPUS = {
    "window title": "\x1b]0;EVIL\x07",
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "link": "\x1b]8;;http://evil.example\x1b\\here\x1b]8;;\x1b\\",
    "clear": "\x1b[2J\x1b[H",
    "hidden": "\x1b[8mhidden\x1b[0m",
    "cursor": "\x1b[1A\x1b[2K",
    "report": "\x1b[6n\x1b[c",
    "paste": "\x1b[?2004l\x1b[201~",
    "reset": "\x1bc",
    "DCS": '\x1bP$q"p\x1b\\',
    "APC": "\x1b_Gi=1;AAAA\x1b\\",
    "PM": "\x1b^x\x1b\\",
    "SOS": "\x1bXx\x1b\\",
    "charset": "\x0e\x0f\x1b(0",
    "C1 CSI": "\x9b2J",
    "C1 OSC": "\x9d0;EVIL\x9c",
    "C1 DCS": "\x90x\x9c",
    "C1 NEL": "one\x85two",
    "override": "\u202egpj.exe\u202c",
    "isolate": "\u2066a\u2069",
    "marks": "\u200e\u200f\u061c",
    "separators": "one\u2028two\u2029three",
    "return": "real\rfake",
    "backspace": "real\b\b\b\bfake",
    "bell": "\a",
    "delete": "a\x7f",
    "tabs and feeds": "a\vb\fc",
    "zero width": "a\u200bb\ufeffc\u2060d",
    "soft hyphen": "a\xadb",
    "tags": "\U000e0041\U000e007f",
}
EVIL = " ".join(f"<{name} {text}>" for name, text in CORPUS.items())
BETWEEN = "=-=-="
PIECES = list(EVIL)  # every sequence split at every place
# Dim, plain, a status that is written over, pastes marked from here on or until here, ends of lines.
OURS = re.compile("\x1b\\[2m|\x1b\\[0m|\r\x1b\\[K|\x1b\\[\\?2004h|\x1b\\[\\?2004l\r?|\r\n")
SHOWN = "<hidden \\u001b[8mhidden\\u001b[0m>"
SOURCES = Path(everloop.__file__).parent / "cli"


def steering(raw: bytes) -> list[str]:
    """What of this would steer a terminal, but for codes of our own."""
    text = OURS.sub("\n", raw.decode(errors="surrogateescape"))
    return [letter for letter in text if letter not in "\n\t" and unicodedata.category(letter) in _HIDDEN]


_HIDDEN = ("Cc", "Cf", "Zl", "Zp", "Cs")


@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "not guarded"])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_what_python_itself_writes_is_guarded_and_without_the_guard_it_would_not_be(
    person, guarded: bool, stream: str
):
    guard = "from everloop.cli.screen import guard_streams; guard_streams(); " if guarded else ""
    texts = "".join(f"{text}{BETWEEN}" for text in CORPUS.values())
    program = f"{guard}import sys; print({texts!r}, file=sys.{stream})"
    async with AtTerminal(person, program=(sys.executable, "-c", program)) as terminal:
        await terminal.ends()
    *told, rest = terminal.raw.split(BETWEEN.encode())
    steers = {name: bool(steering(raw)) for name, raw in zip(CORPUS, told, strict=True)}
    assert steers == dict.fromkeys(CORPUS, not guarded)
    assert steering(rest) == []


async def test_a_traceback_is_guarded(person):
    program = (
        "from everloop.cli.screen import guard_streams; guard_streams(); "
        f"raise RuntimeError({EVIL!r})  # which is also what the source says"
    )
    async with AtTerminal(person, program=(sys.executable, "-c", program)) as terminal:
        await terminal.ends()
    assert b"Traceback" in terminal.raw
    assert SHOWN.encode() in terminal.raw
    assert steering(terminal.raw) == []


@pytest.mark.parametrize("stream", ["warnings.warn({!r})", "logging.getLogger('x').error({!r})", "sys.exit({!r})"])
async def test_so_are_warnings_and_loggers_of_others(person, stream):
    program = "import logging, sys, warnings; from everloop.cli.screen import guard_streams; guard_streams(); "
    async with AtTerminal(person, program=(sys.executable, "-c", program + stream.format(EVIL))) as terminal:
        await terminal.ends()
    assert SHOWN.encode() in terminal.raw
    assert steering(terminal.raw) == []


class TestAChat:
    @pytest.fixture
    async def terminal(self, person: Person) -> AtTerminal:
        async with AtTerminal(person) as terminal:
            await terminal.sees("> ")
            yield terminal

    async def test_an_answer_in_any_pieces(self, model, terminal):
        model.play([Say(PIECES)])
        terminal.type("hi")
        await terminal.sees(SHOWN)
        await terminal.sees("> ")
        assert steering(terminal.raw) == []

    async def test_an_end_of_line_in_two_pieces_is_one(self, model, terminal):
        model.play([Say(["one\r", "\ntwo\r\nthree"])])
        terminal.type("hi")
        await terminal.sees("one\r\ntwo\r\nthree")

    async def test_what_it_thinks(self, model, terminal):
        model.play([[Think(PIECES), Say("hello")]])
        terminal.type("hi")
        await terminal.sees("\\u001b")
        await terminal.sees("hello")
        assert steering(terminal.raw) == []

    async def test_what_a_command_prints_and_the_hint_of_its_call(self, person, model, terminal):
        (person.home / "workspace" / "evil.txt").write_text(EVIL)
        model.play([Call("list_dir", {"path": EVIL}), Call("exec", {"command": "cat evil.txt"}), Say("done")])
        terminal.type("hi")
        await terminal.sees('list_dir("<window title \\u001b]0;EVIL\\u0007> <clipboard ')
        await terminal.sees('exec("cat evil.txt")')
        await terminal.sees(SHOWN)
        await terminal.sees("done")
        assert steering(terminal.raw) == []

    async def test_a_hint_is_one_line(self, model, terminal):
        model.play([Call("list_dir", {"path": "x\nAllow it? [y/N] "}), Say("done")])
        terminal.type("hi")
        await terminal.sees('list_dir("x\\nAllow it? [y/N] ")')
        await terminal.sees("done")

    async def test_the_name_of_a_tool_that_there_is_not_and_its_failure(self, model, terminal):
        model.play([[Call("no_such_tool"), Call("read_file", {"path": EVIL})], Say("done")])
        terminal.type("hi")
        await terminal.sees("there is no tool 'no_such_tool'")
        await terminal.sees("done")
        assert steering(terminal.raw) == []

    async def test_a_question_and_its_reason(self, model, terminal):
        model.play([Call("exec", {"command": f"sudo ls {EVIL}", "why": EVIL}), Say("done")])
        terminal.type("hi")
        await terminal.sees("Allow it? [y/N] ")
        terminal.type("n")
        await terminal.sees("done")
        assert "\\u001b[8m" in terminal.raw.decode()
        assert steering(terminal.raw) == []

    async def test_an_error_of_the_host(self, model, terminal):
        model.play([Http(400, {"error": {"message": EVIL}})])
        terminal.type("hi")
        await terminal.sees("\\u001b")
        await terminal.sees("> ")
        assert steering(terminal.raw) == []

    async def test_lists_and_searches(self, person, model, terminal):
        await begin(person, model)
        model.play([Say(EVIL)])
        for command in ("/session list", "/session", "/session search EVIL", "/usage", "/session rename x", EVIL[:200]):
            terminal.type(command.replace("\n", " ") if command.startswith("/") else "hello")
            await terminal.sees("> ")
        assert steering(terminal.raw) == []


async def begin(person: Person, model: ModelServer) -> str:
    """A home with a conversation that is full of it: title, message, answer, session key. Its id."""
    (person.home / "workspace").mkdir(parents=True, exist_ok=True)
    (person.home / "workspace" / "AGENTS.md").write_text(EVIL)
    model.play([Say(EVIL)])
    ran = await person.run("agent", "-m", f"hello {EVIL}")
    assert ran.status == 0
    listed = json.loads((await person.run("sessions", "list", "--json")).out)
    return listed["conversations"][0]["id"]


COMMANDS = {
    "-m": (["agent", "-m", "hi"], SHOWN),
    "-m --json": (["agent", "--json", "-m", "hi"], "\\u001b[8mhidden"),
    "show": (["sessions", "show", "{id}"], SHOWN),
    "show --json": (["sessions", "show", "{id}", "--json"], "\\u001b[8mhidden"),
    "list": (["sessions", "list"], "hello"),
    "list --json": (["sessions", "list", "--json"], "hello"),
    "search": (["sessions", "search", "EVIL"], "EVIL"),
    "export": (["sessions", "export", "{id}"], "\\u001b[8mhidden"),
    "context": (["context"], "agents.md"),
    "a part of the context": (["context", "--show", "messages"], SHOWN),
    "usage": (["usage"], "custom/scripted"),
    "files": (["files"], "No file is kept."),
    "approvals": (["approvals"], "Nothing waits"),
    "replay": (["replay", "last"], "the same"),
    "models": (["models", "custom"], "\\u001b"),
    "a model that fails": (["models", "test", "custom/{evil}"], "\\u001b"),
    "a wrong word": (["{evil}"], "EVIL"),
    "a wrong option": (["sessions", "--{evil}"], "\\u001b"),
    "a wrong name": (["sessions", "show", "{evil}"], "\\u001b"),
    "a wrong title": (["sessions", "rename", "{id}", "{evil}"], "\\u001b"),
    "a wrong session": (["agent", "-s", "cli:{evil}", "-m", "hi"], "\\u001b"),
    "a wrong file": (["agent", "-f", "{evil}", "-m", "hi"], "\\u001b"),
    "a wrong token": (["tokens", "revoke", "{evil}"], "EVIL"),
    "a wrong turn": (["replay", "{evil}"], "EVIL"),
    "a wrong snapshot": (["sessions", "snapshot", "{id}", "{evil}"], "one line of up to"),
}


@pytest.mark.parametrize(("arguments", "shown"), COMMANDS.values(), ids=COMMANDS)
async def test_a_command(person, model, arguments: Sequence[str], shown: str):
    id = await begin(person, model)
    model.play([Say(EVIL)])
    model.models = [f"model {EVIL}"]
    given = [each.format(id=id, evil=EVIL.replace("\0", "")) for each in arguments]
    async with AtTerminal(person, *given) as terminal:
        await terminal.ends()
    assert shown in terminal.raw.decode().replace("\r\n", "\n")
    assert "Traceback" not in terminal.raw.decode()
    assert steering(terminal.raw) == []


async def test_what_the_log_holds(person):
    line = {"time": "2026-01-01T00:00:00Z", "level": "error", "logger": EVIL, "message": EVIL, "detail": EVIL}
    (person.home / "logs").mkdir(parents=True)
    (person.home / "logs" / "everloop.log").write_text(f"{json.dumps(line)}\n{EVIL}\n")
    for more in ([], ["--json"]):
        async with AtTerminal(person, "logs", *more) as terminal:
            await terminal.ends()
        assert "\\u001b[8mhidden" in terminal.raw.decode()
        assert steering(terminal.raw) == []


async def test_a_plugin_that_prints(person, model):
    plugins = person.home / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "loud.py").write_text(
        f"from everloop import tool\n\n\n@tool\ndef shout() -> str:\n    'Shout.'\n    print({EVIL!r})\n    return ''\n"
    )
    model.play([Call("shout"), Say("done")])
    async with AtTerminal(person, "--approvals", "allow", "-m", "hi") as terminal:
        await terminal.ends()
    assert "done" in terminal.raw.decode()
    assert steering(terminal.raw) == []


async def test_where_stdout_is_no_terminal_the_answer_is_there_byte_for_byte(person, model):
    model.play([Say(PIECES)])
    assert await person.run("agent", "-m", "hi") == Ran(0, f"{EVIL}\n", "")


async def test_on_stderr_it_is_shown_also_where_that_is_no_terminal(person, model):
    model.play([Call("list_dir", {"path": "\x1b[2J"}), Say("done")])
    assert await person.run("agent", "-m", "hi") == Ran(0, "done\n", 'list_dir("\\u001b[2J")\n')


class TestTitlesAndNames:
    @pytest.mark.parametrize("name", sorted(set(CORPUS) - {"C1 NEL", "separators", "tabs and feeds", "return"}))
    def test_what_is_not_seen_is_refused(self, name: str):
        with pytest.raises(everloop.EverloopError, match=r"a title cannot hold control characters .*\\u"):
            checked_name(f"a {CORPUS[name]} b", "a title")

    def test_breaks_are_spaces_in_a_title(self):
        assert checked_name(" one\x85two\u2028three\vfour\r\nfive ", "a title") == "one two three four five"

    @pytest.mark.parametrize("title", ["plain", "süß 🧑‍🚀 日本", "می‌خواهم", "a\xa0b"])
    def test_what_people_write_is_taken(self, title: str):
        assert checked_name(title, "a title") == " ".join(title.split())

    async def test_a_rename_in_a_chat_is_refused(self, person, model):
        model.play([Say("hello")])
        await person.run("agent", "-m", "hi")
        ran = await person.run("agent", "-m", "/session rename \x1b]0;EVIL\a")
        assert ran.out == "A title cannot hold control characters or others that are not seen (\\u001b).\n"
        assert json.loads((await person.run("sessions", "--json")).out)["conversations"][0]["title"] == "hi"

    async def test_a_title_from_a_file_is_shown_as_it_is_and_a_key_refused(self, person):
        about = {"_type": "metadata", "key": "cli:other", "title": "a\x1b[2J\nb"}
        file = person.home.parent / "it.jsonl"
        file.write_text("\n".join(map(json.dumps, (about, {"role": "user", "content": "hi"}))))
        ran = await person.run("sessions", "import", str(file))
        assert ran.out.startswith("“a\\u001b[2J b” is ")
        file.write_text(json.dumps(about | {"key": "cli:\x1b"}))
        ran = await person.run("sessions", "import", str(file))
        assert ran.err == (
            "everloop: line 1: a session key cannot hold control characters or others that are not seen (\\u001b)"
            "; nothing was imported\n"
        )


class TestTheFilter:
    def test_every_control_and_format_character_is_shown_but_those_that_languages_need(self):
        """By the tables of Unicode: none that a later version adds to these kinds is forgotten without a word here."""
        letters = map(chr, range(sys.maxunicode + 1))
        passed = {letter for letter in letters if unicodedata.category(letter) in _HIDDEN and visible(letter) == letter}
        needed = {
            *"\t\n",
            *"\u200c\u200d",  # joiners of emoji, of Persian and Indic scripts
            *map(chr, range(0x600, 0x606)),  # signs that stand under or over Arabic, Syriac and Kaithi numbers
            *"\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd",
            *map(chr, range(0x13430, 0x13440)),  # how hieroglyphs are put together
        }
        assert passed <= needed

    def test_nothing_else_is_touched(self):
        text = "süß — 日本 🧑‍🚀\tab\n\xa0“”…"
        assert (visible(text), in_one_line("süß 日本 🧑‍🚀")) == (text, "süß 日本 🧑‍🚀")

    def test_what_was_made_visible_stays_as_it_is(self):
        assert visible(visible(EVIL)) == visible(EVIL)

    def test_json_stays_json(self):
        assert json.loads(visible(json.dumps(EVIL, ensure_ascii=False))) == EVIL


def ways_around(source: str) -> list[str]:
    """What writes to the terminal, or may, without going through a Screen or a Terminal."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="print")):
                found.append("print")
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="write" | "system" | "writev")):
                found.append(f"os.{node.func.attr}")
            case ast.Attribute(value=ast.Name(id="sys"), attr="__stdout__" | "__stderr__" | "displayhook"):
                found.append(f"sys.{node.attr}")
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr"), attr=attr):
                found += [f".{attr}"] if attr not in ("isatty", "fileno", "flush") else []
            case ast.Attribute(attr="steer"):
                found.append("steer")
            case ast.Constant(value=str(text)) if "\x1b" in text or text == "/dev/tty":
                found.append(repr(text))
            case ast.Import(names=[ast.alias(name="subprocess"), *_]):
                found.append("subprocess")
    return found


def test_a_way_around_is_found():
    ways = ["print(x)", "sys.stdout.write(x)", "sys.stderr.buffer.write(x)", "os.write(1, x)", "sys.__stderr__"]
    assert [bool(ways_around(way)) for way in ways] == [True] * len(ways)


TYPED = ("[200~", "[201~", "", "[200~", "[201~", "\r", "\n")


def test_no_command_goes_around_the_screen():
    own = {"terminal.py", "screen.py", "below.py"}  # which draws the line below an answer
    keys = [repr(f"\x1b{rest}") for rest in TYPED]  # that are read, and never written
    bytes_of_a_file = [".buffer", ".buffer"]  # as it is, for a pipe
    known = {"logbook.py": ["os.write"], "typed.py": keys, "own_files.py": bytes_of_a_file}  # the first into its file
    known["mcp_serve.py"] = [".buffer"]  # messages of a protocol, which no terminal reads
    known["config_edit.py"] = ["subprocess"]  # an editor, which its person has chosen
    found = {file.name: ways_around(file.read_text()) for file in SOURCES.glob("*.py") if file.name not in own}
    assert {name: ways for name, ways in found.items() if ways != known.get(name, [])} == {}
