"""What the model is shown: a prefix that stays the same to the byte, the conversation, and a tail of the moment."""

import logging
from collections.abc import Awaitable, Callable, Iterable
from hashlib import sha256

import msgspec
from msgspec import Struct, structs

from ..core.message import Media
from ..core.ports import Files
from ..core.prompt import Brought, Effort, Prompt, Transcript
from ..core.thread import Thread
from ..core.tool import ToolSpec

_log = logging.getLogger("everloop.context")


class Profile(Struct, frozen=True):
    """How one model is spoken to."""

    model: str
    system: str
    max_tokens: int = 8192
    temperature: float | None = None
    top_p: float | None = None
    effort: Effort = ""
    tail: bool = True  # a small local model would have to read its own last answer again for it


WRAP_UP = (
    "You have used all the steps of this turn and can call no more tools. "
    "Write up now for the user what was done and what is left to do."
)

STUCK = 3
IN_CIRCLES = (
    "The last {steps} steps have brought nothing new. Try another way, or tell the user what is missing; "
    "if it goes on like this, the turn ends."
)


class Context:
    def __init__(self, profile: Profile, tools: tuple[ToolSpec, ...], now: Callable[[], str]) -> None:
        """`now` tells the time as the model is to read it."""
        self._profile = profile
        self._tools = tools
        self._now = now
        self.model = profile.model
        self._prefixes = {wrap: _prefix(profile, () if wrap else tools) for wrap in (False, True)}

    def tail(self, thread: Thread, wrap: bool) -> str:
        """What is true now and not later; kept with the model call, never shown to another."""
        lines = [WRAP_UP] if wrap else []
        if thread.futile >= STUCK and not wrap:
            lines.append(IN_CIRCLES.format(steps=thread.futile))
        if self._profile.tail:
            lines.append(f"Current time: {self._now()}")
            if thread.address:
                channel, _, chat = thread.address.partition(":")
                lines.append(f"Channel: {channel}, chat: {chat}")
        return "\n".join(lines)

    def prefix(self, wrap: bool, brought: Brought | None = None) -> str:
        """A fingerprint of each part of what stands before the conversation: `model:… system:… tools:…`."""
        if brought is None:
            return self._prefixes[wrap]
        return _prefix(_told(self._profile, brought), () if wrap else _offered(self._tools, brought))

    def prompt(self, thread: Thread, tail: str, wrap: bool) -> Prompt:
        profile, tools = self._profile, self._tools
        if thread.brought is not None:
            profile, tools = _told(profile, thread.brought), _offered(tools, thread.brought)
        return Prompt(
            model=profile.model,
            system=profile.system,
            transcript=thread.transcript,
            tools=() if wrap else tools,
            tail=tail,
            max_tokens=profile.max_tokens,
            temperature=profile.temperature,
            top_p=profile.top_p,
            effort=profile.effort,
            conversation=thread.id,
        )


def _told(profile: Profile, brought: Brought) -> Profile:
    """How a model is spoken to in a turn for which a client has wishes of its own."""
    system = f"{profile.system}\n\n{brought.instructions}" if brought.instructions else profile.system
    return structs.replace(
        profile,
        system=system,
        max_tokens=min(brought.max_tokens or profile.max_tokens, profile.max_tokens),
        temperature=profile.temperature if brought.temperature is None else brought.temperature,
        top_p=profile.top_p if brought.top_p is None else brought.top_p,
        effort=brought.effort or profile.effort,
    )


def _offered(tools: tuple[ToolSpec, ...], brought: Brought) -> tuple[ToolSpec, ...]:
    """Ours, then the client's; where both have the same name it is the client's."""
    return (*(tool for tool in tools if not brought.offers(tool.name)), *(tool.spec for tool in brought.tools))


def tokens_of(system: str, tools: Iterable[ToolSpec]) -> int:
    """About how many tokens stand before the conversation."""
    described = [(tool.name, tool.description, tool.schema) for tool in tools]
    return (len(system) + len(msgspec.json.encode(described))) // 4 + 10 * len(described)


def _prefix(profile: Profile, tools: tuple[ToolSpec, ...]) -> str:
    described = [(tool.name, tool.description, tool.schema) for tool in tools]
    parts = {"model": profile.model, "system": profile.system, "tools": described}
    prints = {name: sha256(msgspec.json.encode(part)).hexdigest()[:8] for name, part in parts.items()}
    return " ".join(f"{name}:{print}" for name, print in prints.items())


def changed_parts(before: str, after: str) -> list[str]:
    """The names of the parts in which two prefixes differ; nothing when there was none before."""
    if not before or before == after:
        return []
    old = set(before.split())
    return [part.partition(":")[0] for part in after.split() if part not in old]


class Gallery:
    """Fetches what a transcript's media show. `fit` makes an image small enough to be sent."""

    def __init__(self, files: Files, fit: Callable[[bytes, str], Awaitable[bytes]]) -> None:
        self._files = files
        self._fit = fit

    async def hang(self, transcript: Transcript, user: str) -> None:
        """Put the content of the media where the dialects find it. One that cannot be had is shown by its name."""
        for media in transcript.media:
            if media.file not in transcript.files:
                data = await self._content(media, user)
                if data is not None:
                    transcript.files[media.file] = data

    async def _content(self, media: Media, user: str) -> bytes | None:
        try:
            data = await self._files.get(media.owner or user, media.file)
            return await self._fit(data, media.mime)
        except (OSError, ValueError) as error:
            _log.warning("%s cannot be shown: %s", media.name or media.file, error)
            return None
