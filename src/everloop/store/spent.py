"""What a call has used that is no step of a turn, written once for both databases."""

from ..ports.rows import Spent
from .database import Ask

_ADD = (
    "INSERT INTO usage(thread, seq, owner, at, model, input, output, cache_read, cache_write, reasoning, cost, "
    "purpose, requester, own) VALUES($1, $2, $3, {now}, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
)


async def note_spent(ask: Ask, owner: str, thread: str, spent: Spent, purpose: str) -> None:
    used = spent.usage
    await ask(
        _ADD,
        thread,
        spent.seq,
        owner,
        spent.model,
        used.input,
        used.output,
        used.cache_read,
        used.cache_write,
        used.reasoning,
        spent.cost,
        purpose,
        spent.requester,
        int(spent.own),
    )
