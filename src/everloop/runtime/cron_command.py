"""`/cron`: schedules, in any chat. What is made here answers here."""

from ..core.mail import Inbound, Said
from ..core.people import Role
from ..errors import MailRefused
from ..ports.schedules import Asker
from ..readings.commands import COMMANDS, split
from ..readings.cron_order import ACTIONS, HOW, order_of
from .schedule_words import ScheduleWords
from .typed_command import CommandEffect, TypedCommand

HOOK = "With `hook` as WHEN, programs have it run; `everloop cron hook ID` tells how."
NONE = "There are no schedules in this house."


class CronCommand:
    def __init__(self, schedules: ScheduleWords | None) -> None:
        self._schedules = schedules

    async def work_out(self, typed: TypedCommand) -> CommandEffect:
        return typed.told(await self.tell(typed.rest, typed.inbound, typed.letter, typed.role))

    async def tell(self, rest: str, inbound: Inbound, letter: Said, role: Role) -> str:
        """The same message twice makes one schedule."""
        if self._schedules is None:
            return NONE
        if split(rest)[0] not in ("", *ACTIONS):
            words = COMMANDS["/cron"].words.items()
            return "\n".join(
                [*(f"/cron {name} {each.takes} — {each.help}" for name, each in words), _sentence(HOW), HOOK]
            )
        asker = Asker(letter.author, role, str(inbound.address))  # a token that may only chat says it as well
        key = f"/cron {inbound.address} {inbound.event}" if inbound.event else ""
        try:
            order = order_of(rest)
            return await self._schedules.act(asker, order.action, order.id, order.fields, key)
        except MailRefused as error:
            return _sentence(str(error))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
