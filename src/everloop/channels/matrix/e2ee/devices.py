"""Whose devices there are. A device is trusted when it is first seen; one whose key changes afterwards is nobody's."""

import logging
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from ..homeserver import Homeserver, path_of
from .records import KeyRecords, PinnedDevices
from .signing import is_signed

_log = logging.getLogger("everloop.channels.matrix")

REMEMBERED = 5_000
AT_ONCE = 250  # people
PATIENCE = 10_000  # milliseconds that our homeserver waits for others


class Device(Struct, frozen=True):
    user: str
    id: str
    identity: str  # a key of Curve25519
    signing: str  # a key of Ed25519


class Devices:
    """Raises as Homeserver and ChannelRecords do."""

    def __init__(self, server: Homeserver, records: KeyRecords) -> None:
        self._server = server
        self._records = records
        self._seen: OrderedDict[str, list[Device]] = OrderedDict()  # and pinned

    async def of(self, users: Iterable[str]) -> list[Device]:
        """As their homeservers say now; of those that are away, as they have said last."""
        asked = [*users]
        parts = [asked[first : first + AT_ONCE] for first in range(0, len(asked), AT_ONCE)]
        return [device for part in parts for device in await self._asked(part)]

    async def _asked(self, users: Sequence[str]) -> list[Device]:
        body: dict[str, Any] = {"device_keys": {user: [] for user in users}, "timeout": PATIENCE}
        said = await self._server.post(path_of("keys", "query"), body)
        found, failed = _table(said, "device_keys"), _table(said, "failures")
        away = {user for user in users if user not in found and user.partition(":")[2] in failed}
        return [
            device
            for user in users
            for device in (
                await self._last(user) if user in away else await self._pinned(user, _devices(user, found.get(user)))
            )
        ]

    async def has(self, user: str, identity: str, signing: str) -> bool:
        return any((each.identity, each.signing) == (identity, signing) for each in await self.of([user]))

    async def _last(self, user: str) -> list[Device]:
        record = await self._records.get(PinnedDevices, user)
        return [Device(user, id, identity, record.signing[id]) for id, identity in record.last.items()]

    async def _pinned(self, user: str, devices: list[Device]) -> list[Device]:
        def pin(record: PinnedDevices) -> tuple[PinnedDevices, dict[str, str]]:
            known = {**{each.id: each.signing for each in devices}, **record.signing}
            last = {each.id: each.identity for each in devices if known[each.id] == each.signing}
            now = PinnedDevices(known, last)
            return (record if now == record else now), known

        if self._seen.get(user) == devices:
            return devices
        known = await self._records.update(PinnedDevices, (user,), pin)
        if changed := [each.id for each in devices if known[each.id] != each.signing]:
            _log.warning("the keys of devices of %s have changed, which no device does: %s", user, changed)
            return [each for each in devices if known[each.id] == each.signing]
        self._seen[user] = devices
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return devices


def _table(said: Any, name: str) -> dict[str, Any]:
    found = said.get(name) if isinstance(said, dict) else None
    return found if isinstance(found, dict) else {}


def _devices(user: str, said: Any) -> list[Device]:
    read = [_device(user, id, each) for id, each in said.items()] if isinstance(said, dict) else []
    return [device for device in read if device]


def _device(user: str, id: str, said: Any) -> Device | None:
    """None for one that has not signed itself with its own key."""
    keys = said.get("keys") if isinstance(said, dict) else None
    if not isinstance(keys, dict) or said.get("user_id") != user or said.get("device_id") != id:
        return None
    identity, signing = keys.get(f"curve25519:{id}"), keys.get(f"ed25519:{id}")
    if not isinstance(identity, str) or not isinstance(signing, str) or not is_signed(said, user, id, signing):
        return None
    return Device(user, id, identity, signing)
