"""`/skill`: what the agent knows how to do here. With a name it is no command but a message for the model."""

from ..core.mail import Said
from ..core.people import Role
from ..errors import MailRefused
from ..ports.skills import SkillBook, SkillRow
from ..readings.commands import COMMANDS, SKILL, split, words_described
from ..readings.visible import in_one_line
from .session_commands import sentence
from .typed_command import CommandEffect, TypedCommand

IN_A_GROUP = "In a group an administrator or the owner accepts what is held back."
NONE = "There are no skills here."
HOW = "Use one with /skill NAME and what is to be done; /skill show NAME tells more of it."


class SkillCommand:
    def __init__(self, book: SkillBook | None) -> None:
        self._book = book

    async def work_out(self, typed: TypedCommand) -> CommandEffect:
        return typed.told(await self.tell(typed.rest, typed.letter, typed.role))

    async def tell(self, rest: str, letter: Said, role: Role) -> str:
        if self._book is None:
            return NONE
        word, name = split(rest)
        principal = letter.principal or letter.author
        try:
            if word == "help":
                command = COMMANDS[SKILL]
                return "\n".join(words_described(command, command.help, role))
            if word == "show":
                return await self._show(self._book, principal, role, name)
            if word in ("accept", "refuse"):
                if letter.principal and role < Role.ADMIN:
                    return IN_A_GROUP
                return await self._book.accept(principal, name, word == "accept")
        except MailRefused as error:
            return sentence(error)
        rows = await self._book.rows(principal, role)
        return "\n".join([*map(_line, rows), HOW]) if rows else NONE

    async def _show(self, book: SkillBook, principal: str, role: Role, name: str) -> str:
        shown = await book.show(principal, role, name)
        lines = [_line(shown.row), f"From: {shown.row.source}. Files: {', '.join(shown.files)}.", "It asks for:"]
        lines += [f"- {each}" for each in shown.asks]
        lines += [f"Look at {each}" for each in shown.warnings]
        if shown.change:
            lines += [f"Held back; /skill accept {name} or /skill refuse {name}:", shown.change]
        return "\n".join(lines)


def _line(row: SkillRow) -> str:
    state = "" if row.state == "available" else f" [{row.state}: {in_one_line(row.why)}]"
    return f"{row.name} — {in_one_line(row.description)[:200]}{state}"
