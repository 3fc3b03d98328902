"""A person whose client encrypts: matrix-nio with its own store of keys."""

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nio

from everloop.channels.matrix.e2ee.account import MEGOLM
from everloop.channels.matrix.homeserver import Homeserver, path_of
from everloop.net.trusted import TrustedHttp
from tests.channels.matrix.somebody import PATIENCE, WHOLE, Somebody
from tests.channels.matrix.synapse import PASSWORD, Account, Synapse


class Secretive(Somebody):
    """With each event stands whether, and by which key, it was decrypted."""

    async def settle(self) -> None:
        """What a client does between two syncs."""
        client = self.client
        if client.should_upload_keys:
            await client.keys_upload()
        if client.should_query_keys:
            await client.keys_query()
        await client.send_to_device_messages()

    async def until(self, seen: Callable[[Somebody], Any]) -> Any:
        async with asyncio.timeout(PATIENCE):
            while not (found := seen(self)):
                synced = await self.client.sync(timeout=5000, full_state=not self.events, sync_filter=WHOLE)
                assert isinstance(synced, nio.SyncResponse), synced
                await self.settle()
                for room, info in synced.rooms.join.items():
                    self.events += [(room, _told(event)) for event in info.timeline.events]
            return found

    async def meet(self, user: str) -> str:
        """An encrypted room of two, in which they are."""
        room = await self.make_room(user, direct=True, encrypted=True)
        await self.sees(user)
        return room

    async def sees(self, *users: str) -> None:
        """Sync until they are in a room with us."""
        rooms = self.client.rooms
        await self.until(lambda _: any({*users} <= room.users.keys() - room.invited_users for room in rooms.values()))

    async def reaches(self, room: str) -> None:
        """Begin a session with every device there. The homeserver tells of one a moment before it has its keys, and
        their client would pass over it."""
        async with asyncio.timeout(PATIENCE):
            while missing := self.client.get_missing_sessions(room):
                await self.client.keys_claim(missing)

    async def withhold_key(self, room: str) -> list[dict[str, Any]]:
        """What is said from now on has a key that nobody has yet. Returns what would bring it to them."""
        client = self.client
        if missing := client.get_missing_sessions(room):
            await client.keys_claim(missing)
        users = [*client.rooms[room].users]
        shares = client.olm.share_group_session_parallel(room, users, ignore_unverified_devices=True)
        held = [messages for _, messages in shares]
        client.olm.outbound_group_sessions[room].shared = True
        return held

    async def _put(self, path: str, body: dict[str, Any]) -> None:
        """What their client would not do by itself."""
        http = TrustedHttp()
        server = Homeserver(self.client.homeserver, self.client.access_token, http)
        await server.put(path, body)
        await http.close()

    async def bring(self, held: list[dict[str, Any]]) -> None:
        for number, messages in enumerate(held):
            await self._put(path_of("sendToDevice", "m.room.encrypted", f"late{number}"), messages)

    async def say_in_clear(self, room: str, text: str) -> None:
        await self._put(path_of("rooms", room, "send", "m.room.message", text), {"msgtype": "m.text", "body": text})

    async def begin_encryption(self, room: str) -> None:
        await self._put(path_of("rooms", room, "state", "m.room.encryption", ""), {"algorithm": MEGOLM})


def _told(event: Any) -> dict[str, Any]:
    return {**event.source, "decrypted": event.decrypted, "session_id": event.session_id}


@asynccontextmanager
async def secretive(synapse: Synapse, folder: Path, account: Account | None = None) -> AsyncIterator[Secretive]:
    account = account or synapse.register("anna")
    store = folder / f"{account.device}"
    store.mkdir()
    config = nio.AsyncClientConfig(encryption_enabled=True, store_sync_tokens=False)
    client = nio.AsyncClient(synapse.url, account.user, account.device, str(store), config)
    client.restore_login(account.user, account.device, account.token)
    try:
        person = Secretive(account, client)
        await client.sync(timeout=0, full_state=True)
        await person.settle()
        yield person
    finally:
        await client.close()


def further_device(synapse: Synapse, user: str) -> Account:
    body = {"type": "m.login.password", "identifier": {"type": "m.id.user", "user": user}, "password": PASSWORD}
    request = urllib.request.Request(f"{synapse.url}/_matrix/client/v3/login", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=30) as answer:
        said = json.load(answer)
    return Account(user, said["access_token"], said["device_id"])
