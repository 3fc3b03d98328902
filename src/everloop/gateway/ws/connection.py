"""`/ws`: one connection, over which a client speaks in any number of sessions and watches them.

What makes it dependable: a message is acknowledged after its commit, its event in the inbox is the client's own id, and
every frame tells the durable position, so that a client that comes back is given what it has missed and nothing twice.
"""

import asyncio
import secrets
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from aiohttp import web
from msgspec import Struct

from ...core.log import MANY, ModelFailed, ModelSaid, UserSaid
from ...core.mail import Address, Inbound, Said
from ...core.message import Part, Text
from ...core.people import Role
from ...errors import EverloopError
from ...ports.channel import traits_of
from ...ports.conversation import Written
from ...ports.events import Event
from ...ports.rows import Receipt, ThreadRow
from ...readings.commands import COMMANDS
from ..access.auth import Auth
from ..access.principal import Principal, lacking, principal_of
from ..http.errors import Refused, noted, refused_by
from ..metrics import FRAMES_IN, Metrics
from ..ports import GatewayAgent
from .answers import AwaitedAnswers, SentLetter
from .feed import OPEN, ClientFeed, PendingReplies
from .frames import (
    NEEDS,
    NOWHERE,
    ApproveFrame,
    HistoryFrame,
    MessageFrame,
    ResumeFrame,
    StatusFrame,
    StopFrame,
    WatchFrame,
    Where,
    approval_frame,
    entry_of,
    frame,
    read,
)
from .history import Portion, ReadSoFar, history_frame, portions
from .hub import Hub
from .send_queue import ClientSocket, SendQueue
from .user_view import PAGE, UserView

WATCHED = 200  # sessions
SLOW = 30.0  # seconds that one who is parted with because it reads slowly has to take note of it


class ConnectionContext(Struct, frozen=True):
    """What all connections share."""

    agent: GatewayAgent
    hub: Hub
    auth: Auth
    metrics: Metrics
    version: str


class Peers(Protocol):
    """What a connection knows of those beside it."""

    draining: bool  # no further messages are taken

    def __len__(self) -> int: ...

    def judged(self) -> dict[str, Principal | None]:
        """The credentials that were looked at in this round of the event loop, by what was shown."""
        ...


class ClientConnection:
    def __init__(
        self, context: ConnectionContext, request: web.Request, wire: web.WebSocketResponse, all: Peers
    ) -> None:
        self._context = context
        self._agent = context.agent
        self._request = request
        headers = request.headers
        self._shown = f"{headers.get('Authorization', '')}\n{headers.get('Cookie', '')}"
        self._know(principal_of(request))
        self._wire = ClientSocket(request, wire, context.metrics)
        self.close = self._wire.close
        self._all = all
        self._queue = SendQueue(self._wire.send, self.lose, self._wire.write)
        self._put = self._queue.put
        self._watched: set[str] = set()
        self._pending = PendingReplies()
        self._feed = ClientFeed(context.agent, context.hub, self._pending, self._put, self.lose)
        self._answers = AwaitedAnswers(context.agent, self._feed, self._pending, self._put, self._begin)
        self.hear = self._feed.hear
        self._lost = False
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until the client leaves, or is made to."""
        try:
            async with self._group:
                self._begin(self._send())
                try:
                    async for message in self._wire.wire:
                        await self._take(message)
                finally:
                    self._pending.forget()  # nothing begins any more
                for task in tuple(self._tasks):
                    task.cancel()
        finally:
            self._context.hub.unfollow(self)
            for session in self._watched:
                self._context.hub.leave(session, self)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self) -> None:
        try:
            await self._queue.run()
        except (ConnectionError, RuntimeError):  # it has gone; reading tells
            await self._wire.wire.close()

    async def check(self, judged: dict[str, Principal | None]) -> bool:
        """Whether the credentials still hold, or it is closed; `judged` are those that were looked at in this round."""
        if self._shown not in judged:
            judged[self._shown] = await self._context.auth.authenticate(self._request)
        principal = judged[self._shown]
        if principal is None:
            await self.close(1008, "these credentials hold no longer")
            return False
        if principal != self._principal:
            self._know(principal)
        return True

    def _know(self, principal: Principal) -> None:
        self._principal = principal
        self.user = principal.user
        self._view = UserView(self._agent, self._context.hub, principal)

    def lose(self) -> None:
        """Part with a client that is too slow: what waits for it is thrown away, and it is told if it listens."""
        if self._lost:
            return
        self._lost = True
        self._context.metrics.count("ws_slow_total")
        self._queue.drop()
        parting = self.close(1013, "too slow; connect again and resume", SLOW)
        try:
            self._begin(parting)
        except RuntimeError:  # it is leaving already
            parting.close()

    async def _take(self, message: Any) -> None:
        self._context.metrics.count_frames(1, FRAMES_IN)
        if self._queue.is_full:
            await self._queue.room()  # whoever does not read is not read
        asked: Any = None
        try:
            if message.type is not web.WSMsgType.TEXT:
                raise Refused(400, "malformed", "frames are JSON objects in text")
            asked = _parsed(message.data)
            if await self.check(self._all.judged()):
                self._principal.need(NEEDS[type(asked)])
                await self._answer(asked)
        except Refused as refused:
            self._complain(asked, refused)
        except EverloopError as error:
            self._complain(asked, noted(refused_by(error), error, getattr(asked, "session", None)))
        except Exception as error:  # the border to what a stranger has sent: the connection stays
            fault = Refused(500, "internal", "something went wrong here")
            self._complain(asked, noted(fault, error, getattr(asked, "session", None)))

    async def _answer(self, asked: Any) -> None:
        match asked:
            case MessageFrame():
                await self._say(asked)
            case ResumeFrame():
                await self._resume(asked)
            case StopFrame():
                await self._stop(asked)
            case ApproveFrame():
                await self._approve(asked)
            case StatusFrame():
                await self._status(asked)
            case HistoryFrame():
                await self._history(asked)
            case WatchFrame():
                self._context.hub.follow(self)

    def _complain(self, asked: Any, refused: Refused) -> None:
        self._context.metrics.count("ws_errors_total", code=refused.code)
        where = Where(getattr(asked, "session", None))
        self._put(frame("error", where, id=getattr(asked, "id", None), code=refused.code, content=refused.message))

    async def _say(self, asked: MessageFrame) -> None:
        watched = asked.session in self._watched
        row = None if watched else await self._row_to_say(asked.session)
        if self._all.draining:
            raise Refused(503, "draining", "the gateway stops; send it again when it is back")
        if len(self._pending) >= OPEN:
            raise Refused(429, "busy", f"{OPEN} messages wait for their answers; wait for one of them")
        inbound = await self._inbound(asked)
        assert isinstance(inbound.letter, Said)
        if scope := lacking(self._principal, inbound.letter):
            self._principal.need(scope)
        self._feed.hold(asked.session)  # what happens in between is told after it was acknowledged
        try:
            if not watched:
                self._watch(asked.session)
                if row is not None:
                    self._feed.show_draft(asked.session, row.id)
            if not await self._begin_turn(asked, inbound):
                if watched:
                    await self._row_to_say(asked.session)
                await self._post(asked, inbound)
        finally:
            self._feed.release(asked.session)

    async def _row_to_say(self, session: str) -> ThreadRow | None:
        """Where the session is, for whoever may say something there; None if they may begin it. Raises Refused."""
        row = await self._view.row(session)
        if row is None:
            self._principal.check_begins(traits_of(session, self._agent.traits))
        return row

    async def _begin_turn(self, asked: MessageFrame, inbound: Inbound) -> bool:
        """Whether the letter begins a turn at once. That the session is there, and whose it is, the commit looks at."""
        begun = await self._agent.begin(inbound)
        if begun is None:
            return False
        receipt, ending = begun
        self._context.hub.note(receipt.thread, asked.session, self._principal.user)
        self._put(frame("ack", self._feed.place(asked.session, receipt.thread, receipt.begun), id=asked.id))
        self._answers.follow(SentLetter(receipt, inbound, asked.session, asked.id), ending)
        return True

    async def _post(self, asked: MessageFrame, inbound: Inbound) -> None:
        receipt = await self._agent.post(inbound)
        self._context.hub.note(receipt.thread, asked.session, self._principal.user)
        where = await self._answers.where(asked.session, receipt.thread)
        self._put(frame("ack", where, id=asked.id))
        if receipt.reply is None:
            self._answers.follow(SentLetter(receipt, inbound, asked.session, asked.id))
            return
        self._agent.wake(receipt, inbound)
        self._put(frame("response", where, id=asked.id, content=receipt.reply, files=[], unknown=[]))
        await self._agent.acknowledge([f"command:{receipt.id}"])

    async def _inbound(self, asked: MessageFrame) -> Inbound:
        parts: list[Part] = [Text(asked.content)] if asked.content.strip() else []
        parts += [await self._view.part(file) for file in asked.files]
        model = await self._chosen(asked.model) if asked.model else None
        said = Said(tuple(parts), self._principal.user, asked.session, model=model)
        event = f"{self._view.prefix(asked.session)}{asked.id}"
        return Inbound(Address.parse(asked.session), event, said, self._principal.user)

    async def _chosen(self, name: str) -> str:
        """A model that is chosen with a message, by whoever may say `/model`. Raises ModelMissing."""
        right = COMMANDS["/model"].right_to(name)
        if right.scope:
            self._principal.need(right.scope)
        if self._principal.role < right.least:
            raise Refused(403, "forbidden", f"Choosing a model needs the role {right.least.name.lower()}.")
        return await self._agent.find_model("" if name == "default" else name)

    async def _stop(self, asked: StopFrame) -> None:
        row = await self._view.row(asked.session)
        if row is None:
            raise Refused(404, "no_session", "there is nothing to stop: nothing has been said in this session")
        said = Said((Text("/stop"),), self._principal.user, asked.session)
        event = f"{self._view.prefix(asked.session)}{asked.id or secrets.token_hex(8)}"
        inbound = Inbound(Address.parse(asked.session), event, said, self._principal.user)
        receipt = await self._agent.post(inbound)
        self._agent.wake(receipt, inbound)
        self._put(frame("ack", await self._answers.where(asked.session, receipt.thread), id=asked.id))
        await self._agent.acknowledge([f"command:{receipt.id}"])

    async def _approve(self, asked: ApproveFrame) -> None:
        waiting = [each for each in await self._agent.approvals() if each.id == asked.approval]
        if not waiting:
            raise Refused(404, "no_approval", "nothing of this name waits for permission; it may have been answered")
        await self._view.row(waiting[0].session)
        allowance = asked.ahead.allowance if asked.ahead else None
        decided = await self._agent.decide(asked.approval, asked.allow, self._principal.user, allowance)
        row = await self._view.row(decided.session)
        where = Where(decided.session, row.id, row.head) if row else NOWHERE
        self._put(frame("ack", where, id=asked.id, approval=asked.approval))

    async def _status(self, asked: StatusFrame) -> None:
        row = await self._view.row(asked.session) if asked.session else None
        model = self._agent.model if self._principal.role >= Role.USER else ""  # as in /api/me
        told = {"version": self._context.version, "model": model, "user": self._principal.user}
        now = {"uptime": self._context.metrics.uptime, "connections": len(self._all), "draining": self._all.draining}
        where = Where(asked.session, row.id, row.head) if row else NOWHERE
        running = self._agent.store.running
        self._put(frame("status_result", where, **told, **now, running=running, state=row.state if row else None))

    async def _history(self, asked: HistoryFrame) -> None:
        row = await self._view.row(asked.session)
        if row is not None and asked.thread:
            row = await self._view.thread(asked.session, asked.thread)
        if row is None:
            self._put(frame("history_result", Where(asked.session), entries=[], more=False))
            return
        before = min(asked.before if asked.before is not None else MANY, row.head + 1)
        after = max(0, before - 1 - asked.limit)
        entries = await self._agent.store.history(row.id, after, before - 1 - after)
        *earlier, last = await self._portions(asked.session, row.id, entries)
        where = Where(asked.session, row.id, row.head)
        self._put(history_frame(where, last, more=after > 0 or bool(earlier)))

    async def _portions(self, session: str, thread: str, entries: Sequence[Written]) -> list[Portion]:
        """Entries as they are told, in parts that are not too large for one frame."""
        mails = [w.entry.mail for w in entries if isinstance(w.entry, UserSaid) and w.entry.mail]
        ids = await self._view.own(mails, session)
        return portions([entry_of(thread, written, ids) for written in entries])

    async def _resume(self, asked: ResumeFrame) -> None:
        session, row = asked.session, await self._view.row(asked.session)
        named = asked.thread if row and asked.thread != row.id else None
        old = await self._view.thread(session, named) if named else None
        self._feed.hold(session)
        try:
            self._watch(session)
            if row is None:
                self._put(frame("history_result", Where(session), entries=[], more=False))
                return
            if old is not None:
                await self._read_on(session, old.id, min(asked.after, old.head), last=False)
            mine = await self._unfinished(session, row.id)  # before the log is read: what ends meanwhile is mine, too
            after = 0 if old else min(asked.after, row.head)
            head, answered = await self._read_on(session, row.id, after, last=True)
            asking = [each for each in await self._agent.approvals(session) if each.session == session]
            while self._feed.has_missed(session, row.id, max(after, answered)):
                before = head
                head, later = await self._read_on(session, row.id, before, last=True)
                answered = max(answered, later)
                if head == before:
                    break
            reading = ReadSoFar(head, max(after, answered), frozenset(each.id for each in asking))
            self._feed.has_read(row.id, reading)
            self._take_up(session, row.id, mine)
            self._put(*(approval_frame(Where(session, row.id, head), each) for each in asking))
            self._feed.show_draft(session, row.id, max(after, answered))
            self._feed.release(session, drafted=row.id)
        finally:
            self._feed.forget_held(session)

    async def _read_on(self, session: str, thread: str, after: int, *, last: bool) -> tuple[int, int]:
        """Send what follows an entry, as far as it is there; says where that ends, and where the last answer is."""
        answered = 0
        while True:
            await self._queue.room()
            entries = await self._agent.store.history(thread, after, PAGE)
            after = entries[-1].seq if entries else after
            where = Where(session, thread, after)
            more = len(entries) == PAGE
            *earlier, rest = await self._portions(session, thread, entries)
            for part in earlier:
                self._put(history_frame(Where(session, thread, part.entries[-1]["seq"]), part, more=True))
                await self._queue.room()
            self._put(history_frame(where, rest, more=more or not last))
            answered = max([answered, *(w.seq for w in entries if isinstance(w.entry, ModelSaid | ModelFailed))])
            if not more:
                self._feed.has_come_to(thread, after)
                return after, answered

    async def _unfinished(self, session: str, thread: str) -> dict[int, str]:
        """Letters of this user whose turns are not over, and what their client calls them."""
        mails = [mail for mail in await self._agent.store.unfinished(thread) if mail not in self._pending]
        return await self._view.own(mails, session)

    def _take_up(self, session: str, thread: str, mine: Mapping[int, str]) -> None:
        """Turns that an earlier connection of this user has begun get their answers here."""
        for mail, id in mine.items():
            letter = Inbound(Address.parse(session), "", Said((), self._principal.user, session))
            self._answers.follow(SentLetter(Receipt(mail, thread, fresh=False), letter, session, id))

    def _watch(self, session: str) -> None:
        if len(self._watched) >= WATCHED and session not in self._watched:
            raise Refused(429, "busy", f"one connection watches at most {WATCHED} sessions; open another")
        self._watched.add(session)
        self._context.hub.watch(session, self)

    @property
    def answers(self) -> bool:
        """Whether it is told of the questions of all: a user is asked about their own alone."""
        return self._principal.role >= Role.ADMIN and self._principal.may("approve") and self._principal.may("read")

    def hear_news(self, session: str, event: Event) -> None:
        self._put(frame("news", Where(session, event.thread, event.seq), event=event.name))


def _parsed(text: str) -> Any:
    try:
        return read(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise Refused(400, "malformed", f"this frame cannot be read: {error}") from None
