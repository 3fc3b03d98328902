"""What is the owner's is told to nobody else, by no door, in no prompt and no result, whatever a model tries."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from everloop.core.people import Role

from .asked import specs
from .owners_house import HIDDEN, KINDS, OwnersHouse, living

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OwnersHouse]:
    async with living(tmp_path_factory.mktemp("owners")) as lived:
        yield lived


@pytest.mark.parametrize("role", [Role.GUEST, Role.USER, Role.ADMIN])
async def test_nobody_else_is_told_anything_of_it_by_any_door(house: OwnersHouse, role: Role):
    assert await house.try_every_door(role) == (set(), set())


async def test_the_owner_is_and_so_the_test_above_would_see_it(house: OwnersHouse):
    shown, told = await house.try_every_door(Role.OWNER)
    assert KINDS - shown <= {"SCHEDULE"}  # what one says until it is due
    assert {each.split()[0] for each in told} == KINDS
    assert HIDDEN & shown == set()


async def test_every_tool_that_there_is_is_tried(house: OwnersHouse, tmp_path: Path):
    assert {*await specs(tmp_path)} - {each.name for each in house.model.tries()} == set()
