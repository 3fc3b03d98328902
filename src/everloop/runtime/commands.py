"""Slash commands that are understood in every channel, whatever the model is doing: who may use which, and who works it
out. Whoever does is made when somebody types the command."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import structs

from ..core.mail import Inbound, Said, Stop
from ..core.message import text_of
from ..core.people import Role
from ..ports import People
from ..ports.audit import acting, acting_as
from ..ports.permission import Grant
from ..ports.rows import COUNT
from ..readings.brought_commands import BroughtCommand, CommandCall
from ..readings.commands import COMMANDS, SlashCommand, listed, rest_of
from .brought_commands import answer_to
from .typed_command import CommandEffect, TypedCommand, WorksOutCommand

BLOCKED = "You are blocked here: nothing that you say is heard."
TO_THE_MODEL = "To say this to the model, begin with /{}."

FindCommand = Callable[[str], WorksOutCommand]


class SlashCommands:
    """`find` gives who works out the command of a name, `keep` keeps what an answer to a question allows ahead;
    `brought` are the commands of plugins."""

    def __init__(
        self,
        people: People,
        find: FindCommand,
        keep: Callable[[Inbound, Grant | None], Awaitable[None]],
        brought: Callable[[], Mapping[str, BroughtCommand]] = dict,
    ) -> None:
        self._people = people
        self._found = find
        self.keep = keep
        self._brought = brought

    def known(self, role: Role) -> list[SlashCommand]:
        """Those that someone of this role may use, the plugins' last."""
        every = (*COMMANDS.values(), *(each.command for each in self._brought().values()))
        return [each for each in every if each.right.least <= role]

    async def work_out(self, command: SlashCommand, inbound: Inbound, letter: Said) -> CommandEffect:
        """What it comes to; nothing has happened yet."""
        role = await self._people.role(letter.author)
        came = acting.get()
        by = came.by if came.person == letter.author else f"{role.name.lower()} in {inbound.address.channel}"
        with acting_as(letter.author, by):
            return await self._work_out(command, inbound, letter, role)

    async def _work_out(self, command: SlashCommand, inbound: Inbound, letter: Said, role: Role) -> CommandEffect:
        rest = rest_of(text_of(letter.parts))
        brought = self._brought().get(command.name)
        command = brought.command if brought else command
        if command.name not in COMMANDS and not brought:
            return CommandEffect(inbound, "none", misunderstood(command.name, self.known(role)))
        if rest and not command.takes:
            return CommandEffect(inbound, "none", f"{command.name} stands alone. {TO_THE_MODEL.format(command.name)}")
        if role < Role.GUEST:
            return CommandEffect(inbound, "none", BLOCKED)
        if role < (least := command.right_to(rest).least):
            typed = f"{command.name} {rest.partition(' ')[0].lower()}" if command.right.least <= role else command.name
            return CommandEffect(inbound, "none", f"{typed} is not for {role.name.lower()}s: it needs {_a(least)}.")
        if brought:
            call = CommandCall(rest, letter.author, role, str(inbound.address))
            return CommandEffect(inbound, "none", await answer_to(call, brought))
        return await self._own(TypedCommand(command.name, rest, inbound, letter, role))

    async def _own(self, typed: TypedCommand) -> CommandEffect:
        match typed.name:
            case "/new":
                return CommandEffect(typed.inbound, "new", "New session started.")
            case "/stop":
                stopping = structs.replace(typed.inbound, letter=Stop(typed.letter.author))
                return CommandEffect(stopping, "stop", f"⏹ Stopped {COUNT} task(s).", "No active task to stop.")
            case "/help":
                return typed.told("\n".join(["everloop commands:", *listed(self.known(typed.role))]))
        return await self._found(typed.name).work_out(typed)


def _a(role: Role) -> str:
    return f"{'a' if role is Role.USER else 'an'} {role.name.lower()}"


def misunderstood(name: str, known: Sequence[SlashCommand]) -> str:
    """What is said to whoever types a command that there is not: no model is asked."""
    from difflib import get_close_matches  # only a mistake needs it

    near = get_close_matches(name, [each.name for each in known], 1)
    perhaps = f"Did you mean {near[0]}? " if near else ""
    return f"There is no {name}. {perhaps}/help shows what there is. {TO_THE_MODEL.format(name)}"
