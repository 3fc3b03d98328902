"""In which homes commands were run: one that is alone is told so."""

from everloop.ports import Store


async def test_a_home_is_noted_once_and_knows_whether_there_are_others(store: Store):
    assert not await store.has_command_homes_beside("here")
    for _ in range(2):
        await store.note_command_home("here")
    assert not await store.has_command_homes_beside("here")
    await store.note_command_home("there")
    assert await store.has_command_homes_beside("here")
    assert await store.has_command_homes_beside("there")
