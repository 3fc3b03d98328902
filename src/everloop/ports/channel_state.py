"""What a channel has to remember beside what it has heard and sent, such as the keys of encrypted conversations."""

from typing import Protocol

from msgspec import Struct


class KeptState(Struct, frozen=True):
    """`version` counts how often it was put; 0: it is not there."""

    value: str = ""
    version: int = 0


class ChannelRecords(Protocol):
    """Of one channel, for all processes: sealed wherever it lies. A channel gets it whose `open_channel` has a
    parameter `state`. Raises VaultLocked, StoreError."""

    async def get(self, key: str) -> KeptState: ...

    async def put(self, key: str, value: str, version: int) -> bool:
        """Keep a value in place of the one of this version, durably. False: somebody else has put another meanwhile."""
        ...

    async def forget_unused(self, prefix: str, seconds: float) -> None:
        """Forget what begins like this and was not put for so long."""


class StateBoxes(Protocol):
    """What channels remember, as closed boxes. Raises StoreError."""

    async def state_box(self, channel: str, key: str) -> tuple[bytes, int] | None: ...

    async def keep_state_box(self, channel: str, key: str, box: bytes, version: int) -> bool: ...

    async def forget_state_boxes(self, channel: str, prefix: str, seconds: float) -> None: ...
