"""What people may spend, for commands, and what whoever limits it has to know."""

from contextlib import AsyncExitStack

from ..errors import ModelMissing
from ..runtime.allotments import (
    Allotments,
    BudgetLine,
    limit_of,
    said_unpriced,
    shown_limit,
    shown_reset,
    shown_spent,
)
from .models import open_models
from .presets import Presets
from .records import Records

__all__ = ["Allotments", "BudgetLine", "limit_of", "note_on_money", "shown_limit", "shown_reset", "shown_spent"]


async def note_on_money(records: Records) -> str:
    """What whoever limits money has to know: "" where the usual model has a price, or there is none yet. Nobody is
    asked for it."""
    async with AsyncExitStack() as stack:
        library = await open_models(records.home, records.settings, records.vault, stack)
        name = Presets(records.settings, library.models).asked("").model
        try:
            choice, (_, price, _) = library.models.choice(name), library.models.facts(name)
        except ModelMissing:
            return ""
    return said_unpriced(choice.name) if price is None else ""
