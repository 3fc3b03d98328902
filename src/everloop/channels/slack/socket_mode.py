"""Socket Mode: Slack tells its events over a WebSocket that we open, and tells again what is not acknowledged.

Slack asks for a new connection every few hours. The next one is opened before the one that is to go is left, and what
has come over each is acknowledged on it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from ...errors import ChannelDown, ChannelRefused, ProviderError, SettingsError, SocketClosed
from ...ports import SocketTerms, WebSocket, WebSockets
from ..wellformed import read_json
from .api import SlackApi
from .codec import chat_of

_log = logging.getLogger("everloop.channels.slack")

MOST = 256  # envelopes that are taken in at the same time; then the network waits
HELLO = 60.0  # seconds until it must have come
GRACE = 3.0  # seconds for what has come over a connection that is left
SHORT, SHORTS = 5.0, 3  # so many connections in a row may end within so many seconds
_TERMS = SocketTerms(max_bytes=4_000_000, silence=60.0)
_OFF = "Socket Mode is switched off for the app: switch it on at https://api.slack.com/apps, under Socket Mode"

Take = Callable[[str, Mapping[str, Any]], Awaitable[None]]


class _Link:
    """One connection, from its opening to its end."""

    def __init__(self) -> None:
        self.ready = asyncio.Event()  # hello has come
        self.fading = asyncio.Event()  # another is wanted in its place
        self.wire: WebSocket | None = None
        self.taking: set[asyncio.Task[None]] = set()

    async def leave(self) -> None:
        if self.taking:
            await asyncio.wait([*self.taking], timeout=GRACE)
        if self.wire:
            await self.wire.close()


class SlackSocketMode:
    """`take` commits what an envelope says (its type, its payload); what it raises ends `run`."""

    def __init__(self, api: SlackApi, http: object, take: Take) -> None:
        if not isinstance(http, WebSockets):
            raise SettingsError("channels.slack needs a network with WebSockets")
        self._api = api
        self._http = http
        self._take = take
        self._room = asyncio.Semaphore(MOST)
        self._last: dict[str, asyncio.Task[None]] = {}  # of each chat

    async def run(self, beside: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do something `beside`, once it listens. Raises ChannelDown, ChannelRefused, and what these raise."""
        try:
            async with asyncio.TaskGroup() as group:
                await self._keep_linked(group, beside)
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors

    async def _keep_linked(self, group: asyncio.TaskGroup, beside: Callable[[], Coroutine[Any, Any, None]]) -> None:
        loop, shorts, before = asyncio.get_running_loop(), 0, None
        while True:
            link, began = _Link(), loop.time()
            group.create_task(self._listen(link, group))
            await _hello(link)
            group.create_task(before.leave() if before else beside())
            await link.fading.wait()
            shorts = shorts + 1 if loop.time() - began < SHORT else 0
            if shorts > SHORTS:
                raise ChannelDown("Slack ends each connection as soon as it is open")
            before = link

    async def _listen(self, link: _Link, group: asyncio.TaskGroup) -> None:
        url = await self._api.ask_for_socket()
        try:
            async with self._http.websocket(url, terms=_TERMS, named_by=self._api.url) as wire:
                link.wire = wire
                async for message in wire:
                    await self._hear(link, _decoded(message), group)
        except SocketClosed as error:
            _log.info("Slack's connection has ended: %s", error)
        except ProviderError as error:
            raise ChannelDown(f"Slack's socket does not open: {error}") from error
        if not link.ready.is_set():
            raise ChannelDown("Slack has closed the socket before it said hello")
        link.fading.set()

    async def _hear(self, link: _Link, envelope: Mapping[str, Any], group: asyncio.TaskGroup) -> None:
        match envelope.get("type"):
            case "hello":
                self._note_others(envelope)
                link.ready.set()
            case "disconnect" if envelope.get("reason") == "link_disabled":
                raise ChannelRefused(_OFF)
            case "disconnect" if envelope.get("reason") == "too_many_websockets":
                raise ChannelDown("Slack has too many connections of this app: another program uses its token, too")
            case "disconnect":
                link.fading.set()
            case _ if isinstance(envelope.get("envelope_id"), str):
                await self._room.acquire()
                self._begin(link, envelope, group)

    def _begin(self, link: _Link, envelope: Mapping[str, Any], group: asyncio.TaskGroup) -> None:
        """Chats side by side, each in its order: a file that takes its time keeps nobody else waiting."""
        payload = envelope.get("payload")
        payload = payload if isinstance(payload, dict) else {}
        chat = chat_of(payload)
        task = group.create_task(self._work(link, envelope, payload, self._last.get(chat)))
        self._last[chat] = task
        link.taking.add(task)

        def forget(done: asyncio.Task[None]) -> None:
            link.taking.discard(done)
            self._room.release()
            if self._last.get(chat) is done:
                del self._last[chat]

        task.add_done_callback(forget)

    async def _work(
        self, link: _Link, envelope: Mapping[str, Any], payload: Mapping[str, Any], before: asyncio.Task[None] | None
    ) -> None:
        if before:
            await asyncio.wait([before])
        await self._take(str(envelope.get("type")), payload)
        if link.wire:
            with suppress(SocketClosed):  # then Slack tells it again, and it is known
                await link.wire.send(msgspec.json.encode({"envelope_id": envelope["envelope_id"]}).decode())

    def _note_others(self, hello: Mapping[str, Any]) -> None:
        connections = hello.get("num_connections")
        if isinstance(connections, int) and connections > 2:
            _log.warning(
                "Slack has %d connections of this app, and tells each message to one of them: "
                "another program may be using its token",
                connections,
            )


async def _hello(link: _Link) -> None:
    try:
        async with asyncio.timeout(HELLO):
            await link.ready.wait()
    except TimeoutError as error:
        raise ChannelDown("Slack's socket is open, and silent") from error


def _decoded(message: str | bytes) -> Mapping[str, Any]:
    try:
        decoded = read_json(message)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return decoded if isinstance(decoded, dict) else {}
