"""A channel's table in the settings, taken apart: what holds for every channel, and what is the channel's own."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from ..core.people import Strangers
from ..errors import SettingsError
from ..ports.policy import ChannelPolicy, ChatPolicy, GroupRule
from .shape import snake

MOST_GATHERED = 5.0  # seconds
NEAR = 0.85  # how like a name must be to ours to be taken for a slip of the pen
THEIRS = ("chat", "group", "bot")  # near to ours, and a channel may have such a key of its own

_Id = Annotated[str, Meta(min_length=1, max_length=200)]
_Ids = tuple[_Id | int, ...]
_FORMS: Mapping[str, Any] = {
    "enabled": bool,
    "disabled": bool,
    "allow_from": _Ids,
    "groups": GroupRule,
    "chats": dict[Any, Any],
    "bots": Literal["ignore"] | _Ids,
    "gather": Annotated[float, Meta(ge=0, le=MOST_GATHERED)],
    "per_minute": Annotated[int, Meta(ge=0, le=1_000_000)],
    "per_minute_all": Annotated[int, Meta(ge=0, le=1_000_000)],
    "progress": bool,
    "reasoning": bool,
    "strangers": Strangers,
}
_CHAT_FORMS: Mapping[str, Any] = {"rule": GroupRule, "allow_from": _Ids, "off": bool}
_WANTED = {
    "groups": "is one of mention, reply, always, never",
    "rule": "is one of mention, reply, always, never",
    "strangers": "is one of pair, guest, ignore",
    "allow_from": 'is a list of account ids, such as ["123456789"]',
    "bots": 'is "ignore", or a list of the ids of bots that may speak',
    "gather": f"is a number of seconds from 0 to {MOST_GATHERED:g}",
    "per_minute": "is a number of messages, 0 for no limit",
    "per_minute_all": "is a number of messages, 0 for no limit",
    "chats": "is a table with a table for each chat",
}


class Split(Struct, frozen=True):
    """What holds for every channel, and what is left for the channel itself."""

    policy: ChannelPolicy
    own: dict[str, Any]


def split(name: str, values: Mapping[str, Any]) -> Split:
    """Take a channel's table apart. Raises SettingsError for what is wrong in ours, and for names nearly like ours."""
    named = {snake(str(key)): value for key, value in values.items()}
    place = f"channels.{name}"
    ours = {key: _read(f"{place}.{key}", key, named[key], _FORMS[key]) for key in named if key in _FORMS}
    own = {key: value for key, value in named.items() if key not in _FORMS}
    for key in own:
        if key not in THEIRS and (near := _nearest(key, _FORMS, NEAR)):
            raise SettingsError(f"there is no setting {place}.{key[:50]}; did you mean {near}?")
    if "chats" in ours:
        ours["chats"] = {str(chat): _chat(f"{place}.chats.{chat}", each) for chat, each in ours["chats"].items()}
    return Split(ChannelPolicy(**ours), own)


def _chat(place: str, values: Any) -> ChatPolicy:
    if not isinstance(values, Mapping):
        raise SettingsError(f"{place} must be a table of settings")
    named = {snake(str(key)): value for key, value in values.items()}
    for key in named:
        if key not in _CHAT_FORMS:
            near = _nearest(key, _CHAT_FORMS, 0.6)
            hint = f"did you mean {near}?" if near else f"the keys here are {', '.join(_CHAT_FORMS)}"
            raise SettingsError(f"there is no setting {place}.{key[:50]}; {hint}")
    return ChatPolicy(**{key: _read(f"{place}.{key}", key, value, _CHAT_FORMS[key]) for key, value in named.items()})


def _nearest(key: str, names: Iterable[str], cutoff: float) -> str:
    from difflib import get_close_matches  # only a mistake needs it

    return next(iter(get_close_matches(key, [*names], 1, cutoff)), "")


def _read(place: str, key: str, value: Any, form: Any) -> Any:
    try:
        read = msgspec.convert(value, form, strict=isinstance(value, bool | list | tuple))
    except msgspec.ValidationError as error:
        raise SettingsError(f"{place} {_WANTED.get(key, 'is true or false')}") from error
    if read == "ignore" and key == "bots":
        return ()
    return tuple(str(each) for each in read) if isinstance(read, tuple) else read
