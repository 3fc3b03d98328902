"""What people have sent is known by name: to whoever has it, and to nobody else."""

from everloop.ports import FileRecord
from everloop.ports.files import FileRecords

from .conftest import Home


async def known(store: FileRecords, owner: str) -> list[tuple[str, str, str, int]]:
    found = await store.recorded_files(owner)
    return [(each.ref, each.name, each.mime, each.size) for each in found]


async def test_a_file_is_known_by_the_name_under_which_it_came_last(home: Home):
    store = await home.connect()
    for name in ("a.txt", "b\u202e.txt"):
        await store.note_file(FileRecord("ann", "file:1", name, "text/plain", 5_000_000_000))
    assert await known(store, "ann") == [("file:1", "b\u202e.txt", "text/plain", 5_000_000_000)]
    assert (await known(store, "bob"), await store.recorded_file("bob", "file:1")) == ([], None)


async def test_what_is_made_for_somebody_leaves_the_name_under_which_they_have_sent_it(home: Home):
    store = await home.connect()
    for name, sent in (("copy.zip", False), ("pack.zip", True), ("other.zip", False)):
        await store.note_file(FileRecord("ann", "file:1", name, "application/zip", 5), sent)
    assert await known(store, "ann") == [("file:1", "pack.zip", "application/zip", 5)]


async def test_the_latest_are_told_first_and_then_those_before(home: Home):
    store = await home.connect()
    for ref in ("file:1", "file:2", "file:3"):
        await store.note_file(FileRecord("ann", ref, ref, "", 1))
    found = await store.recorded_files("ann")
    assert [each.at for each in found] == sorted((each.at for each in found), reverse=True)
    pages = [await store.recorded_files("ann", limit=1, skip=skip) for skip in range(4)]
    assert [each for page in pages for each in page] == found


async def test_a_file_is_forgotten_of_one_owner_alone(home: Home):
    store = await home.connect()
    for owner in ("ann", "bob"):
        await store.note_file(FileRecord(owner, "file:1", "a", "", 1))
    assert await store.owners_of_file("file:1") == ["ann", "bob"]
    assert [await store.forget_file("ann", "file:1") for _ in range(2)] == [True, False]
    assert await store.owners_of_file("file:1") == ["bob"]
