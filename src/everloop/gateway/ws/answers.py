"""That each letter of a client is answered: also when no event tells it, because another process has driven the turn,
because it was over long ago, or because it failed."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Struct

from ...core.log import MANY
from ...core.mail import Inbound
from ...core.turn import Finished
from ...errors import EverloopError, ThreadGone
from ...ports.rows import Receipt
from ..file_links import links_of
from ..http.errors import refused_by
from ..ports import GatewayAgent
from .feed import ClientFeed, PendingReplies
from .frames import Where, frame

LATE = 1.0  # seconds that an answer waits for what was said before it


class SentLetter(Struct, frozen=True):
    """A letter of a client that is committed, and what the client calls it."""

    receipt: Receipt
    inbound: Inbound
    session: str
    id: str


class AwaitedAnswers:
    """`put` takes frames in their order, and `begin` lets something run for as long as the client is there."""

    def __init__(
        self,
        agent: GatewayAgent,
        feed: ClientFeed,
        pending: PendingReplies,
        put: Callable[..., None],
        begin: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._agent = agent
        self._feed = feed
        self._pending = pending
        self._put = put
        self._begin = begin

    def follow(self, sent: SentLetter, ending: asyncio.Future[Finished] | None = None) -> None:
        """`ending` is that of its turn where that has begun here: then nobody has to wait for it."""
        self._pending.follow(sent.receipt.id, sent.id)
        if ending is None:
            self._begin(self._wait(sent, None))
        else:
            ending.add_done_callback(partial(self._see_to, sent))

    async def where(self, session: str, thread: str) -> Where:
        try:
            return self._feed.place(session, thread, (await self._agent.store.open(thread, MANY)).row.head)
        except ThreadGone:  # a letter that comes again after its conversation was deleted
            return Where(session)

    def _see_to(self, sent: SentLetter, ending: asyncio.Future[Finished]) -> None:
        """A turn is over. Mostly an event has said so by now; and of one who has gone nothing is pending."""
        if sent.receipt.id in self._pending:
            self._begin(self._wait(sent, ending))

    async def _wait(self, sent: SentLetter, ending: asyncio.Future[Finished] | None) -> None:
        receipt = sent.receipt
        told = self._pending.told(receipt.id)
        ended = not receipt.fresh and await self._agent.store.ended(receipt.id)
        answer, code = await self._outcome(sent, ending)
        if not ended and not told.is_set():  # the event says the same, in its place after all that was said before
            with suppress(TimeoutError):
                async with asyncio.timeout(LATE):
                    await told.wait()
        id = self._pending.done(receipt.id)
        if id is not None and code != "closed":  # closed: it goes on at the next start, and so does the client
            self._put(lambda: self._recall(sent, answer, code))

    async def _outcome(self, sent: SentLetter, ending: asyncio.Future[Finished] | None) -> tuple[dict[str, Any], str]:
        """What the answer is, or the sentence that stands for it and the error's code."""
        try:
            answer = await self._agent.outcome(sent.receipt, sent.inbound, ending)
            files = links_of(sent.receipt.thread, answer.files)
            return {"content": answer.content, "files": files, "unknown": answer.unknown}, ""
        except EverloopError as error:
            return {"content": str(error)}, refused_by(error).code

    async def _recall(self, sent: SentLetter, told: dict[str, Any], code: str) -> dict[str, Any]:
        where, id = await self.where(sent.session, sent.receipt.thread), sent.id
        return frame("error", where, id=id, code=code, **told) if code else frame("response", where, id=id, **told)
