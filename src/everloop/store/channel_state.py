"""What channels remember, written once for both databases, and sealed as the vault seals what it holds."""

import asyncio
from typing import Protocol

from ..errors import VaultLocked
from ..ports import Secrets
from ..ports.channel_state import KeptState, StateBoxes
from .database import Database
from .vault import EncryptedVault, Key

_NEW = (
    "INSERT INTO channel_state(channel, key, version, at, box) VALUES($1, $2, 1, {now}, $3) "
    "ON CONFLICT(channel, key) DO NOTHING RETURNING version"
)
_NEXT = (
    "UPDATE channel_state SET version = version + 1, at = {now}, box = $3 "
    "WHERE channel = $1 AND key = $2 AND version = $4 RETURNING version"
)
_FORGET = "DELETE FROM channel_state WHERE channel = $1 AND substr(key, 1, $2) = $3 AND at < {now} - $4"


class ChannelStateRows(Database):
    async def state_box(self, channel: str, key: str) -> tuple[bytes, int] | None:
        found = await self._glance(
            "SELECT box, version FROM channel_state WHERE channel = $1 AND key = $2", channel, key
        )
        return (bytes(found[0][0]), int(found[0][1])) if found else None

    async def keep_state_box(self, channel: str, key: str, box: bytes, version: int) -> bool:
        if version == 0:
            return await self._changed_one(_NEW, channel, key, box)
        return await self._changed_one(_NEXT, channel, key, box, version)

    async def forget_state_boxes(self, channel: str, prefix: str, seconds: float) -> None:
        await self._change(_FORGET, channel, len(prefix), prefix, seconds)


class StateStore(Secrets, StateBoxes, Protocol):
    """What it is sealed over."""


class SealedChannelRecords:
    """The ChannelRecords port over the boxes of a store. A box is of use nowhere but in its own place."""

    def __init__(self, store: StateStore, key: Key, channel: str) -> None:
        self._store = store
        self._channel = channel
        self._vault = EncryptedVault(store, key, "channels")

    async def get(self, key: str) -> KeptState:
        kept = await self._store.state_box(self._channel, key)
        if kept is None:
            return KeptState()
        try:
            return KeptState(await asyncio.to_thread(self._vault.unseal, self._place(key), kept[0]), kept[1])
        except VaultLocked as error:
            raise VaultLocked(
                f"what the channel {self._channel} remembers cannot be read: it was sealed with another key or "
                "passphrase of the vault, or has been changed since. Bring back that of the time, or log in there anew"
            ) from error

    async def put(self, key: str, value: str, version: int) -> bool:
        first = version == 0 and not await self._store.has_secrets()
        box = await asyncio.to_thread(self._vault.seal, self._place(key), value, first)
        return await self._store.keep_state_box(self._channel, key, box, version)

    async def forget_unused(self, prefix: str, seconds: float) -> None:
        await self._store.forget_state_boxes(self._channel, prefix, seconds)

    def _place(self, key: str) -> str:
        return f"state:{self._channel}:{key}"
