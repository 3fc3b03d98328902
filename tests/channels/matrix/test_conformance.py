"""The conformance suite, in front of a real homeserver."""

import asyncio
import io
import json
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec import structs

import everloop
from everloop.channels.matrix.manifest import MANIFEST, MatrixSettings
from everloop.channels.matrix.wire import Matrix
from everloop.net.trusted import TrustedHttp
from everloop.ports.channel import Manifest
from everloop.testing import Trouble
from everloop.testing.abilities import ABILITIES
from everloop.testing.conformance import CHECKS, Platform, Trial
from everloop.testing.platform import LONG, PATIENCE
from tests.channels.matrix.somebody import Somebody, somebody
from tests.channels.matrix.synapse import Account, Synapse
from tests.channels.matrix.troubled import REACT, RECEIPT, REDACT, SEND, UPLOAD, Between, named_in


class WithoutDrafts(Matrix):
    """To become the answer twice does a draft no harm."""

    manifest = Manifest("matrix", structs.replace(MANIFEST.traits, preview=0.0))


class RealHomeserver(Platform):
    """Someone who writes to the channel in a room of two, over a line that trouble can happen to."""

    resumes = True
    long = LONG * 12
    forgets = False  # whether the homeserver is kept from knowing a transaction again

    def __init__(self, bot: Account, person: Somebody, between: Between, http: TrustedHttp) -> None:
        super().__init__()
        self._bot = bot
        self._person = person
        self._between = between
        self._http = http
        self._room = ""
        self._events: dict[str, str] = {}  # by the names that checks have for them
        self._read: list[str] = []
        self._receipts = asyncio.Condition()
        self._visible: dict[str, str] = {}
        self._files: list[tuple[str, bytes]] = []
        self._uploads: dict[str, bytes] = {}
        self._reactions: list[str] = []
        between.before, between.after, between.rewrite = self._before, self._after, self._rewrite

    def channel(self):
        kind = WithoutDrafts if self.forgets else Matrix
        return kind(MatrixSettings(self._between.url, self._bot.token), self._http)

    async def say(self, event: str, text: str) -> None:
        self._room = self._room or await self._person.make_room(self._bot.user, direct=True)
        read = len(self._read)
        if self._events.get(event) in self._between.told:
            await self._tell_again(self._events[event])
        else:
            self._events[event] = await self._person.say(self._room, text, key=event)
        async with asyncio.timeout(PATIENCE), self._receipts:
            await self._receipts.wait_for(lambda: self._events[event] in self._read[read:])
        if event not in self.acknowledged:
            self.acknowledged.append(event)

    async def _tell_again(self, event: str) -> None:
        """With the sync that waits, which a reaction to anything ends."""
        self._between.again.append(self._between.told[event])
        relation = {"rel_type": "m.annotation", "event_id": event, "key": f"{len(self._between.asked)}"}
        await self._person.send(self._room, {"m.relates_to": relation}, "m.reaction")

    def _before(self, method: str, path: str, body: bytes) -> web.Response | None:
        sent = named_in(SEND, path)
        if not sent or not is_answer(sent[1]) or self._troubles[:1] not in ([Trouble.DOWN], [Trouble.LIMITED]):
            return None
        if self.receive(sent[1], text_in(json.loads(body))) is Trouble.DOWN:
            return web.Response(status=503, text="<html>no homeserver here</html>")
        told = {"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": int(self.retry_after * 1000)}
        return web.json_response(told, status=429)

    def _rewrite(self, path: str) -> str:
        return (
            re.sub(r"(/send/m.room.message/everloop)", rf"\g<1>{len(self._between.asked)}", path)
            if self.forgets
            else path
        )

    async def _after(self, path: str, body: bytes, status: int, answer: bytes) -> bool:
        if status != 200:
            return False
        if receipt := named_in(RECEIPT, path):
            async with self._receipts:
                self._read.append(receipt[1])
                self._receipts.notify_all()
        if redacted := named_in(REDACT, path):
            self._visible.pop(redacted[1], None)
        if named_in(REACT, path):
            self._reactions.append(json.loads(body)["m.relates_to"]["key"])
        if named_in(UPLOAD, path):
            self._uploads[json.loads(answer)["content_uri"]] = body
        return bool(sent := named_in(SEND, path)) and self._see(sent[1], json.loads(body), json.loads(answer))

    def _see(self, transaction: str, content: dict[str, Any], answer: dict[str, str]) -> bool:
        """Whether the line is cut then."""
        replaced = content.get("m.relates_to", {}).get("event_id") if "m.new_content" in content else None
        self._visible[replaced or answer["event_id"]] = text_in(content)
        if "url" in content:
            self._files.append((content["filename"], self._uploads[content["url"]]))
        return is_answer(transaction) and self.receive(transaction, text_in(content)) is Trouble.ACK_LOST

    def visible(self) -> Sequence[str]:
        return [*self._visible.values()]

    def files(self) -> Sequence[tuple[str, bytes]]:
        return self._files

    def reactions(self) -> Sequence[str]:
        return self._reactions

    async def say_with_file(self, event: str, text: str, name: str, data: bytes) -> bool:
        said, _ = await self._person.client.upload(io.BytesIO(data), "text/plain", name, filesize=len(data))
        content = {"msgtype": "m.file", "body": text, "filename": name, "url": said.content_uri}
        await self._person.send(self._room, content)
        return True

    async def pass_by(self) -> bool:
        await self._person.send(self._room, {"msgtype": "m.text", "body": " "})
        return True

    async def really_shown(self) -> list[str]:
        """As a client of the person shows it, which knows nothing of our keys."""
        last = await self._person.say(self._room, "the end")
        await self._person.until(lambda me: any(event["event_id"] == last for _, event in me.events))
        return self._person.shown(self._room, self._bot.user)


def is_answer(transaction: str) -> bool:
    """What else is sent are drafts."""
    return transaction.startswith("everloop")


def text_in(content: dict[str, Any]) -> str:
    content = content.get("m.new_content", content)
    written = content.get("formatted_body", content["body"])
    return content["body"] if content["body"].startswith("you said") else written


@pytest.fixture
async def platform(synapse: Synapse) -> AsyncIterator[RealHomeserver]:
    http = TrustedHttp()
    async with somebody(synapse) as person, Between(synapse.url).open() as between:
        yield RealHomeserver(synapse.register("bot"), person, between, http)
    await http.close()


@pytest.mark.parametrize("name", CHECKS)
async def test_it_is_a_channel(name: str, platform: RealHomeserver, tmp_path: Path):
    await CHECKS[name](Trial(platform, tmp_path / "home", everloop.open))
    shown = await platform.really_shown()
    if name not in ABILITIES:
        assert [_brief(text) for text in shown] == [_brief(text) for text in platform.seen]
    else:
        assert [_brief(text) for text in shown] == [_brief(text) for text in platform.visible()]


def _brief(text: str) -> str:
    """The words at its beginning: the one is with markup, the other without."""
    return re.sub(r"<[^>]*>|\s", "", text)[:40]


async def test_a_homeserver_that_forgets_its_transactions_is_found_out(platform: RealHomeserver, tmp_path: Path):
    """The check of lost receipts looks at what a person sees: without transaction ids they would see two."""
    platform.forgets = True
    await CHECKS["a lost receipt is not a second message"](Trial(platform, tmp_path / "home", everloop.open))
    assert await platform.really_shown() == ["you said one", "you said one"]
