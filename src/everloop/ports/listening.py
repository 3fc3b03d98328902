"""How channels stand, as the process says that listens at them, for every other process."""

from typing import Literal, Protocol

from msgspec import Struct

# `starting` until it is known to work; `failed`: it is begun again; `wrong`: its settings cannot be used.
ListeningState = Literal["starting", "listening", "failed", "wrong"]


class ChannelStanding(Struct, frozen=True):
    """How a channel stands where it is seen to just now, and since when."""

    state: ListeningState
    why: str
    since: float


class Traffic(Struct, frozen=True):
    """When something last came in through a channel and went out (Unix time; 0: never), and how many answers wait to be
    sent or were given up."""

    last_in: float = 0.0
    last_out: float = 0.0
    waiting: int = 0
    given_up: int = 0


class ListeningStates(Protocol):
    """What is said under the name of a lease counts for as long as the lease is held by whoever has said it: after a
    crash nobody says anything. Raises StoreError."""

    async def keep_listening(self, lease: str, state: ListeningState, why: str = "") -> None: ...

    async def listening(self) -> dict[str, ChannelStanding]:
        """By the names of the leases that are held now. One of which its holder has said nothing yet is `starting`."""
        ...

    async def traffic(self, channel: str) -> Traffic: ...


ChannelState = Literal["unset", "off", "wrong", "stopped", "starting", "listening", "failed"]


class ChannelRow(Struct, frozen=True, kw_only=True):
    """A channel as it is listed. `by` is the package that brings it, "" where none does. `why` is what is wrong, `todo`
    what to do about it; `since` and the times of `traffic` are Unix times, 0 where nothing is known."""

    name: str
    title: str
    by: str
    state: ChannelState
    why: str = ""
    todo: str = ""
    since: float = 0.0
    traffic: Traffic = Traffic()
