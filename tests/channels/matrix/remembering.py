"""What a channel remembers, in a test."""

from everloop.ports.channel_state import KeptState


class Memory:
    """A ChannelRecords, which lies in this process alone."""

    def __init__(self) -> None:
        self.kept: dict[str, KeptState] = {}

    async def get(self, key: str) -> KeptState:
        return self.kept.get(key, KeptState())

    async def put(self, key: str, value: str, version: int) -> bool:
        if self.kept.get(key, KeptState()).version != version:
            return False
        self.kept[key] = KeptState(value, version + 1)
        return True

    async def forget_unused(self, prefix: str, seconds: float) -> None:
        return None
