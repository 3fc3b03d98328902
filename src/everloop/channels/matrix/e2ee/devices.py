"""Whose devices there are. A device is trusted when it is first seen; one whose key changes afterwards is nobody's."""

import logging
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from ..homeserver import Homeserver, path_of
from .records import PinnedDevices, Records
from .signing import is_signed

_log = logging.getLogger("everloop.channels.matrix")

PATIENCE = 10_000  # milliseconds that our homeserver waits for others


class Device(Struct, frozen=True):
    user: str
    id: str
    identity: str  # a key of Curve25519
    signing: str  # a key of Ed25519


class Devices:
    """Raises as Homeserver and ChannelState do."""

    def __init__(self, server: Homeserver, records: Records) -> None:
        self._server = server
        self._records = records

    async def of(self, users: Iterable[str]) -> list[Device]:
        """As their homeservers say now."""
        asked: dict[str, list[str]] = {user: [] for user in users}
        body = {"device_keys": asked, "timeout": PATIENCE}
        said = (await self._server.post(path_of("keys", "query"), body)).get("device_keys")
        found = [(user, _devices(user, said.get(user) if isinstance(said, dict) else None)) for user in asked]
        return [device for user, theirs in found for device in await self._pinned(user, theirs)]

    async def has(self, user: str, identity: str, signing: str) -> bool:
        return any((each.identity, each.signing) == (identity, signing) for each in await self.of([user]))

    async def _pinned(self, user: str, devices: list[Device]) -> list[Device]:
        def pin(record: PinnedDevices) -> tuple[PinnedDevices, dict[str, str]]:
            known = {**{each.id: each.signing for each in devices}, **record.signing}
            return (record if known == record.signing else PinnedDevices(known)), known

        known = await self._records.update(PinnedDevices, (user,), pin) if devices else {}
        if changed := [each.id for each in devices if known[each.id] != each.signing]:
            _log.warning("the keys of devices of %s have changed, which no device does: %s", user, changed)
        return [each for each in devices if known[each.id] == each.signing]


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
