"""So many go on at once, and none of the places is lost."""

import asyncio

from everloop.runtime.cap import Cap


class Crowd:
    """Those who come to a cap of two places, each as a task that stays until it is let go."""

    def __init__(self) -> None:
        self._cap = Cap(2)
        self._gates: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.inside: list[str] = []

    async def comes(self, *names: str) -> None:
        for name in names:
            self._gates[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._stay(name))
        await rounds()

    async def leaves(self, name: str) -> None:
        self._gates[name].set()
        await rounds()

    def gives_up(self, name: str) -> None:
        self._tasks[name].cancel()

    async def _stay(self, name: str) -> None:
        async with self._cap:
            self.inside.append(name)
            try:
                await self._gates[name].wait()
            finally:
                self.inside.remove(name)


async def rounds() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_who_finds_no_room_waits_in_the_order_in_which_they_came() -> None:
    crowd = Crowd()
    await crowd.comes("a", "b", "c", "d")
    assert crowd.inside == ["a", "b"]
    await crowd.leaves("b")
    assert crowd.inside == ["a", "c"]
    await crowd.leaves("a")
    assert crowd.inside == ["c", "d"]


async def test_who_gives_up_while_waiting_takes_no_place() -> None:
    crowd = Crowd()
    await crowd.comes("a", "b", "c", "d")
    crowd.gives_up("c")
    await rounds()
    await crowd.leaves("a")
    assert crowd.inside == ["b", "d"]


async def test_who_gives_up_at_the_moment_of_being_let_in_gives_the_place_to_the_next() -> None:
    crowd = Crowd()
    await crowd.comes("a", "b", "c", "d")
    crowd._gates["a"].set()
    while crowd.inside != ["b"]:  # noqa: ASYNC110 (c has its place now, and has not yet come in)
        await asyncio.sleep(0)
    crowd.gives_up("c")
    await rounds()
    assert crowd.inside == ["b", "d"]
