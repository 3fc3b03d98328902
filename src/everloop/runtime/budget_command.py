"""`/budget`: what whoever asks may spend, and has spent."""

from ..ports import Archive
from .allotments import Allotments
from .typed_command import CommandEffect, TypedCommand

ALONE = "What you may spend is nobody else's business, so I say it only where we are alone."


class BudgetCommand:
    def __init__(self, archive: Archive, budgets: Allotments) -> None:
        self._archive = archive
        self._budgets = budgets

    async def work_out(self, typed: TypedCommand) -> CommandEffect:
        if typed.letter.principal:
            return typed.told(ALONE)
        row = await self._archive.session(typed.session)
        return typed.told(await self._budgets.tell(typed.letter.author, typed.role, row.id if row else ""))
