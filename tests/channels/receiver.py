"""A program that uses webhooks over real sockets: it posts, checks what it is sent, and drops the ids that it knows."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from everloop.channels.webhook.codec import check, signature

SECRET = "a-secret-for-webhooks-0123456789"


def headers_of(id: str, body: bytes, secret: str = SECRET) -> dict[str, str]:
    now = str(int(time.time()))
    made = signature(secret.encode(), id, now, body)
    return {"webhook-id": id, "webhook-timestamp": now, "webhook-signature": made}


def message(text: str, chat: str = "room", author: str = "anna", **more: Any) -> bytes:
    return json.dumps({"chat": chat, "author": author, "text": text, **more}).encode()


class Program:
    """What it was sent, by id, and how often. `judge` says with which status a post is answered."""

    def __init__(self, judge: Callable[[int], int] = lambda posts: 200) -> None:
        self.url = ""
        self.taken: dict[str, dict[str, Any]] = {}
        self.posts: Counter[str] = Counter()
        self._judge = judge
        self._more = asyncio.Condition()

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Program"]:
        app = web.Application()
        app.router.add_post("/answers", self._take)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/answers"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        sent = {name.lower(): value for name, value in request.headers.items()}
        id = check(sent, body, [SECRET.encode()], time.time())
        self.posts[id] += 1
        status = self._judge(self.posts.total())
        if status < 300:
            async with self._more:
                assert self.taken.setdefault(id, json.loads(body)) == json.loads(body)
                self._more.notify_all()
        return web.Response(status=status)

    async def answered(self, events: set[str]) -> None:
        """Wait until each of these messages has an answer."""
        async with self._more:
            await self._more.wait_for(lambda: events <= {taken["in_reply_to"] for taken in self.taken.values()})

    async def has(self, posts: int) -> None:
        async with self._more:
            await self._more.wait_for(lambda: len(self.taken) >= posts)


async def post(url: str, id: str, body: bytes) -> int:
    """Until it was acknowledged, as whoever sends webhooks has to."""
    while True:
        try:
            async with (
                aiohttp.ClientSession() as client,
                client.post(f"{url}/hooks/webhook", data=body, headers=headers_of(id, body)) as answer,
            ):
                if answer.status in (200, 202):
                    return answer.status
                assert answer.status == 503, await answer.text()
        except aiohttp.ClientError:
            pass
        await asyncio.sleep(0.05)
