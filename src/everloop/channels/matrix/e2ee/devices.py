"""Whose devices there are. A device is trusted when it is first seen; one whose key changes afterwards is nobody's."""

import logging
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from ..homeserver import Homeserver, path_of
from .records import KeyRecords, PinnedDevices
from .signing import is_signed

_log = logging.getLogger("everloop.channels.matrix")

REMEMBERED = 5_000
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
        asked: dict[str, list[str]] = {user: [] for user in users}
        body = {"device_keys": asked, "timeout": PATIENCE}
        said = await self._server.post(path_of("keys", "query"), body)
        found, failed = _table(said, "device_keys"), _table(said, "failures")
        theirs = {user: _devices(user, found.get(user)) for user in asked}
        away = {user for user in asked if user not in found and user.partition(":")[2] in failed}
        return [
            device
            for user, devices in theirs.items()
            for device in (await self._last(user) if user in away else await self._pinned(user, devices))
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
