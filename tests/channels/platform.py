"""What stands at the other end of webhooks: it signs what it posts, checks what it is sent, and drops what it knows."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from everloop.channels.webhook import Webhook
from everloop.channels.webhook.codec import check, signature
from everloop.errors import HostHungUp
from everloop.ports.channel import HookAnswer, HookRequest
from everloop.testing import Trouble
from everloop.testing.conformance import Platform

SECRET = b"a secret of thirty-two bytes....."
NOW = 1_790_000_000.0


def signed(body: bytes, id: str = "e1", secret: bytes = SECRET, at: float = NOW, **headers: str) -> HookRequest:
    stamp = str(int(at))
    sent = {"webhook-id": id, "webhook-timestamp": stamp, "webhook-signature": signature(secret, id, stamp, body)}
    return HookRequest("POST", {**sent, **{name.replace("_", "-"): value for name, value in headers.items()}}, body)


def said(text: str, **more: object) -> bytes:
    return json.dumps({"chat": "room", "author": "anna", "text": text, **more}).encode()


class Answer:
    def __init__(self, status: int, headers: Mapping[str, str] = {}) -> None:
        self.status = status
        self.headers = headers

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b""

    async def read(self, limit: int = 1_000_000) -> bytes:
        return b""


class Receiver(Platform):
    """The program of somebody who uses webhooks; it is also the network that leads there."""

    def __init__(self, status: int = 200, headers: Mapping[str, str] = {}) -> None:
        super().__init__()
        self.bodies: list[dict[str, object]] = []
        self._answer = Answer(status, headers)

    def channel(self) -> Webhook:
        return Webhook("https://bot.example/hook", [SECRET], self, lambda: NOW)

    async def post(self, request: HookRequest) -> HookAnswer:
        (hook,) = self.hooks
        return await hook.answer(request)

    async def say(self, event: str, text: str) -> None:
        answer = await self.post(signed(said(text), event))
        if answer.status == 202:
            self.acknowledged.append(event)

    def forged(self) -> Sequence[HookRequest]:
        body = said("give me all")
        good = signed(body).headers
        right = good["webhook-signature"]
        return [
            HookRequest("POST", {}, body),
            signed(body, secret=b"another secret of the same length"),
            signed(body, secret=b""),
            signed(body, at=NOW - 301),
            signed(body, at=NOW + 301),
            HookRequest("POST", good, body + b" "),
            HookRequest("POST", {**good, "webhook-id": "e2"}, body),
            HookRequest("POST", {**good, "webhook-timestamp": str(int(NOW) + 1)}, body),
            *(
                HookRequest("POST", {**good, "webhook-signature": wrong}, body)
                for wrong in (
                    "",
                    "v1,",
                    right[:-4],
                    right.lower(),
                    right.replace("v1,", "v2,"),
                    right[3:],
                    " ".join(["v1,x"] * 10 + [right]),
                    "ü",
                    "\udcff",
                )
            ),
            *(
                HookRequest("POST", {**good, "webhook-timestamp": wrong}, body)
                for wrong in ("", "-1", "nan", "1e9", "１７９", f"{NOW}", f" {int(NOW)}", f"{int(NOW)}\n")
            ),
            signed(body, id=""),
            signed(body, id="e.1"),
            signed(body, id="e" * 201),
            signed(body, id="e1\n"),
        ]

    @asynccontextmanager
    async def request(
        self, method: str, url: str, *, body: bytes = b"", headers: Mapping[str, str] = {}, **_: object
    ) -> AsyncIterator[Answer]:
        assert (method, url) == ("POST", "https://bot.example/hook")
        id = check(headers, body, [SECRET], NOW)
        self.bodies.append(json.loads(body))
        trouble = self.receive(id, json.loads(body)["text"]) if self._answer.status == 200 else None
        if trouble is Trouble.ACK_LOST:
            raise HostHungUp("the receiver hung up")
        if trouble is Trouble.DOWN:
            yield Answer(503)
        elif trouble is Trouble.LIMITED:
            yield Answer(429, {"Retry-After": f"{self.retry_after:g}"})
        else:
            yield self._answer

    async def close(self) -> None:
        pass
