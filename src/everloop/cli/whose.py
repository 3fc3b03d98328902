"""Whose things a command is about, as somebody types it."""

from ..app.records import Records
from ..core.people import OWNER


async def whose(records: Records, who: str) -> str:
    """Their id: of one who is known by it, by an account or a name; or the very id under which something is kept, as of
    users of a program and strangers. Raises MailRefused."""
    if who == OWNER or await _keeps(records, who):
        return who
    return (await records.members.find(who)).id


async def _keeps(records: Records, id: str) -> bool:
    store = records.store
    if await store.recorded_files(id, limit=1) or await store.memory_version(id):
        return True
    return bool(await store.conversations(id, archived=True, limit=1))
