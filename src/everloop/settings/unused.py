"""Settings that are kept for a later version: taken as they are, and never ignored in silence."""

from collections.abc import Collection, Iterator
from typing import Any

from .shape import Settings, snake

# Channels that settings files of other agents name, and that there are none of here.
ELSEWHERE = {
    "whatsapp": "WhatsApp",
    "feishu": "Feishu",
    "dingtalk": "DingTalk",
    "qq": "QQ",
    "mochat": "Mochat",
}


def unused(settings: Settings, channels: Collection[str] = ()) -> tuple[str, ...]:
    """A sentence for each thing that is set and that this version does nothing with. `channels` are there."""
    return tuple(_unused(settings, channels))


def _unused(settings: Settings, channels: Collection[str]) -> Iterator[str]:
    for sentence in settings.foreign or ():
        yield f"In the settings file of nanobot, {sentence}."
    for name in switched_on(settings.channels):
        if name not in channels:
            yield no_channel(name)


def no_channel(name: str) -> str:
    """What is said of a channel that nobody brings."""
    if name in ELSEWHERE:
        return f"channels.{name} is set, but this version has no channel for {ELSEWHERE[name]}: nothing listens there."
    return f"channels.{name} is set, but there is no such channel: nothing listens there."


def switched_on(kept: Any) -> list[str]:
    """The names of a table's entries, but for those that say they are off. What is no table is named as a whole."""
    if not isinstance(kept, dict):
        return [] if kept is None else ["*"]
    return [str(name) for name, entry in kept.items() if not is_off(entry)]


def is_off(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return entry is None or entry is False
    said = {snake(str(key)): value for key, value in entry.items()}
    return _truth(said.get("enabled")) is False or _truth(said.get("disabled")) is True


def _truth(value: Any) -> Any:
    """A variable of the environment has it as text."""
    return {"false": False, "true": True}.get(value.lower(), value) if isinstance(value, str) else value
