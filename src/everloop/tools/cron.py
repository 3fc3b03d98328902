"""cron: what is to happen later, or again and again, for whoever asks.

The id of a schedule is made of the call that makes it: one that a crash has cut off is made again, and there is one.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Protocol

from msgspec import structs

from ..core.people import Role
from ..core.tool import Circumstances, Effect, Risk
from ..errors import MailRefused, ToolError
from ..ports.schedules import Asker
from ..ports.tools import CallContext, Shown, Tool
from ..readings.cron_order import HELP, order_of
from .decorator import tool

_TAINTED = "it would act later, and strangers' words have been read here"
_ELSEWHERE = "it would answer in another conversation, where others may read it"


class ScheduleClerk(Protocol):
    """Who makes and changes schedules. Raises MailRefused, StoreError."""

    async def act(self, asker: Asker, action: str, id: str, fields: Mapping[str, Any], key: str = "") -> str: ...


def cron_tool(
    clerk: Callable[[], ScheduleClerk], risk_of_command: Callable[[dict[str, Any], Circumstances], Risk]
) -> Tool:
    """`clerk` is asked for with each order; `risk_of_command` is that of exec, which a schedule's command is like."""

    def risk_of_schedule(args: dict[str, Any], situation: Circumstances) -> Risk:
        try:
            order = order_of(args["order"])
        except MailRefused:  # which is what it is told when it is run
            return Risk()
        if order.action in ("list", "log", "remove", "disable"):
            return Risk(mutates=order.action in ("remove", "disable"))
        risk = Risk("medium", mutates=True)
        if order.fields.get("does") == "command":
            risk = structs.replace(risk_of_command({"command": order.fields["text"]}, situation), seconds=0)
        if order.fields.get("session"):
            risk = structs.replace(risk, leaves=True, why=_ELSEWHERE)
        return structs.replace(risk, leaves=True, why=_TAINTED) if situation.outside else risk

    @tool(Effect.KEYED, permission=Role.USER, risk=risk_of_schedule)
    async def cron(
        order: Annotated[str, "`add after 20m message: TEXT`, `list`; `help` tells more"], context: CallContext
    ) -> Shown:
        """Reminders and recurring work."""
        asker = Asker(context.user, context.role, context.session, unasked=context.unasked)
        try:
            if order.strip().lower() == "help":
                return Shown(HELP)
            wanted = order_of(order)
            told = await clerk().act(asker, wanted.action, wanted.id, wanted.fields, context.key)
        except MailRefused as error:
            raise ToolError(str(error)) from error
        # What came of runs may hold what strangers wrote: nobody has noted whose words they are.
        return Shown(told, origin=f"what came of the schedule {wanted.id[:80]}" if wanted.action == "log" else "")

    return cron
