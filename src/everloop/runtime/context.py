"""What the model is shown: a prefix that stays the same to the byte, the conversation, and a tail of the moment."""

from collections.abc import Callable

from msgspec import Struct

from ..core.prompt import Prompt
from ..core.thread import Thread
from ..core.tool import ToolSpec


class Profile(Struct, frozen=True):
    """How one model is spoken to."""

    model: str
    system: str
    max_tokens: int = 8192
    temperature: float | None = None
    tail: bool = True  # a small local model would have to read its own last answer again for it


WRAP_UP = (
    "You have used all the steps of this turn and can call no more tools. "
    "Write up now for the user what was done and what is left to do."
)


class Context:
    def __init__(self, profile: Profile, tools: tuple[ToolSpec, ...], now: Callable[[], str]) -> None:
        """`now` tells the time as the model is to read it."""
        self._profile = profile
        self._tools = tools
        self._now = now
        self.model = profile.model

    def tail(self, thread: Thread, wrap: bool) -> str:
        """What is true now and not later; kept with the model call, never shown to another."""
        lines = [WRAP_UP] if wrap else []
        if self._profile.tail:
            lines.append(f"Current time: {self._now()}")
            if thread.address:
                channel, _, chat = thread.address.partition(":")
                lines.append(f"Channel: {channel}, chat: {chat}")
        return "\n".join(lines)

    def prompt(self, thread: Thread, tail: str, wrap: bool) -> Prompt:
        profile = self._profile
        return Prompt(
            model=profile.model,
            system=profile.system,
            transcript=thread.transcript,
            tools=() if wrap else self._tools,
            tail=tail,
            max_tokens=profile.max_tokens,
            temperature=profile.temperature,
            conversation=thread.id,
        )
