"""The same for many rooms, a few at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

AT_ONCE = 8

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


async def each_of(items: Iterable[_Item], make: Callable[[_Item], Awaitable[_Made]]) -> list[_Made]:
    """What is made of each, in their order. Raises what the first of them raises, when all others have ended."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(item: _Item) -> _Made:
        async with turns:
            return await make(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in items]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return [task.result() for task in tasks]
