"""One answer with -m, and the chat that reads and writes lines."""

import argparse
import asyncio
import select
import sys

import msgspec

from ...app import open_for_owner
from ...app.agent import WAITS, Agent, Answer
from ...core.decide import REFUSALS
from ...core.people import OWNER
from ...errors import MailRefused, TurnFailed
from ...ports.events import (
    AnswerBegan,
    AnswerEnded,
    AnswerGiven,
    AnswerPiece,
    PermissionAsked,
    SummaryWritten,
    ToolCalled,
    ToolReturned,
    Warned,
)
from ...readings.commands import command_in
from ..first_time import FIRST_TIME, is_first_time
from ..here import Here, ask, ask_about_files, catch_up, finish, is_answer, minding, note_limits, show_unshown, stopping
from ..lines import LineReader
from ..session_key import DIRECT, session_key
from ..terminal import Terminal, WrongUse
from .front import Display
from .talk import chat

SOON = 2.0  # seconds in which a line is read of which the beginning is there
LONGEST_CUT = 10_000  # characters that are shown of an answer that was cut off; the log has more
UNATTENDED = "(to be asked: --approvals ask, then everloop approvals; to allow all: --approvals allow)"
FOLLOWED = (AnswerBegan, AnswerPiece, AnswerEnded, ToolCalled, SummaryWritten, Warned)
LATER = 75  # the exit code of what may be tried again later (EX_TEMPFAIL)


async def run_plain(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr, kept=True)
    session = session_key(DIRECT if arguments.session is None else arguments.session)
    if arguments.json and arguments.message is None:
        raise WrongUse("--json needs -m: it prints one answer as one object")
    if arguments.files and arguments.message is None:
        raise WrongUse("-f needs -m: say with -m what the file is shown for")
    if arguments.resume and arguments.session is not None:
        raise WrongUse("--continue goes on with the session that was active last, -s with the one it names: say one")
    text = _message(arguments.message)
    if text is None and is_first_time():
        terminal.note(FIRST_TIME)
    lines = LineReader()
    # A pipe is read while the house opens, before what was cut off goes on: its first line may say to stop that.
    first = asyncio.ensure_future(lines.read("> ")) if text is None and not sys.stdin.isatty() else None
    if first and select.select([sys.stdin], [], [], 0)[0]:
        await asyncio.wait({first}, timeout=SOON)
    async with open_for_owner(embeds=text is None) as agent:
        if arguments.resume and (row := await agent.latest()):
            session = row.session
        await check_whose(agent, session)
        for sentence in agent.unused:
            terminal.note(sentence)
        attended, preapproved = _is_attended(arguments.approvals), arguments.approvals == "allow"
        here = Here(agent, session, terminal, lines, attended, preapproved, set())
        if text is None:
            return await chat(here, first)
        if not command_in(text):  # which acts at once: what runs, or was cut off, may be what it is about
            await finish(here)
            if any(not each.held for each in await agent.approvals(session)):
                return _refuse(here)
            await show_unshown(here, terminal.note)
        if not sys.stdin.isatty():  # a script is told of what this turn brings, not again and again of the same
            here.told.update(each.id for each in await agent.approvals(session) if each.held)
        code = await _answer_once(here, text, arguments.files, arguments.json)
        if is_answer(text):
            await catch_up(here, terminal.note if arguments.json else terminal.answer)
        elif not command_in(text):
            await ask_about_files(here)
        return code


async def check_whose(agent: Agent, session: str) -> None:
    """What was said to somebody else is not shown here, for that would count as having been shown to them."""
    row = await agent.store.session(session)
    if row and row.owner != OWNER:
        from shlex import quote  # only a mistake needs it

        how = f"everloop sessions show {row.id} --user {quote(row.owner)}"
        raise MailRefused(f"{session} is a conversation of {row.owner}, not yours to speak in; read it with: {how}")


def _is_attended(wanted: str | None) -> bool:
    return wanted == "ask" if wanted else sys.stdin.isatty() and sys.stderr.isatty()


def _message(given: str | None) -> str | None:
    if given != "-":
        return given
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise MailRefused(f"standard input is not valid UTF-8 text (byte {error.start})") from error


def _refuse(here: Here) -> int:
    """With -m nobody has seen the question, so that going on without it is nobody's decision."""
    here.terminal.tell(f"everloop: {WAITS.format(here.session)}; nothing was sent (for another session: -s KEY)")
    return LATER


def _tell_beside(piece: AnswerPiece, terminal: Display) -> None:
    """What is told about an answer while it comes, where only the whole of it is shown."""
    if piece.notice:
        terminal.note(f"({piece.notice})")
    elif piece.progress:
        terminal.status(piece.progress)


async def _answer_once(here: Here, text: str, files: list[str], as_json: bool) -> int:
    terminal, unattended = here.terminal, False
    streams = sys.stdout.isatty() and not as_json  # someone looks on
    try:
        async with stopping(here), here.questions() as questions, minding(here, questions):
            async for event in here.say(text, files):
                if isinstance(event, AnswerGiven):
                    show = terminal.finish if streams else terminal.answer
                    show(to_json(event.answer) if as_json else event.answer.content)
                    note_limits(event.answer, terminal)
                elif isinstance(event, AnswerPiece) and not streams:
                    _tell_beside(event, terminal)
                elif isinstance(event, PermissionAsked):
                    ask(here, questions, event.approvals)
                elif isinstance(event, ToolReturned) and event.outcome == "denied":
                    terminal.follow(event)
                    unattended = unattended or event.text == REFUSALS["unattended"]
                elif isinstance(event, FOLLOWED):
                    terminal.follow(event)
    except TurnFailed as error:
        if error.cut and not streams:
            terminal.note(error.cut if len(error.cut) <= LONGEST_CUT else f"{error.cut[:LONGEST_CUT]} …")
        if error.reason == "waiting":
            terminal.tell(f"everloop: {error}")
            return LATER
        if error.reason != "stopped":
            raise
        terminal.tell(f"everloop: {error}")
        return 130
    if unattended:
        terminal.note(UNATTENDED)
    return 0


def to_json(answer: Answer) -> str:
    usage = {**msgspec.to_builtins(answer.usage), "cost": answer.cost}
    for name in ("input", "output", "cache_read", "cache_write"):
        usage.setdefault(name, 0)
    names = ("content", "session", "turn", "model", "steps", "tools_used", "unknown")
    return msgspec.json.encode({**{name: getattr(answer, name) for name in names}, "usage": usage}).decode()
