"""`/persona`: who the agent is in a conversation, and choosing another.

Everybody chooses for a conversation of their own, among those that are open to them. In a group all are spoken to by
whom one has chosen, so there it takes an administrator.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec import structs

from ..core.mail import ChoosePersona, Inbound, Said
from ..core.people import Role
from ..core.personas import PersonaChoice, PersonaWish
from ..core.thread import Thread
from ..ports import Archive, Log
from ..readings.personas import DEFAULT, Personas
from .typed_command import CommandEffect, TypedCommand

IN_A_GROUP = "In a group an administrator or the owner says who I am."


class PersonaCommandStore(Archive, Log, Protocol):
    """Conversations, and their logs."""


class PersonaCommands:
    def __init__(self, store: PersonaCommandStore, personas: Callable[[], Personas]) -> None:
        self._store = store
        self._personas = personas

    async def work_out(self, typed: TypedCommand) -> CommandEffect:
        choosing, reply = await self._answered(typed.rest, typed.inbound, typed.letter, typed.role)
        if choosing is None:
            return typed.told(reply)
        return CommandEffect(structs.replace(typed.inbound, letter=choosing), "tell", reply)

    async def _answered(
        self, wanted: str, inbound: Inbound, letter: Said, role: Role
    ) -> tuple[ChoosePersona | None, str]:
        """The letter that it comes to, if any, and what is said about it."""
        personas = self._personas()
        if not wanted:
            choice = await self._now(personas, inbound, letter, role)
            return None, "\n".join((choice.sentence, *self._offered(personas, letter, role)))
        if letter.principal and role < Role.ADMIN:
            return None, IN_A_GROUP
        name = wanted.lower()
        if name != DEFAULT and name not in personas.open_to(role):
            missing = f"There is no persona {wanted[:40]!r} for you."
            return None, "\n".join((missing, *self._offered(personas, letter, role)))
        wish = PersonaWish("" if name == DEFAULT else name, letter.author)
        choice = await self._now(personas, inbound, letter, role, wish)
        return ChoosePersona(wish.name, wish.by), f"From the next turn on: {choice.sentence}"

    async def model(self, inbound: Inbound, letter: Said, role: Role) -> str:
        """The model of the persona that answers here, if it has one of its own."""
        personas = self._personas()
        choice = await self._now(personas, inbound, letter, role) if personas.named else PersonaChoice()
        return personas.named[choice.name].model if choice.name else ""

    def _offered(self, personas: Personas, letter: Said, role: Role) -> list[str]:
        if letter.principal and role < Role.ADMIN:
            return []
        names = personas.open_to(role)
        if not names:
            return ["There is no other to choose."]
        return [f"Choose with /persona NAME: {', '.join(names)}; or go back with /persona default."]

    async def _now(
        self, personas: Personas, inbound: Inbound, letter: Said, role: Role, wish: PersonaWish | None = None
    ) -> PersonaChoice:
        """Who answers here, with the letters that wait and, if given, with this wish."""
        row = await self._store.session(str(inbound.address))
        thread, waiting = Thread(), []
        if row and (opened := await self._store.open(row.id)):
            thread = Thread(row.id, opened.first - 1)
            thread.extend(opened.entries)
            waiting = [mail.letter for mail in opened.mail if isinstance(mail.letter, ChoosePersona)]
        last = PersonaWish(waiting[-1].persona, waiting[-1].by) if waiting else thread.persona
        return personas.choose(
            last if wish is None else wish,
            person=letter.author,
            role=role,
            address=str(inbound.address),
            server=letter.server or thread.server,
        )
