"""What the model is shown: a prefix that stays the same to the byte, the conversation, and a tail of the moment."""

import logging
from collections.abc import Awaitable, Callable

from msgspec import Struct, structs

from ..core.message import Media
from ..core.prompt import Brought, Effort, Prompt, Section, Transcript
from ..core.thread import Thread
from ..core.tool import ToolSpec
from ..ports import Files
from ..readings.sections import CLIENT, joined, prefix_of

_log = logging.getLogger("everloop.context")


class Profile(Struct, frozen=True):
    """How one model is spoken to."""

    model: str
    sections: tuple[Section, ...]  # of the system prompt
    max_tokens: int = 8192
    temperature: float | None = None
    top_p: float | None = None
    effort: Effort = ""
    tail: bool = True  # a small local model would have to read its own last answer again for it
    place: str = ""  # the workspace, where the model is to know what lies there


WRAP_UP = (
    "You have used all the steps of this turn and can call no more tools. "
    "Write up now for the user what was done and what is left to do."
)

BEGUN = "This turn was begun by everloop itself ({source}), not by a message of a person."
STUCK = 3
IN_CIRCLES = (
    "The last {steps} steps have brought nothing new. Try another way, or tell the user what is missing; "
    "if it goes on like this, the turn ends."
)


class Context:
    def __init__(self, profile: Profile, tools: tuple[ToolSpec, ...], now: Callable[[], str]) -> None:
        """`now` tells the time as the model is to read it."""
        self._profile = profile
        self._now = now
        self.system = joined(profile.sections)
        self.tools = tools
        self.sections = profile.sections
        self.max_tokens = profile.max_tokens
        self.model = profile.model
        self._prefixes = {
            wrap: prefix_of(profile.model, profile.sections, () if wrap else tools) for wrap in (False, True)
        }

    def tail(self, thread: Thread, wrap: bool, recalled: str = "") -> str:
        """What is true now and not later; kept with the model call, never shown to another. `recalled` is what was
        said long ago and is meant now."""
        if thread.is_bare:
            return ""
        lines = [WRAP_UP] if wrap else []
        if thread.turn.futile >= STUCK and not wrap:
            lines.append(IN_CIRCLES.format(steps=thread.turn.futile))
        if thread.turn.source:
            lines.append(BEGUN.format(source=thread.turn.source))
        if self._profile.tail:
            lines.append(f"Current time: {self._now()}")
            if thread.address:
                channel, _, chat = thread.address.partition(":")
                lines.append(f"Channel: {channel}, chat: {chat}")
        lines += [recalled] if recalled else []
        return "\n".join(lines)

    def prefix(self, wrap: bool, brought: Brought | None = None) -> str:
        """A fingerprint of each part of what stands before the conversation: `model:… identity:… tools:…`."""
        if brought is None or not brought.has_wishes:
            return self._prefixes[wrap]
        profile = _told(self._profile, brought)
        return prefix_of(profile.model, profile.sections, () if wrap else _offered(self.tools, brought))

    def prompt(self, thread: Thread, tail: str, wrap: bool) -> Prompt:
        profile, system, tools = self._profile, self.system, self.tools
        brought = thread.turn.brought
        if brought is not None and brought.has_wishes:
            profile, tools = _told(profile, brought), _offered(tools, brought)
            system = joined(profile.sections)
        return Prompt(
            model=profile.model,
            system=system,
            transcript=thread.transcript,
            tools=() if wrap else tools,
            tail=tail,
            max_tokens=profile.max_tokens,
            temperature=profile.temperature,
            top_p=profile.top_p,
            effort=profile.effort,
            conversation=thread.id,
            place=profile.place,
        )


def _told(profile: Profile, brought: Brought) -> Profile:
    """How a model is spoken to in a turn for which a client has wishes of its own."""
    wishes = (Section(CLIENT, brought.instructions),) if brought.instructions else ()
    return structs.replace(
        profile,
        sections=wishes if brought.bare else (*profile.sections, *wishes),
        max_tokens=min(brought.max_tokens or profile.max_tokens, profile.max_tokens),
        temperature=profile.temperature if brought.temperature is None else brought.temperature,
        top_p=profile.top_p if brought.top_p is None else brought.top_p,
        effort=brought.effort or profile.effort,
    )


def _offered(tools: tuple[ToolSpec, ...], brought: Brought) -> tuple[ToolSpec, ...]:
    """Ours, then the client's; where both have the same name it is the client's."""
    if brought.bare:
        return tuple(tool.spec for tool in brought.tools)
    return (*(tool for tool in tools if not brought.offers(tool.name)), *(tool.spec for tool in brought.tools))


class Gallery:
    """Fetches what a transcript's media show. `fit` makes an image small enough to be sent."""

    def __init__(self, files: Files, fit: Callable[[bytes, str], Awaitable[bytes]]) -> None:
        self._files = files
        self._fit = fit

    async def load_media(self, transcript: Transcript, user: str) -> None:
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
