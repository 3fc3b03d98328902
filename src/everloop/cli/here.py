"""Where a conversation takes place, and what happens there whether one message is said or many."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from msgspec import Struct

from ..app.agent import Agent, Answer, Approval
from ..core.mail import reply_key
from ..core.message import Part
from ..core.people import OWNER
from ..errors import StoreError
from ..ports.events import AnswerGiven, Event, TurnEnded, answer_of
from ..readings.commands import command_in, rest_of
from ..readings.questions import asked_of
from .chat.front import Display, TypedLines
from .questions import Questions

MINDS = 1.0  # seconds between two looks at what others are asked in this session
STOPPED = "(stopped; what was said and done so far stays)"
STOPS = 5.0  # seconds that whoever presses Ctrl-C twice waits at most for the stop to be kept


class Enclosed(Struct, frozen=True):
    """What is sent: a text, files that go with it, and what was said beside it."""

    text: str
    files: tuple[str, ...] = ()
    beside: tuple[Part, ...] = ()


class Here(Struct, frozen=True):
    """Where the conversation takes place: in which session, at which terminal, and whether anyone sits there."""

    agent: Agent
    session: str
    terminal: Display
    lines: TypedLines
    attended: bool
    preapproved: bool
    told: set[str]  # questions about files that were put here
    enclose: Callable[[str], "Enclosed"] | None = None  # what goes with a text that somebody has typed

    def say(self, text: str, files: Sequence[str] = ()) -> AsyncIterator[Event]:
        """Every message has its own word about permissions, whichever process answers it."""
        typed = self.enclose(text) if self.enclose else Enclosed(text)
        return self.agent.stream(
            typed.text,
            self.session,
            files=(*files, *typed.files),
            beside=typed.beside,
            author=OWNER,
            attended=self.attended,
            preapproved=self.preapproved,
            withdraws=False,  # who has been shown a question and goes on says so there
        )

    async def follow(self, questions: Questions) -> AsyncIterator[Event]:
        """What goes on in the conversation that is here now, to the end of its turn; what it waits for is asked. Raises
        TurnFailed."""
        row = await self.agent.store.session(self.session)
        if row is None or not await self.agent.store.unfinished(row.id):
            return
        with self.agent.events(row.id) as feed:
            ending = asyncio.ensure_future(self._finish(questions))  # which another process may bring about
            ending.add_done_callback(lambda _: feed.end())
            try:
                async for event in feed:
                    yield event
                    if isinstance(event, TurnEnded):
                        key = reply_key(row.id, event.seq)
                        if event.finished.reason:  # of which all is told by what is raised
                            self.agent.note_shown(key)
                        answer = answer_of(event.finished, row.id, self.session)
                        yield AnswerGiven(row.id, 0, answer)
                        self.agent.note_shown(key)
                        return
            finally:
                ending.cancel()

    async def _finish(self, questions: Questions) -> None:
        await self.agent.finish(self.session)
        while sys.stdin.isatty() and (waiting := await self.waiting_calls()) and await questions.settle(waiting):
            await self.agent.finish(self.session)

    async def waiting_calls(self) -> list[Approval]:
        """What is asked about files can wait until the turn is over."""
        return [each for each in await self.agent.approvals(self.session) if not each.held]

    def questions(self) -> Questions:
        return Questions(self.agent, self.session, self.lines, self.terminal)


def is_answer(line: str) -> bool:
    """After this the turn that has waited for it goes on, and someone wants to see it."""
    return command_in(line) in ("/approve", "/deny") and bool(rest_of(line))


async def catch_up(here: Here, show: Callable[[str], None]) -> None:
    """Finish what was cut off, then show every answer that nobody has seen."""
    await finish(here)
    await show_unshown(here, show)


async def finish(here: Here) -> None:
    here.terminal.status("finishing what was cut off …")
    async with stopping(here) as stops:
        await here.agent.finish(here.session)
    here.terminal.clear()
    if stops:
        here.terminal.note(STOPPED)


async def show_unshown(here: Here, show: Callable[[str], None], questions: bool = True) -> None:
    """Without `questions` about calls, which are then to be put."""
    agent, session = here.agent, here.session
    put = set() if questions else {approval.id for approval in await agent.approvals(session) if not approval.held}
    for outbound in await agent.unshown(session):
        if outbound.approval not in put:
            show(outbound.text)
        await agent.acknowledge([outbound.key])


@asynccontextmanager
async def showing_what_comes(here: Here, prompt: str) -> AsyncIterator[None]:
    """Show reminders and reports that come while somebody sits at the prompt, and the prompt again after them. What
    another chat of this session is just showing is gone by the second look."""
    over = asyncio.Event()

    async def look() -> None:
        seen: set[str] = set()
        while not over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(MINDS):
                    await over.wait()
            try:
                before, seen = seen, {each.key for each in await here.agent.unshown(here.session)}
                if seen & before and not over.is_set():
                    here.terminal.tell("")
                    await show_unshown(here, here.terminal.answer)
                    here.lines.redraw(prompt)
            except StoreError:  # of which the next turn tells
                continue

    looking = asyncio.ensure_future(look())
    try:
        yield
    finally:
        over.set()
        await looking  # what it has begun to show is acknowledged, else it would be shown again


def ask(here: Here, questions: Questions, approvals: Sequence[Approval]) -> None:
    calls = [approval for approval in approvals if not approval.held]  # files wait until the turn is over
    if sys.stdin.isatty():
        questions.ask(calls)
        return
    for approval in calls:
        if approval.id not in here.told:
            here.told.add(approval.id)
            tell(here, approval)


@asynccontextmanager
async def minding(here: Here, questions: Questions) -> AsyncIterator[None]:
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
            ask(here, questions, waiting)

    minding = asyncio.ensure_future(mind())
    try:
        yield
    finally:
        await end(minding)


async def end(task: "asyncio.Future[None]") -> None:
    """Raises what it has raised. Whoever is cancelled meanwhile is cancelled: Ctrl-C and Ctrl-D may come now."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()


def tell(here: Here, approval: Approval) -> None:
    how = f"Answer with: everloop approvals approve {approval.id} (or: deny {approval.id})"
    here.terminal.ask(f"{asked_of(approval)}\n{how}")


async def ask_about_files(here: Here) -> str:
    """Put each question about a held change once. Returns what someone says instead of an answer."""
    waiting = [each for each in await here.agent.approvals(here.session) if each.held and each.id not in here.told]
    here.told.update(each.id for each in waiting)
    if sys.stdin.isatty():
        return await here.questions().ask_about_files(waiting)
    for approval in waiting:
        tell(here, approval)
    return ""


def note_limits(answer: Answer, terminal: Display) -> None:
    """What the answer itself may not tell."""
    for sentence in answer.unknown:
        terminal.ask(sentence)
    if answer.finish == "length":
        terminal.note("(the answer ends here because it has reached max_tokens)")


@asynccontextmanager
async def stopping(here: Here) -> AsyncIterator[list[asyncio.Future[Answer]]]:
    """Ctrl-C stops the turn, as /stop does; what was done and said so far stays in the conversation. Once more leaves.

    Gives the stops that there are by then. Raises KeyboardInterrupt for whoever leaves."""
    task = asyncio.current_task()
    asked: list[asyncio.Future[Answer]] = []
    left = False

    def stop() -> None:
        nonlocal left
        if not asked:
            here.terminal.status("stopping …")
            asked.append(asyncio.ensure_future(here.agent.ask("/stop", here.session, author=OWNER)))
        elif task and not left:
            left = True
            task.cancel()

    try:
        with here.lines.on_interrupt(stop):
            yield asked
    except asyncio.CancelledError:
        if left:
            raise KeyboardInterrupt from None
        raise
    finally:
        if asked:
            await asyncio.wait(asked, timeout=STOPS if left else None)
