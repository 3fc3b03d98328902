"""What is remembered of keys, by all processes of a house and over restarts.

A record is put before what was made with it leaves the house: whoever is killed in between has used up a key for
nothing, and no key is ever used for two texts. Who finds that another process was faster begins again.
"""

import json
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from ....ports.channel_state import ChannelRecords

PICKLE = bytes(32)  # what is pickled here is sealed with the vault's key

_Record = TypeVar("_Record", bound=Struct)
_Made = TypeVar("_Made")
_Kind = TypeVar("_Kind")


class AccountRecord(Struct, frozen=True):
    pickle: str = ""
    uploaded: bool = False


class CrossSigningRecord(Struct, frozen=True):
    """Our account's own keys."""

    master: str = ""
    self_signing: str = ""
    user_signing: str = ""

    def by_name(self) -> dict[str, str]:
        return {"master": self.master, "self_signing": self.self_signing, "user_signing": self.user_signing}


class OlmSessions(Struct, frozen=True):
    """With one device, the one to be used first. `heard` are marks of what it has said last."""

    pickles: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()


class PinnedDevices(Struct, frozen=True):
    """Somebody's devices: the signing keys with which they were first seen, of all that ever were; and those that
    there were last, with their identity keys, for when their homeserver is away."""

    signing: dict[str, str] = {}
    last: dict[str, str] = {}


class InboundKey(Struct, frozen=True):
    """`is_bound`: the keys that it came with are those of a device of its sender. `seen` are the latest events by their
    index: another event with the same one is a replay, and so may be one with an index below `floor`."""

    pickle: str = ""
    sender_key: str = ""
    signing: str = ""
    is_bound: bool = False
    seen: dict[str, str] = {}
    floor: int = 0


class OutboundKey(Struct, frozen=True):
    """`shared` are the identity keys of those who have it, by user and device."""

    pickle: str = ""
    session: str = ""
    made: float = 0.0
    used: int = 0
    shared: dict[str, dict[str, str]] = {}


class RoomRecord(Struct, frozen=True):
    """`messages` and `seconds` are how long one key is used there; the usual values are the specification's."""

    encrypted: bool = False
    messages: int = 100
    seconds: float = 7 * 86400.0


def written(value: Any) -> str:
    """Not by msgspec, which refuses the half of a surrogate pair that a stranger may have sent."""
    return json.dumps(msgspec.to_builtins(value))


def read(text: str, kind: type[_Kind]) -> _Kind:
    return msgspec.convert(json.loads(text), kind)


class KeyRecords:
    """`whose` are the names of our account and device. Raises as ChannelRecords does."""

    def __init__(self, state: ChannelRecords, *whose: str) -> None:
        self._state = state
        self._prefix = "".join(f"{each} " for each in whose)

    async def get(self, kind: type[_Record], *names: str) -> _Record:
        return (await self._read(kind, self._key(kind, names)))[0]

    async def update(
        self, kind: type[_Record], names: tuple[str, ...], change: Callable[[_Record], tuple[_Record, _Made]]
    ) -> _Made:
        """What `change` makes beside the new record, once that is kept. It may be called several times."""
        key = self._key(kind, names)
        while True:
            record, version = await self._read(kind, key)
            changed, made = change(record)
            if changed is record or await self._state.put(key, written(changed), version):
                return made

    async def forget_unused(self, kind: type[Struct], seconds: float) -> None:
        await self._state.forget_unused(f"{self._prefix}{kind.__name__} ", seconds)

    async def _read(self, kind: type[_Record], key: str) -> tuple[_Record, int]:
        kept = await self._state.get(key)
        return (read(kept.value, kind) if kept.version else kind()), kept.version

    def _key(self, kind: type[Struct], names: tuple[str, ...]) -> str:
        """No name of a stranger's choice is one that a database does not take."""
        return " ".join(
            (f"{self._prefix}{kind.__name__}", *(quote(each, "!@:$", errors="surrogatepass") for each in names))
        )
