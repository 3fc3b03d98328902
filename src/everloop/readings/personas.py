"""Personas: who the agent is to those who speak with it at some place, and which of them it is.

The most specific place that has one decides: this conversation (`/persona`), a thread of a chat, the chat, the server,
the channel, all else. A place has one persona or none, so there is never a second that could have been meant.

A persona only takes away: of the tools that the role of whoever asks leaves, those that it does not name.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from msgspec import Struct

from ..core.people import Role
from ..core.personas import HERE, PersonaChoice, PersonaWish
from ..ports.channel import traits_of

DEFAULT = "default"  # the place of those who have no other; said of a conversation: as its place has it
NONE = "none"
LONGEST = 20_000  # characters of a prompt
REMEMBERED = 1000  # addresses of which it is known who answers there
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_PART = r"[^\s:/]+"
_PLACE = re.compile(
    rf"default|channel:{_PART}(?:/{_PART})?|server:{_PART}/[^\s:]+|chat:{_PART}:[^\s:]+|thread:{_PART}:[^\s:]+:\S+"
)
WRONG_NAME = "a persona's name has up to 40 small letters, digits, - and _, and is neither default nor none"
WRONG_PLACE = (
    "a place is default, channel:NAME, server:CHANNEL/ID, chat:CHANNEL:CHAT or thread:CHANNEL:CHAT:THREAD, without "
    "spaces, as in the session keys of `everloop sessions list`"
)


class Persona(Struct, frozen=True):
    """`tools` are names or patterns, None all that the role leaves; `open_to` is the lowest role that may choose it for
    a conversation of its own."""

    name: str
    prompt: str = ""
    tools: tuple[str, ...] | None = None
    model: str = ""  # as in the settings; "": the usual
    max_tokens: int = 0  # that an answer may have; 0: as many as always
    open_to: Role = Role.ADMIN
    places: tuple[str, ...] = ()

    def leaves(self, tool: str) -> bool:
        return self.tools is None or any(fnmatchcase(tool, each) for each in self.tools)


def is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name not in (DEFAULT, NONE)


def channel_in(place: str) -> str:
    """The channel that a place is of; "" where it is of none."""
    _, _, rest = place.partition(":")
    return re.split("[:/]", rest, maxsplit=1)[0]


def is_place(place: str) -> bool:
    return _PLACE.fullmatch(place) is not None


def places_of(address: str, server: str = "") -> list[str]:
    """All that a conversation at this address could have a persona by, the most specific first. Where the addresses of
    a channel tell of a platform behind it, that platform is one of these."""
    channel, _, rest = address.partition(":")
    chat, _, thread = rest.partition(":")
    named = {
        f"thread:{channel}:{chat}:{thread}": thread,
        f"chat:{channel}:{chat}": chat,
        f"server:{channel}/{server}": server,
        f"channel:{channel}/{chat.partition('/')[0]}": chat and traits_of(channel).places,
        f"channel:{channel}": channel,
        DEFAULT: True,
    }
    return [place for place, is_there in named.items() if is_there]


class Personas:
    """Those that there are, by name, each place with its own."""

    def __init__(self, personas: Mapping[str, Persona] = {}) -> None:
        """Raises ValueError for a name or a place that is none, and for a place that two of them have."""
        self.named = personas
        self.at: dict[str, str] = {}
        self._found: dict[tuple[str, str], str] = {}  # the place that counts, by address and server
        for persona in personas.values():
            if not is_name(persona.name):
                raise ValueError(f"personas.{persona.name}: {WRONG_NAME}")
            if len(persona.prompt) > LONGEST:
                raise ValueError(f"personas.{persona.name}.prompt has more than {LONGEST:,} characters")
            for place in persona.places:
                if not is_place(place):
                    raise ValueError(f"personas.{persona.name}.places has {place[:80]!r}: {WRONG_PLACE}")
                if (other := self.at.setdefault(place, persona.name)) != persona.name:
                    raise ValueError(f"personas.{other} and personas.{persona.name} both have the place {place}")

    def choose(self, wish: PersonaWish, *, person: str, role: Role, address: str, server: str = "") -> PersonaChoice:
        """Who answers. What somebody has chosen for themselves holds for as long as it is open to them."""
        chosen, instead_of = self.named.get(wish.name), ""
        if wish.name and chosen is None:
            instead_of = f"{wish.name} was chosen here, and is no longer there."
        elif chosen and wish.by == person and role < chosen.open_to:
            instead_of = f"{wish.name} was chosen here, and is no longer open to {role.name.lower()}s."
        elif chosen:
            return PersonaChoice(chosen.name, HERE)
        place = self._place_of(address, server)
        return PersonaChoice(self.at.get(place, ""), place, instead_of)

    def _place_of(self, address: str, server: str) -> str:
        """The narrowest place that has a persona; "" if none has."""
        place = self._found.get((address, server))
        if place is None:
            if len(self._found) >= REMEMBERED:
                self._found.clear()
            place = next((each for each in places_of(address, server) if each in self.at), "")
            self._found[address, server] = place
        return place

    def open_to(self, role: Role) -> list[str]:
        """The names of those that someone of this role may choose."""
        return [each.name for each in self.named.values() if each.open_to <= role]

    def after(self, place: str) -> str:
        """Who answers at a place that has none of its own; "" is the agent itself."""
        scope, _, where = place.partition(":")
        if scope in ("thread", "chat"):
            wider = places_of(where)[1:]
        else:
            channel, _, behind = where.partition("/")
            platform = [f"channel:{channel}/{behind.partition('/')[0]}"] if scope == "server" else []
            wider = [*platform, f"channel:{channel}", DEFAULT]
        return next((self.at[each] for each in wider if each in self.at and each != place), "")
