"""`everloop agent`: one answer with -m, or a conversation."""

import argparse
import asyncio
import select
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
from msgspec import Struct

from ..app import open_for_owner
from ..app.agent import WAITS, Agent, Answer, Approval
from ..core.decide import REFUSALS
from ..core.errors import MailRefused, StoreError, TurnFailed
from ..core.events import (
    AnswerGiven,
    AnswerPiece,
    Event,
    PermissionAsked,
    SummaryWritten,
    ToolCalled,
    ToolReturned,
    Warned,
)
from ..core.people import OWNER
from ..readings.commands import command_in, rest_of
from ..readings.questions import asked_of
from .lines import LineReader
from .questions import Questions
from .session_key import session_key
from .terminal import Terminal, WrongUse

HELP = "talk with the agent: one answer with -m, else a chat"
SOON = 2.0  # seconds in which a line is read of which the beginning is there
MORE = "The answer alone goes to stdout, everything else to stderr. What was cut off is finished first."
DIRECT = "cli:direct"
LONGEST_CUT = 10_000  # characters that are shown of an answer that was cut off; the log has more
MINDS = 1.0  # seconds between two looks at what others are asked in this session
STAYS = '(what was said of the answer stays; say "go on" to have the rest)'
UNATTENDED = "(to be asked: --approvals ask, then everloop approvals; to allow all: --approvals allow)"
LATER = 75  # the exit code of what may be tried again later (EX_TEMPFAIL)
Reading = asyncio.Task[str | None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-m", "--message", metavar="TEXT", help="say this, print the answer and leave ('-': read stdin)"
    )
    parser.add_argument(
        "-f",
        "--file",
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
    parser.add_argument(
        "--approvals",
        choices=("ask", "allow", "deny"),
        help="what becomes of calls that need your permission: ask here, or without a terminal wait for `everloop "
        "approvals`; allow all; deny all (default: ask at a terminal, else deny)",
    )
    parser.add_argument("--json", action="store_true", help="with -m: print one JSON object instead of the answer")


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr, kept=True)
    session = session_key(DIRECT if arguments.session is None else arguments.session)
    if arguments.json and arguments.message is None:
        raise WrongUse("--json needs -m: it prints one answer as one object")
    if arguments.files and arguments.message is None:
        raise WrongUse("-f needs -m: say with -m what the file is shown for")
    text = _message(arguments.message)
    lines = LineReader()
    # A pipe is read while the house opens, before what was cut off goes on: its first line may say to stop that.
    first = asyncio.ensure_future(lines.read("> ")) if text is None and not sys.stdin.isatty() else None
    if first and select.select([sys.stdin], [], [], 0)[0]:
        await asyncio.wait({first}, timeout=SOON)
    async with open_for_owner() as agent:
        if arguments.resume and arguments.session is None and (row := await agent.latest()):
            session = row.session
        await _check_whose(agent, session)
        for sentence in agent.unused:
            terminal.note(sentence)
        attended, preapproved = _is_attended(arguments.approvals), arguments.approvals == "allow"
        here = Here(agent, session, terminal, lines, attended, preapproved, set())
        if text is None:
            return await _chat(here, first)
        if not command_in(text):  # which acts at once: what runs, or was cut off, may be what it is about
            await _finish(here)
            if any(not each.held for each in await agent.approvals(session)):
                return _refuse(here)
            await _show_unshown(here, terminal.note)
        if not sys.stdin.isatty():  # a script is told of what this turn brings, not again and again of the same
            here.told.update(each.id for each in await agent.approvals(session) if each.held)
        code = await _answer_once(here, text, arguments.files, arguments.json)
        if _is_answer(text):
            await _catch_up(here, terminal.note if arguments.json else terminal.answer)
        elif not command_in(text):
            await _ask_about_files(here)
        return code


async def _check_whose(agent: Agent, session: str) -> None:
    """What was said to somebody else is not shown here, for that would count as having been shown to them."""
    row = await agent.store.session(session)
    if row and row.owner != OWNER:
        from shlex import quote  # only a mistake needs it

        how = f"everloop sessions show {row.id} --user {quote(row.owner)}"
        raise MailRefused(f"{session} is a conversation of {row.owner}, not yours to speak in; read it with: {how}")


class Here(Struct, frozen=True):
    """Where the conversation takes place: in which session, at which terminal, and whether anyone sits there."""

    agent: Agent
    session: str
    terminal: Terminal
    lines: LineReader
    attended: bool
    preapproved: bool
    told: set[str]  # questions about files that were put here

    def say(self, text: str, files: Sequence[str] = ()) -> AsyncIterator[Event]:
        """Every message has its own word about permissions, whichever process answers it."""
        return self.agent.stream(
            text,
            self.session,
            files=files,
            author=OWNER,
            attended=self.attended,
            preapproved=self.preapproved,
            withdraws=False,  # who has been shown a question and goes on says so there
        )

    def questions(self) -> Questions:
        return Questions(self.agent, self.session, self.lines, self.terminal)


def _is_attended(wanted: str | None) -> bool:
    return wanted == "ask" if wanted else sys.stdin.isatty() and sys.stderr.isatty()


def _is_answer(line: str) -> bool:
    """After this the turn that has waited for it goes on, and someone wants to see it."""
    return command_in(line) == "/approve" and bool(rest_of(line))


def _message(given: str | None) -> str | None:
    if given != "-":
        return given
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise MailRefused(f"standard input is not valid UTF-8 text (byte {error.start})") from error


async def _catch_up(here: Here, show: Callable[[str], None]) -> None:
    """Finish what was cut off, then show every answer that nobody has seen."""
    await _finish(here)
    await _show_unshown(here, show)


async def _finish(here: Here) -> None:
    here.terminal.status("finishing what was cut off …")
    async with _stopping(here.agent, here.session):
        await here.agent.finish(here.session)
    here.terminal.clear()


def _refuse(here: Here) -> int:
    """With -m nobody has seen the question, so that going on without it is nobody's decision."""
    here.terminal.tell(f"everloop: {WAITS.format(here.session)}; nothing was sent (for another session: -s KEY)")
    return LATER


async def _show_unshown(here: Here, show: Callable[[str], None], questions: bool = True) -> None:
    """Without `questions` about calls, which are then to be put."""
    agent, session = here.agent, here.session
    put = set() if questions else {approval.id for approval in await agent.approvals(session) if not approval.held}
    for outbound in await agent.unshown(session):
        if outbound.approval not in put:
            show(outbound.text)
        await agent.acknowledge([outbound.key])


async def _answer_once(here: Here, text: str, files: list[str], as_json: bool) -> int:
    agent, session, terminal = here.agent, here.session, here.terminal
    unattended = False
    try:
        async with _stopping(agent, session), here.questions() as questions, _minding(here, questions):
            async for event in here.say(text, files):
                match event:
                    case AnswerGiven(answer=answer):
                        terminal.answer(to_json(answer) if as_json else answer.content)
                        _note_limits(answer, terminal)
                    case AnswerPiece(notice=notice) if notice:
                        terminal.note(f"({notice})")
                    case AnswerPiece(progress=progress) if progress:
                        terminal.status(progress)
                    case PermissionAsked():
                        _ask(here, questions, event.approvals)
                    case ToolCalled() | SummaryWritten() | Warned():
                        terminal.follow(event)
                    case ToolReturned(outcome="denied", text=why):
                        terminal.follow(event)
                        unattended = unattended or why == REFUSALS["unattended"]
    except TurnFailed as error:
        if error.cut:
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


def _ask(here: Here, questions: Questions, approvals: Sequence[Approval]) -> None:
    calls = [approval for approval in approvals if not approval.held]  # files wait until the turn is over
    if sys.stdin.isatty():
        questions.ask(calls)
        return
    for approval in calls:
        if approval.id not in here.told:
            here.told.add(approval.id)
            _tell(here, approval)


@asynccontextmanager
async def _minding(here: Here, questions: Questions) -> AsyncIterator[None]:
    """Put what another chat of this session is asked as well: what is said here waits until that is answered."""

    async def mind() -> None:
        while here.attended:
            await asyncio.sleep(MINDS)
            try:
                waiting = [each for each in await here.agent.approvals(here.session) if not each.held]
            except StoreError:  # of which the turn itself tells
                continue
            if questions.unput(waiting) and sys.stdin.isatty():
                here.terminal.note("(another chat of this session is asked this; what you said waits for the answer)")
            _ask(here, questions, waiting)

    minding = asyncio.ensure_future(mind())
    try:
        yield
    finally:
        minding.cancel()
        with suppress(asyncio.CancelledError):
            await minding


def _tell(here: Here, approval: Any) -> None:
    how = f"Answer with: everloop approvals approve {approval.id} (or: deny {approval.id})"
    here.terminal.ask(f"{asked_of(approval)}\n{how}")


async def _ask_about_files(here: Here) -> str:
    """Put each question about a held change once. Returns what someone says instead of an answer."""
    waiting = [each for each in await here.agent.approvals(here.session) if each.held and each.id not in here.told]
    here.told.update(each.id for each in waiting)
    if sys.stdin.isatty():
        return await here.questions().ask_about_files(waiting)
    for approval in waiting:
        _tell(here, approval)
    return ""


async def _chat(here: Here, first: Reading | None) -> int:
    agent, session, terminal, lines = here.agent, here.session, here.terminal, here.lines
    if sys.stdin.isatty():
        terminal.note(f"everloop, {agent.model}, session {session}. /help shows the commands; Ctrl-D leaves.")
        for words in filter(None, (agent.notice, agent.advice)):
            terminal.note(words)
    known = KnownSettings(agent.model)
    answered = True  # a pipe learns from the exit code whether its last line came to something
    with lines:
        if first is None or not await _begins_with_command(first):
            await _finish(here)
            await _show_unshown(here, terminal.answer, questions=not sys.stdin.isatty())
            await _ask_what_waits(here)
        instead = ""  # of an answer to a question
        while True:
            try:
                reading, first = first, None
                line = instead or await (reading or lines.read("> "))
                instead = ""
                if line is None or line.strip() in ("exit", "quit", "/exit", "/quit"):
                    return 0 if answered or sys.stdin.isatty() else 1
                if line.strip():
                    await _exchange(here, line)
                    answered = True
                    known.tell_changes(here)
                    if _is_answer(line):
                        await _catch_up(here, terminal.answer)
                    if not command_in(line):
                        instead = await _ask_about_files(here)
            except (TurnFailed, MailRefused) as error:
                terminal.note(f"everloop: {error}")
                if isinstance(error, TurnFailed) and error.cut:
                    terminal.note(STAYS)
                answered = False


class KnownSettings:
    """What whoever sits here knows of the settings; a change is told once."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._problem = ""

    def tell_changes(self, here: Here) -> None:
        model, problem = here.agent.model, here.agent.problem
        if model != self._model:
            here.terminal.note(f"(the settings have changed: {model} answers)")
        if problem and problem != self._problem:
            here.terminal.note(f"({problem})")
        self._model, self._problem = model, problem


async def _ask_what_waits(here: Here) -> None:
    """Put to whoever sits here the questions that an earlier chat has left, and go on with what waited for them."""
    waiting = [each for each in await here.agent.approvals(here.session) if not each.held]
    if waiting and sys.stdin.isatty():
        async with _stopping(here.agent, here.session), here.questions() as questions:
            await questions.put(waiting)
        await _catch_up(here, here.terminal.answer)


async def _begins_with_command(first: Reading) -> bool:
    try:
        line = await first
    except MailRefused:  # this is told in its turn
        return False
    return line is not None and bool(command_in(line))


async def _exchange(here: Here, line: str) -> None:
    terminal = here.terminal
    async with _stopping(here.agent, here.session), here.questions() as questions, _minding(here, questions):
        async for event in here.say(line):
            if isinstance(event, PermissionAsked):
                _ask(here, questions, event.approvals)
            elif isinstance(event, AnswerGiven):
                terminal.finish(event.answer.content)
                _note_limits(event.answer, terminal)
            else:
                terminal.follow(event)


def _note_limits(answer: Answer, terminal: Terminal) -> None:
    """What the answer itself may not tell."""
    for sentence in answer.unknown:
        terminal.ask(sentence)
    if answer.finish == "length":
        terminal.note("(the answer ends here because it has reached max_tokens)")


@asynccontextmanager
async def _stopping(agent: Agent, session: str) -> AsyncIterator[None]:
    """Ctrl-C stops the turn, as /stop does; what was done so far stays in the conversation."""
    loop = asyncio.get_running_loop()
    asked: list[asyncio.Future[Answer]] = []

    def stop() -> None:
        asked.append(asyncio.ensure_future(agent.ask("/stop", session, author=OWNER)))

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
    names = ("content", "session", "turn", "model", "steps", "tools_used", "unknown")
    return msgspec.json.encode({**{name: getattr(answer, name) for name in names}, "usage": usage}).decode()
