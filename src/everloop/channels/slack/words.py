"""What people write in Slack, as plain text: its escapes, links and mentions; and commands, which Slack keeps for
itself when they begin with a slash, so that here they may begin with `!`."""

import re
from collections.abc import Mapping

from ...readings.commands import COMMANDS

_ANGLED = re.compile(r"<((?:[@#!]|[a-zA-Z][a-zA-Z0-9+.-]*:)[^<>]*)>")
_COMMAND = re.compile(r"!([a-z][a-z_-]{0,30})(?=\s|\Z)")
_LISTED = re.compile(r"^/[a-z]+(?=\s|$)", re.MULTILINE)
MENTION = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>")


def plain(text: str, names: Mapping[str, str] = {}) -> str:
    """`names` are what people are called, by their id."""
    return _unescaped(_ANGLED.sub(lambda found: _read(found[1], names), text))


def addressed(text: str, me: str) -> tuple[str, bool]:
    """Without our name at its beginning; and whether we are named in it."""
    rest = re.sub(rf"\A\s*<@{re.escape(me)}(?:\|[^<>]*)?>[\s:,]*", "", text) if me else text
    return (rest if rest.strip() else text), me in MENTION.findall(text)


def commanded(text: str) -> str:
    """`!new` is `/new`, where there is such a command."""
    found = _COMMAND.match(text.lstrip())
    return f"/{text.lstrip()[1:]}" if found and f"/{found[1]}" in COMMANDS else text


def typed(text: str) -> str:
    """What follows `/everloop`: a command, or something to say."""
    text = text.strip()
    word = text.removeprefix("/").removeprefix("!").partition(" ")[0]
    if not text:
        return "/help"
    is_command = f"/{word}" in COMMANDS or text.startswith("/")  # plugins have commands, too
    return f"/{text.removeprefix('/').removeprefix('!')}" if is_command else text


def typable(text: str) -> str:
    """What we say of commands, as they are typed here."""
    return _LISTED.sub(lambda found: found[0].replace("/", "!") if found[0] in COMMANDS else found[0], text)


def _read(inside: str, names: Mapping[str, str]) -> str:
    target, _, label = inside.partition("|")
    if target.startswith("@"):
        return f"@{label or names.get(target[1:], target[1:])}"
    if target.startswith("#"):
        return f"#{label or target[1:]}"
    if target.startswith("!"):
        return label or f"@{target[1:].partition('^')[0]}"
    address = target.removeprefix("mailto:").removeprefix("tel:")
    return f"{label} ({target})" if label and label not in (target, address) and f"//{label}" not in target else address


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
