"""`/pair` and `/link`: letting somebody in, and being the same person elsewhere."""

from ..core.mail import Inbound, Said
from ..core.people import Role
from ..errors import MailRefused
from .membership import Membership, role_given
from .session_commands import sentence
from .typed_command import CommandEffect, TypedCommand


class MemberCommands:
    def __init__(self, members: Membership) -> None:
        self._members = members

    async def work_out(self, typed: TypedCommand) -> CommandEffect:
        if typed.name == "/pair":
            return typed.told(await self._pair(typed.rest.split(), typed.role))
        return typed.told(await self._link(typed.rest, typed.inbound, typed.letter))

    async def _pair(self, words: list[str], role: Role) -> str:
        if not words:
            waiting = [f"{each.code} — {each.account}" for each in await self._members.waiting()]
            return "\n".join(waiting) or "Nobody waits to be let in."
        code, *given = words
        try:
            # Administrators are not made in a chat: what is said there may come by a token that is worth less.
            person = await self._members.pair(code, role_given(" ".join(given) or "user"), min(role, Role.ADMIN))
        except MailRefused as error:
            return sentence(error)
        return f"{person.name} ({person.id}) is {person.role.name.lower()} from now on, and can write again."

    async def _link(self, code: str, inbound: Inbound, letter: Said) -> str:
        if code:
            return "You are known here already. Say this where you are not."
        if letter.principal:  # a group: whoever reads the code there could be them
            return "Whoever is told the code can become you, so I say it only where we are alone. Say /link there."
        made = await self._members.link_code(letter.author, str(inbound.address), inbound.event)
        return f"Say this from your other account, within ten minutes, to be the same person there: /link {made}"
