"""What is typed for everloop itself and not for the model: one word after a slash, at the beginning of a message.

`/etc/hosts is broken` is no such word, nor is `/2`. What looks like a command and is meant for the model has a second
slash before it, which is taken away.
"""

import re

_COMMAND = re.compile(r"\s*(/[A-Za-z][A-Za-z_-]{0,30})(?:\s|\Z)")
_ESCAPED = re.compile(r"\s*/(/[A-Za-z][A-Za-z_-]{0,30}(?:\s|\Z))")


def command_in(text: str) -> str:
    """The command that a message begins with, in small letters; "" if it is said to the model."""
    found = _COMMAND.match(text)
    return found[1].lower() if found else ""


def rest_of(text: str) -> str:
    """What stands behind the command."""
    found = _COMMAND.match(text)
    return text[found.end() :].strip() if found else text


def unescaped(text: str) -> str:
    """What is said to the model: without the slash that kept it from being a command."""
    found = _ESCAPED.match(text)
    return text[found.start(1) :] if found else text
