"""Slash commands that plugins bring: typed in every channel, answered by their own code and by no model."""

import inspect
import re
from collections.abc import Awaitable, Callable

from msgspec import Struct

from ..core.people import Role
from ..errors import SettingsError
from .commands import COMMANDS, Right, SlashCommand

NAME = re.compile(r"/[a-z][a-z_-]{0,30}")


class CommandCall(Struct, frozen=True):
    """`text` is what stands behind the command's name. `author` has typed it, in the conversation at `session`, which
    is theirs or a group's."""

    text: str
    author: str
    role: Role
    session: str


Answers = Callable[[CommandCall], Awaitable[str]]


class BroughtCommand(Struct, frozen=True):
    command: SlashCommand
    answer: Answers


def slash_command(name: str, *, takes: str = "", role: Role = Role.USER) -> Callable[[Answers], BroughtCommand]:
    """Make a slash command of an async function that takes a CommandCall and returns what is told. `takes` says what
    may follow the name, as `[CITY]`; the first line of the docstring is its help; it is for this role and above.

    It may be asked twice for what was typed once, if everloop is killed before the answer is kept. Raises SettingsError
    for a name that no command can have."""

    def made(answer: Answers) -> BroughtCommand:
        if not NAME.fullmatch(name):
            raise SettingsError(f"{name!r} cannot be a command: a slash, then up to 31 letters (a to z), _ and -")
        if name in COMMANDS:
            raise SettingsError(f"{name} is a command of everloop itself: choose another name")
        if not inspect.iscoroutinefunction(answer):
            raise SettingsError(f"the function of {name} has to be an async one")
        help = (inspect.getdoc(answer) or "").partition("\n")[0].strip()
        if not help:
            raise SettingsError(f"the function of {name} needs a docstring: its first line is what /help tells")
        return BroughtCommand(SlashCommand(name, help, takes, right=Right(role)), answer)

    return made
