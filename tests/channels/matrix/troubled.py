"""What stands between the channel and the homeserver: it lets trouble happen, and sees what passes."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

import aiohttp
from aiohttp import web
from yarl import URL

Judge = Callable[[str, str, bytes], web.Response | None]
REDACT = re.compile(r"/rooms/([^/]+)/redact/([^/?]+)/")
REACT = re.compile(r"/rooms/([^/]+)/send/m\.reaction/([^/?]+)")
UPLOAD = re.compile(r"/(media)/v3/(upload)")
SEND = re.compile(r"/rooms/([^/]+)/send/m\.room\.message/([^/?]+)")
RECEIPT = re.compile(r"/rooms/([^/]+)/receipt/m\.read/([^/?]+)")


async def _goes_on(path: str, body: bytes, status: int, answer: bytes) -> bool:
    return False


class Between:
    """`before` may answer in the homeserver's place; `after` sees its answer, and says whether the line is cut then.
    The events of `again` are told once more with the next sync."""

    def __init__(self, homeserver: str) -> None:
        self.url = ""
        self.asked: list[tuple[str, str]] = []
        self.again: list[tuple[str, dict[str, Any]]] = []
        self.told: dict[str, tuple[str, dict[str, Any]]] = {}  # by event
        self.before: Judge = lambda method, path, body: None
        self.after: Callable[[str, bytes, int, bytes], Awaitable[bool]] = _goes_on
        self.rewrite: Callable[[str], str] = str
        self._homeserver = homeserver

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Between"]:
        app = web.Application(client_max_size=10_000_000)
        app.router.add_route("*", "/{path:.*}", self._pass)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with aiohttp.ClientSession() as self._client:
            try:
                yield self
            finally:
                await runner.cleanup()

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        path, body = request.raw_path, await request.read()
        self.asked.append((request.method, path))
        if answer := self.before(request.method, path, body):
            return answer
        headers = {name: request.headers[name] for name in ("Authorization", "Content-Type") if name in request.headers}
        url = URL(self._homeserver + self.rewrite(path), encoded=True)
        async with self._client.request(request.method, url, data=body or None, headers=headers) as answered:
            data, status, kind = await answered.read(), answered.status, answered.headers.get("Content-Type", "")
        if "/sync?" in path and status == 200:
            data = self._repeated(json.loads(data))
        if await self.after(path, body, status, data):
            assert request.transport is not None
            request.transport.abort()
        return web.Response(status=status, body=data, headers={"Content-Type": kind})

    def _repeated(self, synced: dict[str, Any]) -> bytes:
        for room, info in synced.get("rooms", {}).get("join", {}).items():
            for event in info["timeline"]["events"]:
                self.told[event["event_id"]] = room, event
        again, self.again = self.again, []
        for room, event in again:
            rooms = synced.setdefault("rooms", {}).setdefault("join", {})
            info = rooms.setdefault(room, {"timeline": {"events": [], "limited": False, "prev_batch": "x"}})
            info["timeline"]["events"].insert(0, event)
        return json.dumps(synced).encode()


def named_in(pattern: re.Pattern[str], path: str) -> tuple[str, str] | None:
    found = pattern.search(path)
    return (unquote(found[1]), unquote(found[2])) if found else None
