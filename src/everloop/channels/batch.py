"""Many messages at once, as a platform hands them over when it has been away: taken in side by side, each chat in its
order."""

import asyncio
from collections.abc import Sequence

from ..ports import Deliver
from ..ports.channel import Incoming


async def deliver_all(deliver: Deliver, incoming: Sequence[Incoming], resume: str) -> None:
    """Commit all of them, then where to resume: what is handed over again after a crash is known by its events. Raises
    StoreError, and whatever else a file that came along raises: then none may be acknowledged."""
    chats: dict[str, list[Incoming]] = {}
    for each in incoming:
        chats.setdefault(each.chat, []).append(each)
    if len(incoming) == 1:
        await deliver(incoming[0], resume)
        return

    async def take(of_one_chat: Sequence[Incoming]) -> None:
        for each in of_one_chat:
            await deliver(each)

    try:
        async with asyncio.TaskGroup() as group:
            for of_one_chat in chats.values():
                group.create_task(take(of_one_chat))
    except BaseExceptionGroup as group_of_errors:
        raise group_of_errors.exceptions[0] from group_of_errors
    await deliver.skip_to(resume)
