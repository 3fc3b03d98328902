"""Sub-agents: a call hands a task on to a conversation of its own.

The letter that begins the task is posted in the transaction in which the call starts, so that there is one of it, or
none: no kill loses or doubles it, and no stop lets one through that it does not reach. What comes of it is told by the
transaction in which the task ends (reports.py). Who waits for that holds nothing meanwhile.
"""

from collections.abc import Awaitable, Callable, Collection
from fnmatch import fnmatchcase
from functools import partial

from msgspec import Struct

from ..core.log import CallReturned, CallStarted
from ..core.mail import Address, Inbound, Said
from ..core.message import said
from ..core.people import Role
from ..core.prompt import Terms
from ..core.task import Task, TaskBudget
from ..core.thread import Thread
from ..errors import ToolError
from ..ports import Bus
from ..ports.events import SubagentCompleted, SubagentProgress, SubagentSpawned, ToolCalled, ToolReturned
from ..ports.failpoint import reach
from ..ports.rows import Posting
from ..ports.tasks import Tasks, session_of
from ..ports.tools import Assignment, CallContext
from .auditing import started
from .book import Book
from .calls import Toolbox
from .reports import title_of
from .tainting import key_of

WITHHELD = frozenset({"message", "spawn"})  # which a task has only where its profile names them
HANDED_ON = (
    "Handed on. The task is worked at on its own from here; when it has ended, you are told so in a message of its "
    "own. There is nothing to wait for now: tell the user that it is under way."
)

Leave = Callable[[str], Awaitable[None]]


async def leave_nothing(thread: str) -> None:
    pass


class TaskLimits(Struct, frozen=True):
    """How deep tasks of tasks may go, how many of somebody's may be open, those that wait for their turn among them,
    and how often in a row tasks may lead to tasks with nobody saying anything."""

    depth: int = 2
    open: int = 100
    rounds: int = 20


class Children:
    def __init__(
        self,
        toolbox: Toolbox,
        bus: Bus,
        store: Tasks,
        limits: Callable[[], TaskLimits] = TaskLimits,
        leave: Leave = leave_nothing,
    ) -> None:
        """`leave` ends what a conversation has left running."""
        self._toolbox = toolbox
        self._bus = bus
        self._store = store
        self._limits = limits
        self._leave = leave

    async def hand_on(self, book: Book, place: int, context: CallContext, offered: Collection[str], role: Role) -> None:
        """Begin the task of a call; `offered` are the tools of the turn, more than which no task of it has."""
        thread = book.thread
        if place in thread.started:  # before a restart, and so was its letter posted
            self._return(book, CallReturned(thread.answer, place, HANDED_ON))
            return
        try:
            assignment = await self._toolbox.assignment(thread, place, context)
            await self._check(book)
        except ToolError as error:
            self._return(book, CallReturned(thread.answer, place, f"Error: {error}", "failed"))
            return
        call = thread.open_calls[place]
        task = _task(thread, place, assignment)
        book.post(_posting(book, task, assignment, tools_for(assignment, offered, task.depth < self._limits().depth)))
        book.note_starts(*started(thread, (place,), (self._toolbox.spec(thread, place),), role))
        if not await book.write(CallStarted(thread.answer, place, assignment.waits)):
            return
        reach("task.handed_on")
        self._bus.publish(ToolCalled(thread.id, book.lease.head, call.name, call.args, place))
        self._bus.publish(
            SubagentSpawned(thread.id, book.lease.head, task.call, title_of(assignment.text), assignment.agent)
        )
        if not assignment.waits:
            self._return(book, CallReturned(thread.answer, place, HANDED_ON))

    def tell_progress(self, book: Book, doing: str) -> None:
        """Where the task of this conversation was handed on; of any other there is nothing to tell."""
        terms = book.thread.turn.terms
        if terms and terms.task and self._bus.hears(terms.task.root):
            task = terms.task
            self._bus.publish(SubagentProgress(task.root, 0, task.call, book.thread.turn.steps, doing))

    async def rest(self, book: Book) -> None:
        """The conversation of a task rests: if the task is over, so is all that it has left running."""
        terms, finished = book.thread.turn.terms, book.thread.finished
        if not (terms and terms.task and finished) or session_of(terms.task) != book.session:
            return
        task = terms.task
        # At once, for whoever waits for it goes on already, and those who watch hear of the end of that after this.
        told = SubagentCompleted(task.root, 0, task.call, finished.reason, finished.steps, finished.cost)
        self._bus.publish(told)
        await self._leave(book.thread.id)

    def _return(self, book: Book, result: CallReturned) -> None:
        name = book.thread.open_calls[result.place].name
        book.keep(result)
        self._bus.publish(ToolReturned(book.thread.id, book.lease.head, name, result.outcome, result.text))

    async def _check(self, book: Book) -> None:
        """Raises ToolError for one task too many."""
        turn, limits = book.thread.turn, self._limits()
        depth = turn.terms.task.depth if turn.terms and turn.terms.task else 0
        if depth >= limits.depth:
            raise ToolError(f"a task of a task can go {limits.depth} deep at most; do this one yourself")
        if turn.rounds >= limits.rounds:
            raise ToolError(
                f"{turn.rounds} tasks have led to one another with nobody saying anything, so no more is handed on; "
                "tell the user where things stand"
            )
        if await book.patiently(partial(self._store.open_tasks, book.owner)) >= limits.open:
            raise ToolError(f"{limits.open} tasks are open already, as many as may be; hand on no more until some end")


def tools_for(assignment: Assignment, offered: Collection[str], deeper: bool) -> tuple[str, ...]:
    """The tools that a task has, of those that are offered where it is handed on: those that its profile names, and
    `message` and `spawn` only where it does so in full."""
    wanted = ("*",) if assignment.tools is None else assignment.tools
    granted = {name for name in wanted if name in WITHHELD and (deeper or name != "spawn")}
    fits = [name for name in offered if any(fnmatchcase(name, each) for each in wanted)]
    return tuple(name for name in fits if name not in WITHHELD or name in granted)


def _task(thread: Thread, place: int, assignment: Assignment) -> Task:
    turn = thread.turn
    above = turn.terms.task if turn.terms else None
    key = key_of(thread, place)
    budget = (TaskBudget(key, assignment.tokens, assignment.money),) if assignment.is_limited else ()
    return Task(
        call=key,
        waits=assignment.waits,
        agent=assignment.agent,
        depth=above.depth + 1 if above else 1,
        root=above.root if above else thread.id,
        run=above.run if above else (f"{thread.id}:{turn.seq}" if turn.source else ""),
        budgets=(*(above.budgets if above else ()), *budget),
        rounds=turn.rounds,
        outside=thread.outside,
        exits=turn.exits,
    )


def _posting(book: Book, task: Task, assignment: Assignment, tools: tuple[str, ...]) -> Posting:
    thread, turn = book.thread, book.thread.turn
    letter = Said(
        parts=said(assignment.text),
        author=turn.requester,
        address=thread.address,
        unattended=turn.unattended,
        literal=True,
        preapproved=turn.preapproved,
        principal=turn.principal if turn.principal != turn.requester else "",
        terms=Terms(assignment.steps, tools, task),
        model=assignment.model or thread.choice or None,
        server=thread.server,
        payer=turn.payer if turn.payer != turn.requester else "",
    )
    inbound = Inbound(Address.parse(session_of(task)), f"task:{task.call}", letter, book.owner)
    return Posting(inbound, spawned_by=task.call, title=title_of(assignment.text))
