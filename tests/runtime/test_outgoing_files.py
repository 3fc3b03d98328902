"""Files that go with answers: whole, within bounds, and none is left out in silence."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from everloop.core.log import ModelSaid
from everloop.core.mail import Address, Outbound
from everloop.core.message import Made, Media
from everloop.errors import ChannelDown
from everloop.ports.channel import Manifest, OutgoingFile, OutgoingPart, Traits
from everloop.ports.rows import Commit, Lease
from everloop.runtime.outbox import Outbox
from everloop.runtime.outgoing_files import AT_ONCE, GONE, LEAST, UNREADABLE, OutgoingFiles
from everloop.store.sqlite import SqliteStore
from everloop.testing import RecordingChannel, Trouble
from everloop.testing.script import Tally
from tests.runtime.conftest import letter


class Kept:
    """Files in memory, by their reference."""

    def __init__(self, files: dict[str, bytes], *, piece: int = 1_000_000, broken: int = 0) -> None:
        self.files = files
        self.reads = 0
        self._piece = piece
        self._broken = broken

    @asynccontextmanager
    async def open(self, owner: str, ref: str):
        if ref not in self.files:
            raise FileNotFoundError(ref)
        yield Opened(self, self.files[ref])

    def read(self, data: bytes, at: int, most: int) -> bytes:
        self.reads += 1
        if self._broken:
            self._broken -= 1
            raise OSError("the disk is away")
        return data[at : at + min(most, self._piece)]


class Opened:
    def __init__(self, kept: Kept, data: bytes) -> None:
        self.size = len(data)
        self._kept = kept
        self._data = data

    async def read(self, at: int, most: int) -> bytes:
        return self._kept.read(self._data, at, most)


class Taking(RecordingChannel):
    """A channel that takes files; with `held` its sends wait until they may go on."""

    def __init__(self, *, largest: int = 10, enclosed: bool = False) -> None:
        super().__init__(once=True)
        self.parts: list[OutgoingPart] = []
        self.entered = Tally()
        self.most = self.inside = 0
        self.held = asyncio.Event()
        self.held.set()
        self._traits = Traits(once=True, files=largest, enclosed=enclosed)

    @property
    def manifest(self) -> Manifest:
        return Manifest("fake", self._traits)

    async def send(self, part: OutgoingPart) -> str:
        self.inside += any(file.data for file in part.files)
        self.most = max(self.most, self.inside)
        self.entered.add()
        await self.held.wait()
        self.inside -= any(file.data for file in part.files)
        receipt = await super().send(part)
        self.parts.append(part)
        return receipt

    @property
    def told(self) -> list[tuple[str, tuple[OutgoingFile, ...]]]:
        return [(part.text, part.files) for part in self.parts]


def made(name: str) -> Made:
    return Made(Media(f"file:{name}", "text/plain", name, "owner"), 1)


def with_data(name: str, data: bytes) -> OutgoingFile:
    return OutgoingFile(name, "text/plain", data)


@pytest.fixture
async def store(tmp_path):
    store = await SqliteStore.connect(tmp_path)
    yield store
    await store.close()


async def queue(store: SqliteStore, *names: str, chat: str = "c") -> None:
    receipt = await store.receive(letter("hi", chat, session=f"fake:{chat}"))
    row = (await store.open(receipt.thread)).row
    outbound = Outbound(chat, Address("fake", chat), "here", files=tuple(map(made, names)))
    lease = Lease(receipt.thread, 0, row.head)
    await store.commit(lease, Commit([ModelSaid("x")], outbox=[outbound], release=True, seen=receipt.id))


@asynccontextmanager
async def sending(store: SqliteStore, channel: Taking, kept: Kept, **more):
    files = OutgoingFiles(kept, channel.manifest.traits, **more)
    task = asyncio.create_task(Outbox(store, channel, patience=0.0, files=files).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_each_file_is_a_message_of_its_own_unless_it_travels_with_the_text(store):
    kept = Kept({"file:a": b"aaa", "file:b": b"bbb"})
    told = []
    for chat, enclosed in (("c", False), ("d", True)):
        channel = Taking(enclosed=enclosed)
        await queue(store, "a", "b", chat=chat)
        async with sending(store, channel, kept):
            await channel.sent(1 if enclosed else 3)
        told.append(channel.told)
    a, b = with_data("a", b"aaa"), with_data("b", b"bbb")
    assert told == [[("here", ()), ("", (a,)), ("", (b,))], [("here", (a, b))]]


async def test_more_files_than_one_message_takes_go_with_further_ones(store):
    kept, channel = Kept({f"file:{name}": name.encode() * 4 for name in "abc"}), Taking(enclosed=True)
    await queue(store, *"abc")
    async with sending(store, channel, kept):
        await channel.sent(2)
    a, b, c = (with_data(name, name.encode() * 4) for name in "abc")
    assert channel.told == [("here", (a, b)), ("", (c,))]


async def test_what_is_too_large_empty_or_gone_is_told_and_linked_where_it_can_be(store):
    async def link(media: Media) -> str:
        return "https://here.example/large" if media.name == "large" else ""

    kept, channel = Kept({"file:large": b"x" * 11, "file:empty": b"", "file:huge": b"x" * 12}), Taking()
    await queue(store, "large", "empty", "huge", "gone")
    async with sending(store, channel, kept, link=link):
        await channel.sent(2)
    ((text, along), (nothing, (gone,))) = channel.told
    assert (text, nothing) == ("here", "")
    assert [file.mention for file in (*along, gone)] == [
        "large: https://here.example/large",
        "empty (not sent here: an empty file; the page has its files under Files)",
        "huge (not sent here: more than 10 bytes; the page has its files under Files)",
        "gone (not sent here: it has been deleted; the page has its files under Files)",
    ]
    assert kept.reads == 0


async def test_a_file_of_the_web_is_told_by_its_address(store):
    channel = Taking()
    files = OutgoingFiles(Kept({}), channel.manifest.traits)
    (along,) = await files.groups([Made(Media("https://a.example/b.png", "", "b.png"), 1)])
    assert [each.file.mention for each in along] == ["b.png: https://a.example/b.png"]


async def test_a_file_goes_by_its_name_alone_on_one_line(store):
    files = OutgoingFiles(Kept({"file:a": b"aaa"}), Traits(files=10))
    names = ("sub/folder/a.txt", "two\nlines.txt", "..", "")
    groups = await files.groups([Made(Media("file:a", "text/plain", name, "owner"), 1) for name in names])
    assert [each.file.name for group in groups for each in group] == ["a.txt", "two_lines.txt", "file", "file"]


async def test_a_file_that_comes_in_pieces_is_sent_whole(store):
    kept, channel = Kept({"file:a": b"0123456789"}, piece=3), Taking()
    await queue(store, "a")
    async with sending(store, channel, kept):
        await channel.sent(2)
    assert channel.told[1] == ("", (with_data("a", b"0123456789"),))


async def test_a_file_that_is_deleted_between_two_parts_leaves_no_other_out(store):
    kept, channel = Kept({f"file:{name}": name.encode() for name in "abc"}), Taking()
    await queue(store, *"abc")

    class Deleting(Taking):
        async def send(self, part: OutgoingPart) -> str:
            if part.number == 2:  # `a` has arrived; then the platform is away, and `a` and `b` are deleted
                kept.files.pop("file:a", None)
                kept.files.pop("file:b", None)
                if not self.troubled:
                    self.troubled = True
                    raise ChannelDown("away", retry_after=0.0)
            return await super().send(part)

        troubled = False

    channel = Deleting()
    async with sending(store, channel, kept):
        await channel.sent(4)
    assert [(file.name, file.data, file.why) for _, files in channel.told for file in files] == [
        ("a", b"a", ""),
        ("b", b"", GONE),
        ("c", b"c", ""),
    ]


@pytest.mark.parametrize(("broken", "wanted"), [(LEAST - 1, (b"aaa", "")), (LEAST, (b"", UNREADABLE))])
async def test_an_answer_waits_a_little_for_a_file_that_cannot_be_read_and_not_for_ever(store, broken, wanted):
    kept, channel = Kept({"file:a": b"aaa"}, broken=broken), Taking(enclosed=True)
    await queue(store, "a")
    async with sending(store, channel, kept):
        await channel.sent(1)
    ((_, (file,)),) = channel.told
    assert (file.data, file.why) == wanted


async def test_the_bytes_of_only_a_few_answers_are_in_memory_at_a_time(store):
    kept, channel = Kept({"file:a": b"aaa"}), Taking(enclosed=True)
    for chat in "abcdef":
        await queue(store, "a", chat=chat)
    channel.held.clear()
    async with sending(store, channel, kept):
        await channel.entered.reached(AT_ONCE)
        assert (kept.reads, channel.inside) == (AT_ONCE, AT_ONCE)
        channel.held.set()
        await channel.sent(6)
    assert channel.most == AT_ONCE
    assert sorted(part.address.chat for part in channel.parts) == list("abcdef")


async def test_a_lost_receipt_of_a_file_is_sent_again_under_its_key(store):
    kept, channel = Kept({"file:a": b"aaa"}), Taking(enclosed=True)
    channel.trouble(Trouble.ACK_LOST, times=1)
    await queue(store, "a")
    async with sending(store, channel, kept):
        await channel.sent(1)
    assert [sent.key for sent in channel.sends] == ["c", "c"]
    assert len(channel.delivered) == 1
