"""The fake Telegram as the platform of the conformance suite: fetched from, or calling."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

from everloop.channels.telegram import check_settings, open_channel
from everloop.channels.telegram.hook import HEADER, secret_from
from everloop.channels.telegram.wire import Telegram
from everloop.net.trusted import TrustedHttp
from everloop.ports import Channel
from everloop.ports.channel import HookRequest
from everloop.testing import Trouble
from everloop.testing.conformance import Platform
from everloop.testing.telegram_server import ANNA, Spoiled, TelegramServer

GROUP = {"id": -1001, "type": "supergroup", "title": "Friends"}
TOKEN = "123456:sk-canary-of-a-bot"  # which the whole suite looks for: it is told nowhere
BERT = {"id": 1002, "is_bot": False, "first_name": "Bert"}


class TelegramStand(Platform):
    resumes = True
    settings: Mapping[str, Any] = MappingProxyType({"mode": "polling"})

    chat: Mapping[str, Any] = MappingProxyType({"id": ANNA["id"], "type": "private", "first_name": "Anna"})

    def __init__(self, server: TelegramServer, http: TrustedHttp) -> None:
        super().__init__()
        self.server = server
        self._http = http
        self._messages: dict[str, dict[str, Any]] = {}  # by event
        self._events: dict[int, str] = {}  # by update

    @property
    def seen(self) -> list[str]:
        return self.server.account.seen()

    @seen.setter
    def seen(self, seen: list[str]) -> None:
        assert seen == []

    @property
    def acknowledged(self) -> list[str]:
        return [self._events[number] for number in self.server.queue.confirmed]

    @acknowledged.setter
    def acknowledged(self, acknowledged: list[str]) -> None:
        assert acknowledged == []

    def channel(self) -> Channel:
        return open_channel({"token": self.server.token, "api_url": self.server.url, **self.settings}, self._http)

    async def say(self, event: str, text: str) -> None:
        await self._hear(await self._put(event, text=text))

    async def say_with_file(self, event: str, text: str, name: str, data: bytes) -> bool:
        document = {**self.server.account.keep(data, name), "file_name": name}
        await self._hear(await self._put(event, caption=text, document=document))
        return True

    async def pass_by(self) -> bool:
        await self._hear(await self._put("joined", new_chat_title="Friends of old"))
        return self.resumes

    def files(self) -> Sequence[tuple[str, bytes]]:
        sent = [each["document"] for each in self._ours() if "document" in each]
        return [(each["file_name"], self.server.account.files[each["file_id"]][1]) for each in sent]

    def reactions(self) -> Sequence[str]:
        return [emoji for each in self.server.account.reactions.values() for emoji in each]

    def _ours(self) -> list[dict[str, Any]]:
        account = self.server.account
        return [each for chat in account.messages.values() for each in chat.values() if each["from"] == account.user]

    async def _put(self, event: str, **message: Any) -> int:
        if event not in self._messages:
            self._messages[event] = self.server.account.write(self.chat, **{"from": ANNA}, **message)
        number = await self.server.queue.put({"message": self._messages[event]})
        self._events[number] = event
        return number

    async def _hear(self, number: int) -> None:
        await self.server.queue.has(number)

    def trouble(self, *troubles: Trouble | None, retry_after: float = 0.0) -> None:
        meaning = {
            Trouble.DOWN: Spoiled(status=503),
            Trouble.LIMITED: Spoiled(status=429, retry_after=retry_after),
            Trouble.ACK_LOST: Spoiled(how="hung up", done=True),
        }
        self.server.spoil(*(meaning[each] if each else None for each in troubles))

    async def shown(self, messages: int) -> None:
        await self.server.shown(messages)

    async def tried(self, messages: int) -> None:
        await self.server.tried(messages)


class TelegramInGroup(TelegramStand):
    """Where drafts are messages, which are changed as often as one likes."""

    chat = MappingProxyType(GROUP)

    def visible(self) -> Sequence[str]:
        return self.seen

    def channel(self) -> Channel:
        chosen = check_settings({"token": self.server.token, "api_url": self.server.url})
        return Telegram(chosen, self._http, pause=0.0)


class TelegramCalls(TelegramStand):
    """It calls the hooks that it is given; nobody listens where it was told to call."""

    resumes = False
    settings = MappingProxyType({"mode": "webhook", "webhook_url": "http://127.0.0.1:1/hooks/telegram"})

    async def _hear(self, number: int) -> None:
        [hook] = self.hooks
        assert self.server.queue.first
        body = json.dumps(self.server.queue.first).encode()
        answer = await hook.answer(HookRequest("POST", {HEADER: secret_from(self.server.token)}, body))
        if answer.status == 200:
            await self.server.queue.drop_first()

    def forged(self) -> Sequence[HookRequest]:
        body = json.dumps({"update_id": 900, "message": {"message_id": 9, "chat": {"id": 1001}, "from": ANNA}}).encode()
        right = secret_from(self.server.token)
        wrong = [
            "",
            right[:-1],
            right + "0",
            right.upper(),
            f" {right}",
            f"{right},{right}",
            self.server.token,
            "ü",
            "\udcff",
        ]
        return [HookRequest("POST", {}, body), *(HookRequest("POST", {HEADER: each}, body) for each in wrong)]


@asynccontextmanager
async def stand(kind: type[TelegramStand] = TelegramStand) -> AsyncIterator[TelegramStand]:
    http = TrustedHttp()
    try:
        async with TelegramServer(TOKEN, http=http) as server:
            yield kind(server, http)
    finally:
        await http.close()
