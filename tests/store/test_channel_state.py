"""What channels remember: sealed, and never overwritten by who has not seen what is there; over both databases."""

from pathlib import Path

import pytest

from everloop.errors import VaultLocked
from everloop.ports.channel_state import KeptState
from everloop.store.channel_state import SealedChannelRecords
from everloop.store.vault import KeyFile

from .conftest import Home


async def test_of_two_processes_the_one_that_saw_what_is_there_puts(home: Home, tmp_path: Path):
    key = KeyFile(tmp_path / "vault.key")
    here, there = [SealedChannelRecords(await home.connect(), key, "matrix") for _ in range(2)]
    assert await here.get("a") == KeptState()
    assert [await here.put("a", "one", 0), await there.put("a", "two", 0)] == [True, False]
    assert await there.get("a") == KeptState("one", 1)
    assert [await there.put("a", "two", 1), await here.put("a", "three", 1)] == [True, False]
    assert await here.get("a") == KeptState("two", 2)
    assert await SealedChannelRecords(await home.connect(), key, "other").get("a") == KeptState()


async def test_what_lies_in_the_database_tells_nothing_and_is_of_use_nowhere_else(home: Home, tmp_path: Path):
    state = SealedChannelRecords(await home.connect(), KeyFile(tmp_path / "vault.key"), "matrix")
    await state.put("a", "a secret", 0)
    await state.put("b", "another", 0)
    assert b"secret" not in b"".join(bytes(box) for (box,) in await home.rows("SELECT box FROM channel_state"))
    await home.write("UPDATE channel_state SET box = (SELECT box FROM channel_state WHERE key = 'a') WHERE key = 'b'")
    assert await state.get("a") == KeptState("a secret", 1)
    with pytest.raises(VaultLocked, match="what the channel matrix remembers cannot be read"):
        await state.get("b")


async def test_what_was_not_put_for_long_is_forgotten_by_its_prefix(home: Home, tmp_path: Path):
    state = SealedChannelRecords(await home.connect(), KeyFile(tmp_path / "vault.key"), "matrix")
    for key in ("old a", "old b", "keep"):
        await state.put(key, key, 0)
    await state.forget_unused("old ", 1000.0)
    assert (await state.get("old a")).version == 1
    await state.forget_unused("old ", -1000.0)
    assert [(await state.get(key)).version for key in ("old a", "old b", "keep")] == [0, 0, 1]
