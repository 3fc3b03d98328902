"""A person with a client: matrix-nio, which is what many bots and clients of Matrix are made with."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import nio

from everloop.channels.matrix.drafts import DRAFT
from tests.channels.matrix.synapse import Account, Synapse

PATIENCE = 60.0
WHOLE = {"room": {"timeline": {"limit": 1000}}}  # a homeserver leaves all but the last ten out


class Somebody:
    """What they have seen, as the server tells it: `events` are (room, event), `receipts` and `typing` those of all."""

    def __init__(self, account: Account, client: nio.AsyncClient) -> None:
        self.user = account.user
        self.client = client
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.receipts: set[tuple[str, str]] = set()  # (event, by whom)
        self.typed: list[list[str]] = []

    async def make_room(self, *invited: str, direct: bool = False, encrypted: bool = False, **more: Any) -> str:
        state = [nio.EnableEncryptionBuilder().as_dict()] if encrypted else []
        preset = nio.RoomPreset.trusted_private_chat if direct else nio.RoomPreset.private_chat
        given = {"preset": preset, "initial_state": state, **more}
        made = await self.client.room_create(invite=invited, is_direct=direct, **given)
        assert isinstance(made, nio.RoomCreateResponse), made
        return made.room_id

    async def say(self, room: str, text: str, *, key: str | None = None, **more: Any) -> str:
        return await self.send(room, {"msgtype": "m.text", "body": text, **more}, key=key)

    async def send(
        self, room: str, content: dict[str, Any], kind: str = "m.room.message", key: str | None = None
    ) -> str:
        sent = await self.client.room_send(room, kind, content, tx_id=key, ignore_unverified_devices=True)
        assert isinstance(sent, nio.RoomSendResponse), sent
        return sent.event_id

    async def until(self, seen: Callable[["Somebody"], Any]) -> Any:
        """Listen until something is so; returns what it is."""
        async with asyncio.timeout(PATIENCE):
            while not (found := seen(self)):
                synced = await self.client.sync(timeout=5000, sync_filter=WHOLE)
                assert isinstance(synced, nio.SyncResponse), synced
                for room, info in synced.rooms.join.items():
                    self.events += [(room, event.source) for event in info.timeline.events]
                    for each in info.ephemeral:
                        if isinstance(each, nio.ReceiptEvent):
                            self.receipts |= {(one.event_id, one.user_id) for one in each.receipts}
                        if isinstance(each, nio.TypingNoticeEvent):
                            self.typed.append(each.users)
            return found

    def said(self, room: str, by: str) -> list[dict[str, Any]]:
        """The contents of what somebody has said in a room, as sent: drafts, edits and all."""
        wanted = [e for where, e in self.events if where == room and e["sender"] == by]
        return [event["content"] for event in wanted if event["type"] == "m.room.message"]

    def shown(self, room: str, by: str, *, drafts: bool = True) -> list[str]:
        """What a client shows of it: edits in place, without what was taken back."""
        shown: dict[str, dict[str, Any]] = {}
        for where, event in self.events:
            if where != room or event["sender"] != by:
                continue
            content, related = event["content"], event["content"].get("m.relates_to", {})
            if event["type"] == "m.room.redaction":
                shown.pop(content.get("redacts") or event["redacts"], None)
            elif event["type"] == "m.room.message" and related.get("rel_type") == "m.replace":
                shown[related["event_id"]] = content["m.new_content"]
            elif event["type"] == "m.room.message" and content:
                shown[event["event_id"]] = content
        return [content["body"] for content in shown.values() if drafts or DRAFT not in content]

    async def answers(self, room: str, by: str, count: int) -> list[str]:
        return await self.until(lambda me: len(me.shown(room, by)) >= count and me.shown(room, by))


@asynccontextmanager
async def somebody(synapse: Synapse, name: str = "anna") -> AsyncIterator[Somebody]:
    account = synapse.register(name)
    client = nio.AsyncClient(synapse.url, account.user)
    client.restore_login(account.user, account.device, account.token)
    try:
        yield Somebody(account, client)
    finally:
        await client.close()
