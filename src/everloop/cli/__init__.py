"""The command line: one file per command, loaded when it is used. No traceback reaches a user."""

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Collection, Coroutine
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast

from .. import __version__
from ..errors import EverloopError
from ..ports.audit import AT_THE_TERMINAL, acting_as
from ..settings import home_of
from .first_time import missing_home
from .logbook import keep_logs
from .parser import FIRST, Parser, nearest
from .process import run as run_loop
from .terminal import OutputLost, Terminal, WrongUse

_log = logging.getLogger(__name__)


class CliCommand(NamedTuple):
    help: str
    words: tuple[str, ...] = ()  # of which one follows; the first is meant where none does
    names: bool = False  # something else may follow in their place, which the first is about
    begins: tuple[str, ...] = ()  # those words of it that can be the first in a home; others look at what is there

    def can_begin(self, word: str) -> bool:
        return word in self.begins or self.begins == ANY


ANY = ("*",)
NO_TEXT = "what was typed holds bytes that are no text (UTF-8), where text is needed"
ABOUT = (
    "A self-hosted AI agent that keeps its word. Without a command it opens a chat. To begin with: everloop onboard. "
    "When something is wrong: everloop doctor. More of a command: everloop COMMAND --help."
)


COMMANDS = {
    "agent": CliCommand("talk with the agent: one answer with -m, else a chat", begins=ANY),
    "onboard": CliCommand("set it up: a model that is tried, your name, a password, channels, a service", begins=ANY),
    "status": CliCommand("show how everything stands: who answers, channels, schedules, costs, disk, what is broken"),
    "gateway": CliCommand(
        "run it all: the page, the APIs, the WebSocket, timers and channels; set its password",
        ("run", "password"),
        begins=ANY,
    ),
    "config": CliCommand(
        "show the settings, change one, edit the file, each time checked before it is written",
        ("list", "get", "set", "unset", "edit", "path"),
        begins=ANY,
    ),
    "service": CliCommand(
        "have the gateway run by itself, as a service of this machine (systemd, launchd)",
        ("status", "install", "uninstall", "logs", "show"),
        begins=ANY,
    ),
    "tokens": CliCommand(
        "show, make and revoke the tokens of programs that use the gateway",
        ("list", "create", "revoke"),
        begins=("create",),
    ),
    "users": CliCommand(
        "show who may speak with the agent, let somebody in, give roles, link accounts, budgets, block, export, erase",
        (
            *("list", "show", "add", "pair", "invite", "role", "rename", "link", "unlink", "block", "unblock"),
            *("budget", "export", "erase"),
        ),
        begins=("add", "pair", "invite"),
    ),
    "channels": CliCommand(
        "show the channels on which people speak with the agent, set one up, try it, remove it",
        ("list", "add", "test", "login", "status", "remove"),
        begins=("add", "login"),
    ),
    "personas": CliCommand(
        "show, make and change who the agent is, and say at which place",
        ("list", "show", "add", "edit", "remove", "use"),
        begins=("add", "edit", "use"),
    ),
    "skills": CliCommand(
        "show what the agent knows how to do, install and remove skills, look at what one asks for",
        ("list", "show", "install", "remove", "review", "accept", "refuse"),
        begins=("list", "show", "install"),  # it comes with some
    ),
    "mcp": CliCommand(
        "show MCP servers and their tools, set one up, allow what has changed, try a tool, log in; be one yourself",
        (
            *("list", "add", "show", "allow", "deny", "test", "answer"),
            *("login", "logout", "install", "import", "remove", "serve"),
        ),
        begins=("add", "login", "install", "import", "serve"),
    ),
    "models": CliCommand(
        "show which models there are, try one, keep keys, log in",
        ("list", "test", "key", "login", "logout"),
        names=True,
        begins=ANY,  # what there is here is found before anything is set
    ),
    "secrets": CliCommand(
        "show, keep and forget the tokens and passwords that settings refer to, and what is a person's own",
        ("list", "set", "forget", "key", "credential"),
        begins=("set", "key", "credential"),
    ),
    "approvals": CliCommand(
        "show what waits for your permission, allow it or not", ("list", "approve", "deny", "grants", "revoke")
    ),
    "sessions": CliCommand(
        "show your conversations, search them, go back to one, carry them elsewhere, delete them",
        (
            *("list", "search", "show", "resume", "rename", "archive", "unarchive", "delete", "export", "import"),
            *("fork", "snapshot", "snapshots", "restore"),
        ),
    ),
    "memory": CliCommand(
        "show what is remembered, search it, edit it, go back to an earlier version, forget",
        ("status", "log", "show", "diff", "restore", "search", "facts", "forget", "edit"),
        begins=("edit",),
    ),
    "cron": CliCommand(
        "show, make and change your schedules: what the agent does later, or again and again",
        ("list", "add", "edit", "remove", "enable", "disable", "run", "log", "hook"),
        begins=("add",),
    ),
    "heartbeat": CliCommand(
        "show what the agent looked after by itself (HEARTBEAT.md), and have it look now", ("show", "run", "allow")
    ),
    "completion": CliCommand("print a script by which bash, zsh or fish completes these commands", begins=ANY),
    "replay": CliCommand("run a recorded turn again, offline, and show where it differs, or write it as a test"),
    "context": CliCommand("show what the model is told in a session, and what each part of it takes"),
    "files": CliCommand(
        "show which files are kept and for whom, fetch or remove one, remove those that nothing names any more",
        ("list", "show", "get", "remove", "clean"),
    ),
    "backup": CliCommand(
        "copy everything into one file while it runs, check it, restore it elsewhere, have it done daily",
        ("list", "create", "verify", "restore", "adopt", "schedule"),
        begins=("verify", "restore", "schedule"),
    ),
    "export": CliCommand("write everything as files that people can read: conversations, memory, tables, settings"),
    "outbox": CliCommand(
        "show which answers a channel could not deliver, try them again or drop them", ("list", "retry", "drop")
    ),
    "tasks": CliCommand("show what sub-agents work at, what one has done, and end it", ("list", "show", "stop")),
    "usage": CliCommand("show what was used and what it cost, by day, model, person, channel, job or tool"),
    "import": CliCommand(
        "move in from nanobot or OpenClaw, or bring your conversations from ChatGPT or Claude",
        ("nanobot", "openclaw", "chatgpt", "claude"),
        begins=ANY,
    ),
    "audit": CliCommand("show who did what, when, by which authority, and whether that was changed since"),
    "doctor": CliCommand("show what is wrong and what to do about it, and mend what is safe", begins=ANY),
    "logs": CliCommand("show what went wrong, and the details of an error by its id"),
}


class Module(Protocol):
    """The file of a command, which has its name."""

    MORE: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> Coroutine[Any, Any, int]: ...


def run(argv: list[str]) -> int:
    argv = _completed(argv)
    if sentence := _unknown_in(argv):
        return _complain(sentence, 2)
    try:
        arguments = build_parser(argv[:1]).parse_args(argv)
    except WrongUse as error:
        return _complain(str(error), 2)
    with acting_as(AT_THE_TERMINAL.person, AT_THE_TERMINAL.by):
        return _done(arguments, argv)


def _done(arguments: argparse.Namespace, argv: list[str]) -> int:
    try:
        if not COMMANDS[arguments.command].can_begin("".join(argv[1:2])) and (sentence := missing_home()):
            return _complain(sentence)
        keep_logs(home_of(os.environ))
        return run_loop(_until_ended(_load(arguments.command).run(arguments)))
    except OutputLost as error:
        _let_go_of_stdout()
        return _complain(str(error))
    except WrongUse as error:
        return _complain(str(error), 2)
    except EverloopError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _let_go_of_stdout()
        return 141
    except Exception as error:  # the border to a person, who can do nothing with a traceback
        if isinstance(error, UnicodeEncodeError) and "\ufffd" in os.fsencode(" ".join(argv)).decode(errors="replace"):
            return _complain(NO_TEXT, 2)
        return _complain(_unforeseen(error))


def build_parser(wanted: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """A parser that knows the options of the `wanted` commands, and of the others what they are for."""
    parser = Parser(prog="everloop", description=ABOUT)
    parser.add_argument("--version", action="version", version=f"everloop {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, row in COMMANDS.items():
        command = commands.add_parser(name, help=row.help, description=row.help)
        if name in wanted:
            module = _load(name)
            command.epilog = module.MORE
            module.add_arguments(command)
    return parser


def _load(command: str) -> Module:
    return cast(Module, import_module(f".{command}", __name__))


def _completed(argv: list[str]) -> list[str]:
    """With the words that people leave out: `everloop` alone opens the chat, `everloop models` lists them; and with
    `--help` where they write `help`."""
    if argv[:1] == ["help"] or argv[1:2] == ["help"]:
        about = [word for word in argv[:2] if word != "help"]
        return about if about and about[0] not in COMMANDS else [*about, "--help"]
    if not argv or (argv[0].startswith("-") and argv[0] not in ("-h", "--help")):
        argv = ["agent", *argv]
    command = COMMANDS.get(argv[0], CliCommand(""))
    left_out = not argv[1:] or argv[1] not in (*command.words, "-h", "--help")
    is_wrong = argv[1:] and not argv[1].startswith("-") and not command.names
    return [argv[0], command.words[0], *argv[1:]] if command.words and left_out and not is_wrong else argv


def _unknown_in(argv: list[str]) -> str:
    """What is said to whoever names a command that there is not, with the one that they may have meant."""
    name, word = argv[0], argv[1] if argv[1:] else ""
    if not name.startswith("-") and name not in COMMANDS:
        from shlex import quote  # only a mistake needs it

        asked, near = f"everloop -m {quote(' '.join(argv))}", nearest(name, (*FIRST, *COMMANDS))
        return f"there is no command {name!r}{near}. To ask the agent: {asked}; else: everloop --help"
    words = COMMANDS[name].words if name in COMMANDS else ()
    if not words or word in words or word.startswith("-"):
        return ""
    return f"there is no `everloop {name} {word}`{nearest(word, words)}. There is: {', '.join(words)}"


def _unforeseen(error: Exception) -> str:
    """What is said of an error that nobody has put into words; the log has more."""
    import secrets  # only a mistake needs it

    id = secrets.token_hex(4)
    _log.error("a command failed (error %s)", id, exc_info=error, extra={"error_id": id})
    more = f"everloop logs --error {id} has the details"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename} cannot be used ({error.strerror}); {more}"
    why = " ".join(f"{type(error).__name__}: {error}".split())
    return f"something went wrong in everloop itself ({why}); {more}, for a report"


async def _until_ended(main: Coroutine[Any, Any, int]) -> int:
    """A polite request to end (SIGTERM), or a terminal that was closed (SIGHUP), lets the running step finish and puts
    the turn down for the next start."""
    ended = 0
    task = asyncio.ensure_future(main)

    def end(number: int) -> None:
        nonlocal ended
        ended = ended or number
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as `nohup` has it
            asyncio.get_running_loop().add_signal_handler(number, end, number)
    try:
        return await task
    except asyncio.CancelledError:
        if not ended:
            raise
        return 128 + ended


def _let_go_of_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that Python's last flush finds a reader


def _complain(sentence: str, code: int = 1) -> int:
    Terminal(sys.stdout, sys.stderr).tell(f"everloop: {sentence}")
    return code
