"""A gateway that is small enough to read: the real page, the real API and a real house with a scripted model, behind a
stand-in for the doors and the WebSocket. It speaks the frames of docs/websocket.md as far as the page needs them.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web
from msgspec import Struct

from everloop.agent import Agent
from everloop.core.errors import EverloopError
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import Media, Part, Text
from everloop.core.people import Role
from everloop.core.ports import Event
from everloop.gateway import api, page

PASSWORD = "correct horse"
ALL = frozenset({"read", "chat", "approve", "admin"})


class Who(Struct, frozen=True):
    user: str
    role: Role = Role.OWNER
    scopes: frozenset[str] = ALL


PEOPLE = {
    "owner": Who("owner"),
    "reader": Who("owner", scopes=frozenset({"read"})),
    "user": Who("ada", Role.USER),
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def recognize(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Whoever names a person is that person: what decides who it is stands elsewhere."""
    name = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if request.path == "/ws" and "visit" in request.cookies:
        name = "owner"
    if who := PEOPLE.get(name):
        request["principal"] = who
    return await handler(request)


class StandIn:
    """One gateway. `cut` breaks every connection, as a network does."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.sockets: set[web.WebSocketResponse] = set()
        self.resumed: list[dict[str, Any]] = []

    def app(self) -> web.Application:
        app = web.Application(middlewares=[recognize])
        app.add_routes([*api.routes(self.agent), *page.routes(), web.get("/ws", self.serve)])
        app.add_routes([web.post(f"/auth/{name}", getattr(self, name)) for name in ("session", "login", "logout")])
        return app

    async def session(self, request: web.Request) -> web.Response:
        if "visit" not in request.cookies:
            return _answer({"error": {"code": "unauthorized", "message": "log in"}}, 401)
        return _answer({"user": "owner", "role": "owner", "scopes": sorted(ALL), "token": "owner"})

    async def login(self, request: web.Request) -> web.Response:
        if (await request.json())["password"] != PASSWORD:
            return _answer({"error": {"code": "login", "message": "That is not the password."}}, 403)
        response = _answer({"user": "owner"})
        response.set_cookie("visit", "yes", httponly=True, samesite="Strict")
        return response

    async def logout(self, request: web.Request) -> web.Response:
        response = _answer({"user": None})
        response.del_cookie("visit")
        return response

    async def cut(self) -> None:
        for socket in [*self.sockets]:
            await socket.close()

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        wire = web.WebSocketResponse()
        await wire.prepare(request)
        self.sockets.add(wire)
        line = _Line(self, wire)
        telling: set[asyncio.Task[None]] = set()
        try:
            async for message in wire:
                await line.take(msgspec.json.decode(message.data), telling)
        finally:
            self.sockets.discard(wire)
            for task in telling:
                task.cancel()
            await asyncio.gather(*telling, return_exceptions=True)
        return wire


class _Line:
    """One connection."""

    def __init__(self, gateway: StandIn, wire: web.WebSocketResponse) -> None:
        self._gateway = gateway
        self._agent = gateway.agent
        self._wire = wire
        self._watched: set[str] = set()

    async def take(self, frame: dict[str, Any], telling: set[asyncio.Task[None]]) -> None:
        session = frame["session"]
        match frame["type"]:
            case "resume":
                self._gateway.resumed.append(frame)
                row = await self._agent.store.session(session)
                if row:
                    await self._put("history_result", session, row.id, row.head, entries=[])
                    self._watch(session, row.id, telling)
            case "message":
                await self._say(session, frame, telling)
            case "stop":
                await self._agent.tell(self._letter(session, "/stop", "stop"))

    async def _say(self, session: str, frame: dict[str, Any], telling: set[asyncio.Task[None]]) -> None:
        inbound = self._letter(session, frame["content"], frame["id"], frame.get("files", []))
        try:
            receipt = await self._agent._inbox.take(inbound, express=False)
        except EverloopError as error:
            await self._put("error", session, None, None, id=frame["id"], code="refused", content=str(error))
            return
        await self._put("ack", session, receipt.thread, 0, id=frame["id"])
        self._watch(session, receipt.thread, telling)
        self._agent._inbox.wake(receipt, inbound)
        if receipt.reply is not None:
            await self._put("response", session, receipt.thread, 0, id=frame["id"], content=receipt.reply, files=[])

    def _letter(self, session: str, text: str, id: str, files: Sequence[dict[str, Any]] = ()) -> Inbound:
        parts: list[Part] = [Text(text)] if text else []
        parts += [Media(each["file"], each["mime"], each["name"], "owner") for each in files]
        return Inbound(Address.parse(session), f"ws:{session}:{id}", Said(tuple(parts), "owner", session))

    def _watch(self, session: str, thread: str, telling: set[asyncio.Task[None]]) -> None:
        if thread not in self._watched:
            self._watched.add(thread)
            telling.add(asyncio.ensure_future(self._tell(session, thread)))

    async def _tell(self, session: str, thread: str) -> None:
        with self._agent._bus.subscribe(thread) as events:
            async for event in events:
                await self._pass_on(session, event)

    async def _pass_on(self, session: str, event: Event) -> None:
        where, data = (session, event.thread, event.seq), event.data
        match event.name:
            case "stream_start":
                await self._put("stream_start", *where, msg=f"{event.thread}:{data['message']}")
            case "stream_chunk":
                told = {"delta": data["text"], "reasoning": data["reasoning"]}
                await self._put("stream_chunk", *where, msg=f"{event.thread}:{event.seq}", n=event.n, **told)
            case "stream_end":
                await self._put("stream_end", *where, msg=f"{event.thread}:{data['message']}", kept=data["kept"])
            case "approval_asked":
                await self._put("approval", *where, approval=data["approvals"][0].id)
            case name:
                await self._put("event", *where, category="agent", event=name, data={})

    async def _put(self, type: str, session: str, thread: str | None, seq: int | None, **fields: object) -> None:
        body = {"type": type, "session": session, "thread": thread, "seq": seq, "id": None, **fields}
        await self._wire.send_str(msgspec.json.encode(body).decode())


def _answer(body: object, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), status=status, content_type="application/json")


@asynccontextmanager
async def served(gateway: StandIn, port: int = 0) -> AsyncIterator[str]:
    """The address of the gateway while it runs."""
    runner = web.AppRunner(gateway.app(), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
