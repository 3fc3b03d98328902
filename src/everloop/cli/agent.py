"""`everloop agent`: one answer with -m, or a conversation."""

import argparse
import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from ..agent import Agent, Answer
from ..app import open as open_agent
from ..core.errors import MailRefused, TurnFailed
from ..core.mail import Address
from .lines import Lines
from .terminal import Terminal

HELP = "talk with the agent: one answer with -m, else a chat"
MORE = "The answer alone goes to stdout, everything else to stderr. What was cut off is finished first."
DIRECT = "cli:direct"
Reading = asyncio.Task[str | None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-m", "--message", metavar="TEXT", help="say this, print the answer and leave ('-': read stdin)"
    )
    parser.add_argument(
        *("-f", "--file"),
        dest="files",
        action="append",
        default=[],
        metavar="PATH",
        help="with -m: show this image, PDF or text file, too (may be given several times)",
    )
    parser.add_argument("-s", "--session", metavar="KEY", help=f"the session, as channel:chat (default {DIRECT})")
    parser.add_argument(
        "--continue", dest="resume", action="store_true", help="go on with the session that was active last"
    )
    parser.add_argument("--json", action="store_true", help="with -m: print one JSON object instead of the answer")


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr, kept=True)
    session = _checked(DIRECT if arguments.session is None else arguments.session)
    text = _message(arguments.message)
    if arguments.json and text is None:
        raise MailRefused("--json needs -m: it prints one answer as one object")
    if arguments.files and text is None:
        raise MailRefused("-f needs -m: say with -m what the file is shown for")
    lines = Lines()
    # A pipe is read while the house opens, before what was cut off goes on: its first line may say to stop that.
    first = asyncio.ensure_future(lines.read("> ")) if text is None and not sys.stdin.isatty() else None
    async with open_agent() as agent:
        if arguments.resume and arguments.session is None and (row := await agent.latest()):
            session = row.session
        if text is None:
            return await _chat(agent, session, terminal, lines, first)
        if not _is_command(text):
            await _catch_up(agent, session, terminal, terminal.note)
        return await _answer_once(agent, text, arguments.files, session, terminal, arguments.json)


def _is_command(line: str) -> bool:
    """A command acts at once: what runs, or was cut off, may be what it is about."""
    return line.lstrip().startswith("/")


def _message(given: str | None) -> str | None:
    if given != "-":
        return given
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise MailRefused(f"standard input is not valid UTF-8 text (byte {error.start})") from error


def _checked(session: str) -> str:
    try:
        return str(Address.parse(session))
    except ValueError as error:
        raise MailRefused(str(error)) from error


async def _catch_up(agent: Agent, session: str, terminal: Terminal, show: Callable[[str], None]) -> None:
    """Finish what was cut off, then show every answer that nobody has seen."""
    terminal.status("finishing what was cut off …")
    async with _stopping(agent, session):
        await agent.finish(session)
    terminal.clear()
    for outbound in await agent.unshown(session):
        show(outbound.text)
        await agent.acknowledge([outbound.key])


async def _answer_once(
    agent: Agent, text: str, files: list[str], session: str, terminal: Terminal, as_json: bool
) -> int:
    try:
        async with _stopping(agent, session):
            async for event in agent.stream(text, session, files=files):
                if event.name == "answer":
                    answer: Answer = event.data["answer"]
                    terminal.answer(to_json(answer) if as_json else answer.content)
                    _note_length(answer, terminal)
                elif event.name == "stream_chunk" and event.data["notice"]:
                    terminal.note(f"({event.data['notice']})")
                elif event.name == "stream_chunk" and event.data["progress"]:
                    terminal.status(event.data["progress"])
                elif event.name == "tool_call":
                    terminal.follow(event)
    except TurnFailed as error:
        if error.reason != "stopped":
            raise
        terminal.note(str(error))
        return 130
    return 0


async def _chat(agent: Agent, session: str, terminal: Terminal, lines: Lines, first: Reading | None) -> int:
    if sys.stdin.isatty():
        terminal.note(f"everloop, {agent.model}, session {session}. /help shows the commands; Ctrl-D leaves.")
        if agent.notice:
            terminal.note(agent.notice)
    answered = True  # a pipe learns from the exit code whether its last line came to something
    with lines:
        if first is None or not await _begins_with_command(first):
            await _catch_up(agent, session, terminal, terminal.answer)
        while True:
            try:
                reading, first = first or lines.read("> "), None
                line = await reading
                if line is None or line.strip() in ("exit", "quit", "/exit", "/quit"):
                    return 0 if answered or sys.stdin.isatty() else 1
                if line.strip():
                    await _exchange(agent, line, session, terminal)
                    answered = True
            except (TurnFailed, MailRefused) as error:
                terminal.note(f"everloop: {error}")
                answered = False


async def _begins_with_command(first: Reading) -> bool:
    try:
        line = await first
    except MailRefused:  # this is told in its turn
        return False
    return line is not None and _is_command(line)


async def _exchange(agent: Agent, line: str, session: str, terminal: Terminal) -> None:
    async with _stopping(agent, session):
        async for event in agent.stream(line, session):
            if event.name == "answer":
                terminal.finish(event.data["answer"].content)
                _note_length(event.data["answer"], terminal)
            else:
                terminal.follow(event)


def _note_length(answer: Answer, terminal: Terminal) -> None:
    if answer.finish == "length":
        terminal.note("(the answer ends here because it has reached max_tokens)")


@asynccontextmanager
async def _stopping(agent: Agent, session: str) -> AsyncIterator[None]:
    """Ctrl-C stops the turn, as /stop does; what was done so far stays in the conversation."""
    loop = asyncio.get_running_loop()
    asked: list[asyncio.Future[Answer]] = []

    def stop() -> None:
        asked.append(asyncio.ensure_future(agent.ask("/stop", session)))

    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        await asyncio.gather(*asked)


def to_json(answer: Answer) -> str:
    usage = {**msgspec.to_builtins(answer.usage), "cost": answer.cost}
    for name in ("input", "output", "cache_read", "cache_write"):
        usage.setdefault(name, 0)
    names = ("content", "session", "turn", "model", "steps", "tools_used")
    return msgspec.json.encode({**{name: getattr(answer, name) for name in names}, "usage": usage}).decode()
