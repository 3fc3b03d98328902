"""A conversation at the terminal, or of the lines of a pipe: what is said, and what comes of it. How it is shown and
typed is the front's (`chat.front`)."""

import asyncio
import sys
import time
from pathlib import Path

from ...core.people import OWNER
from ...errors import EverloopError, MailRefused, StoreBroken, StoreFull, StoreUnreachable, TurnFailed
from ...ports.events import AnswerBegan, AnswerGiven, Event, PermissionAsked, TurnMoved
from ...readings.commands import command_in
from ...readings.visible import in_one_line
from ..exchange import ChatTurn, Fail
from ..here import (
    Here,
    ask,
    ask_about_files,
    finish,
    is_answer,
    minding,
    note_limits,
    show_unshown,
    showing_what_comes,
    stopping,
)
from ..questions import Questions
from ..session_key import way_into
from ..times import clock

STAYS = '(what was said of the answer stays; say "go on" to have the rest)'
CUT_OFF = "(finishing what was cut off)"
GO_ON = '(say "go on" to have the rest)'
AGAIN = "(Ctrl-C once more leaves, and so does Ctrl-D)"
TAKEN = {
    "steer": "(taken: it hears this at its next step, or answers it next)",
    "queue": "(taken: it is answered next)",
    "interrupt": "(taken: what was going on is stopped for it)",
}
HELP = "/help"
TAKE_BACK = "/fg"
LEAVING = ("exit", "quit", "/exit", "/quit")
JUST = 1.0  # seconds after a turn in which Ctrl-C was meant for it
TWICE = 2.0  # seconds after a stop in which it is the second
PROMPT = "> "
LONGEST_TITLE = 60  # letters of a message that is named
Reading = asyncio.Task[str | None]
TOLD = (TurnFailed, MailRefused, StoreFull, StoreUnreachable)  # what has failed may not fail the next time


async def chat(here: Here, first: Reading | None) -> int:
    """`first` is the first line of a pipe. Raises KeyboardInterrupt for whoever leaves by Ctrl-C."""
    if sys.stdin.isatty():
        await _greet(here)
    talk = Chat(here)
    with here.lines:
        if first is None or not await _begins_with_command(first):
            await talk.finish(CUT_OFF)
            await show_unshown(here, here.terminal.answer, questions=not sys.stdin.isatty())
            await talk.ask_what_waits()
        return await talk.talk(first)


async def _greet(here: Here) -> None:
    agent, terminal = here.agent, here.terminal
    terminal.note(f"everloop, {agent.model}, session {here.session}. /help shows the commands; Ctrl-D leaves.")
    terminal.note(f"It works in {_as_written(agent.workspace_folder)}.")
    for words in filter(None, (agent.notice, agent.advice)):
        terminal.note(words)
    row = await agent.store.session(here.session)
    for old in await agent.store.conversations(OWNER, id=row.id, archived=True) if row else ():
        many = f"{old.messages} message{'' if old.messages == 1 else 's'}, the last {clock(old.active)}"
        terminal.note(f"Going on with “{in_one_line(old.title)}” ({many}); /new begins afresh.")


def _as_written(folder: Path) -> str:
    home = Path("~").expanduser()
    return f"~/{folder.relative_to(home)}" if folder.is_relative_to(home) else str(folder)


async def _begins_with_command(first: Reading) -> bool:
    try:
        line = await first
    except MailRefused:  # this is told in its turn
        return False
    return line is not None and bool(command_in(line))


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


class Chat:
    def __init__(self, here: Here) -> None:
        self._here = here
        self._known = KnownSettings(here.agent.model)
        self._answered = True  # a pipe learns from the exit code whether its last line came to something
        self._instead = ""  # what was said in place of an answer to a question
        self._later: list[str] = []  # what is queued, the wish to leave among it
        self._over = 0.0  # when the last turn ended by itself,
        self._stopped = 0.0  # or was stopped
        self._has_said = False  # something to the model

    async def talk(self, first: Reading | None) -> int:
        while True:
            try:
                line = await (first or self._line())
                first = None
                if line is None or line.strip() in LEAVING:
                    self._take_leave()
                    return 0 if self._answered or sys.stdin.isatty() else 1
                if line.strip():
                    await self._say(line)
            except StoreBroken:  # nothing can be said before a restart
                raise
            except TOLD as error:
                first = None
                self._fail(error)

    def _take_leave(self) -> None:
        if self._has_said and sys.stdin.isatty():
            self._here.terminal.note(f"(to go on: {way_into(self._here.session)})")

    async def _say(self, line: str) -> None:
        here = self._here
        self._answered = True
        self._has_said = self._has_said or not command_in(line)
        async with stopping(here), here.questions() as questions, minding(here, questions):
            meanwhile = Meanwhile(here, self._known, questions, self._fail)
            await meanwhile.run(line)
            self._later += meanwhile.later
        self._over = time.monotonic() if self._answered else 0.0
        self._known.tell_changes(here)
        if command_in(line) == HELP and here.lines.help:
            here.terminal.tell(f"\n{here.lines.help}")
        if meanwhile.takes_back:
            await self._go_on()
        if is_answer(line):
            await self._catch_up()
        if not command_in(line) and (instead := await ask_about_files(here)):
            self._instead = instead

    async def ask_what_waits(self) -> None:
        """Put to whoever sits here the questions that an earlier chat has left, and go on with what waited for them."""
        here = self._here
        if sys.stdin.isatty() and await here.waiting_calls():
            await self._go_on()
            await self._catch_up()

    async def finish(self, note: str = "") -> None:
        """Let a turn from before go on to its end. Whoever sits here sees it, and may steer it, as any turn."""
        here = self._here
        row = await here.agent.store.session(here.session)
        if sys.stdin.isatty() and row and await here.agent.store.unfinished(row.id) and not await here.waiting_calls():
            if note:
                here.terminal.note(note)
            await self._go_on()
        await finish(here)

    async def _catch_up(self) -> None:
        await self.finish()
        await show_unshown(self._here, self._here.terminal.answer)

    async def _go_on(self) -> None:
        """With a turn that has begun before: if it still runs, it is shown from here on."""
        here = self._here
        async with stopping(here), here.questions() as questions, minding(here, questions):
            meanwhile = Meanwhile(here, self._known, questions, self._fail)
            await meanwhile.go_on()
            self._later += meanwhile.later
        await show_unshown(here, here.terminal.answer, questions=False)
        if meanwhile.takes_back:
            await self._go_on()

    def _fail(self, error: EverloopError) -> None:
        terminal = self._here.terminal
        terminal.end_turn()
        is_stopped = isinstance(error, TurnFailed) and error.reason == "stopped"
        if is_stopped:
            self._stopped = time.monotonic()
        terminal.note(f"({error})" if is_stopped else f"everloop: {error}")
        if isinstance(error, TurnFailed) and error.cut:
            terminal.note(GO_ON if is_stopped else STAYS)
        self._answered = False

    async def _line(self) -> str | None:
        """What is said next."""
        if self._instead:
            line, self._instead = self._instead, ""
            return line
        if self._later:
            line = self._later.pop(0)
            if line.strip() not in LEAVING:
                self._here.terminal.note(_answers(line))
            return line
        return await self._prompt()

    async def _prompt(self) -> str | None:
        """The next line. Ctrl-C leaves, but not whoever has begun to write, or meant the turn that has just ended."""
        here = self._here
        reading = asyncio.ensure_future(here.lines.read(PROMPT))
        if not sys.stdin.isatty():
            return await reading
        left, warned = asyncio.Event(), False

        def leave() -> None:
            nonlocal warned
            begun, now = here.lines.begun, time.monotonic()
            is_second = here.lines.confirms_leaving or warned or now - self._stopped < TWICE
            if is_second or not (begun or now - self._over < JUST):
                left.set()
                return
            warned = True
            here.terminal.tell(f"\n{AGAIN}")
            here.lines.redraw(PROMPT)

        leaving = asyncio.ensure_future(left.wait())
        try:
            with here.lines.on_interrupt(leave):
                async with showing_what_comes(here, PROMPT):
                    await asyncio.wait({reading, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                here.terminal.tell("")  # the shell's prompt stands in a line of its own
                raise KeyboardInterrupt
            if (line := reading.result()) is None:
                here.terminal.tell("")
            return line
        finally:
            for task in (reading, leaving):
                task.cancel()


class Meanwhile:
    """A message, what comes of it, and what is typed while that comes."""

    def __init__(self, here: Here, known: KnownSettings, questions: Questions, fail: Fail) -> None:
        self._here = here
        self._known = known
        self._questions = questions
        self._commands: list[asyncio.Task[None]] = []
        self._exchange = ChatTurn(here.say, self._show, self._turn_to, fail)
        self._is_moving = False  # what is brought back is shown by `go_on`, with all that it has said
        self.takes_back = False  # there is something to go on with
        self.later: list[str] = []  # what is for whoever reads at the prompt

    async def run(self, line: str) -> None:
        self._is_moving = self.takes_back = command_in(line) == TAKE_BACK
        with self._here.lines.listening(self._take, self._here.terminal):
            await self._exchange.run(line)
            await self._see_through()

    async def go_on(self) -> None:
        with self._here.lines.listening(self._take, self._here.terminal):
            await self._exchange.go_on_with(self._here.follow(self._questions))
            await self._see_through()

    async def _see_through(self) -> None:
        """Also what is typed while commands are waited for: what is gone on with depends on what those do."""
        while open_ones := [each for each in self._commands if not each.done()]:
            await asyncio.wait(open_ones)
            await self._exchange.show_added()

    def _show(self, event: Event) -> None:
        terminal = self._here.terminal
        if self._is_moving and not isinstance(event, AnswerGiven):
            return
        if isinstance(event, TurnMoved):
            terminal.leave_turn()
        elif isinstance(event, PermissionAsked):
            ask(self._here, self._questions, event.approvals)
        elif isinstance(event, AnswerGiven):
            terminal.finish(event.answer.content)
            note_limits(event.answer, terminal)
        else:
            if isinstance(event, AnswerBegan):
                self._known.tell_changes(self._here)
            terminal.follow(event)

    def _turn_to(self, line: str) -> None:
        self._here.terminal.note(_answers(line))

    def _take(self, line: str, later: bool = False) -> None:
        terminal = self._here.terminal
        if line.strip() in LEAVING:
            self.later.append(line)
            terminal.hear(line, "(when this is answered; Ctrl-C stops it)")
        elif later:
            self.later.append(line)
            terminal.hear(line, "(queued: it is said when this is answered)")
        elif command_in(line):
            terminal.hear(line)
            self.takes_back = self.takes_back or command_in(line) == TAKE_BACK
            self._commands.append(asyncio.ensure_future(self._command(line)))
        else:
            terminal.hear(line, TAKEN[self._here.agent.steering])
            self._exchange.add(line)

    async def _command(self, line: str) -> None:
        """Which is understood whatever the model is doing."""
        try:
            told = (await self._here.agent.ask(line, self._here.session, author=OWNER)).content
        except (MailRefused, TurnFailed) as error:
            told = f"everloop: {error}"
        keys = f"\n\n{self._here.lines.help}" if command_in(line) == HELP and self._here.lines.help else ""
        self._here.terminal.aside(f"{told}{keys}")


def _answers(line: str) -> str:
    """What is said above an answer that does not stand below its message."""
    text = in_one_line(line)
    return f"(to “{text if len(text) <= LONGEST_TITLE else text[:LONGEST_TITLE] + '…'}”)"
