"""Devices of ours on both sides of an encrypted room, on a real homeserver."""

from collections.abc import Mapping
from typing import Any

from everloop.channels.matrix.codec import RoomEvent
from everloop.channels.matrix.e2ee.account import MEGOLM
from everloop.channels.matrix.e2ee.encryption import Encryption
from everloop.channels.matrix.e2ee.records import RoomRecord
from everloop.channels.matrix.homeserver import Homeserver, path_of
from everloop.net.trusted import TrustedHttp
from tests.channels.matrix.remembering import Memory
from tests.channels.matrix.synapse import Account, Synapse

SAID = {"msgtype": "m.text", "body": "hello"}


class Killed(BaseException):
    pass


class Mortal(Memory):
    """Dies before its `last` put, or right after it."""

    def __init__(self) -> None:
        super().__init__()
        self.last = -1
        self.after = False
        self.kills = 0

    async def put(self, key: str, value: str, version: int) -> bool:
        self.last -= 1
        self.kills += self.last == 0
        if self.last == 0 and not self.after:
            raise Killed
        done = await super().put(key, value, version)
        if self.last == 0:
            raise Killed
        return done


class Party:
    """An account with a device of ours. `mail` is what its device was sent and nobody has taken yet."""

    def __init__(self, synapse: Synapse, http: TrustedHttp, name: str, memory: Memory) -> None:
        self.account: Account = synapse.register(name)
        self.user = self.account.user
        self.server = Homeserver(synapse.url, self.account.token, http)
        self.memory = memory
        self.begin()

    def begin(self) -> None:
        """As after a restart."""
        self.encryption = Encryption(self.server, self.memory, self.user, self.account.device)

    async def encrypt(self, room: str, content: Mapping[str, Any] = SAID, **rules: Any) -> dict[str, Any]:
        return await self.encryption.encrypt(room, RoomRecord(encrypted=True, **rules), "m.room.message", dict(content))

    async def mail(self) -> list[dict[str, Any]]:
        said = await self.server.get(path_of("sync"), {"timeout": "0"})
        events: list[dict[str, Any]] = said.get("to_device", {}).get("events", [])
        return events

    async def take(self, events: list[dict[str, Any]]) -> None:
        await self.encryption.take(events, None, fallback=False)


async def made_party(synapse: Synapse, http: TrustedHttp, name: str, memory: Memory | None = None) -> Party:
    party = Party(synapse, http, name, memory or Memory())
    await party.encryption.start()
    return party


async def room_of(first: Party, *others: Party) -> str:
    state = [{"type": "m.room.encryption", "state_key": "", "content": {"algorithm": MEGOLM}}]
    asked = {"preset": "private_chat", "invite": [each.user for each in others], "initial_state": state}
    room = str((await first.server.post(path_of("createRoom"), asked))["room_id"])
    for each in others:
        await each.server.post(path_of("rooms", room, "join"), {})
    return room


def said_by(user: str, content: Mapping[str, Any], event: str = "$1") -> RoomEvent:
    return RoomEvent("m.room.encrypted", user, event, dict(content))
