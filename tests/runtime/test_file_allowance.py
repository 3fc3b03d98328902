"""Files of one author that are slow, or never to be had, keep the others waiting for a while, and no longer."""

import asyncio

from everloop.core.mail import Address
from everloop.core.message import Text
from everloop.errors import ChannelDown
from everloop.ports.channel import Admitted, FileRef, Incoming
from everloop.runtime.file_allowance import FAILURE, MOST, REMEMBERED, WINDOW, FileAllowance
from everloop.runtime.incoming_files import TOO_SLOW, TRIES, IncomingFiles
from everloop.testing import RecordingChannel
from tests.runtime.drafting import incoming

ROOM = Address("fake", "room")


class Slow(RecordingChannel):
    """Each of its files takes so many seconds of a clock, or fails."""

    def __init__(self, seconds: float = 0.0, *, fails: bool = False) -> None:
        super().__init__("fake")
        self.time = 0.0
        self.fetched = 0
        self._seconds = seconds
        self._fails = fails

    async def fetch(self, ref: FileRef, limit: int) -> tuple[str, bytes]:
        self.time += self._seconds
        self.fetched += 1
        if self._fails:
            raise ChannelDown("it is not to be had")
        return "a.txt", b"text"


def files_of(channel: Slow) -> IncomingFiles:
    async def enclose(name: str, data: bytes, owner: str) -> Text:
        return Text(name)

    return IncomingFiles(channel, enclose, allowance=FileAllowance(lambda: channel.time))


async def taken(files: IncomingFiles, message: Incoming) -> list[str]:
    return [part.text for part in await files.parts(message, Admitted(message.account, message.account), ROOM)]


async def test_slow_files_of_one_author_are_not_waited_for_any_more_and_those_of_others_are():
    channel = Slow(50.0)
    files = files_of(channel)
    annas = [await taken(files, incoming(f"e{n}", files=("f",))) for n in range(5)]
    bobs = await taken(files, incoming("b1", account="bob", files=("f",)))
    channel.time += WINDOW
    later = await taken(files, incoming("e9", files=("f",)))
    refused = [f"[a file came along that cannot be taken: {TOO_SLOW}]"]
    assert annas == [["a.txt"]] * 3 + [refused] * 2
    assert (bobs, later, channel.fetched) == (["a.txt"], ["a.txt"], 5)


async def test_quick_files_are_taken_however_many_there_are():
    channel = Slow(0.1)
    files = files_of(channel)
    assert [await taken(files, incoming(f"e{n}", files=("f",))) for n in range(200)] == [["a.txt"]] * 200


async def test_many_messages_with_files_that_fail_are_handed_in_again_a_few_times_in_all():
    channel = Slow(fails=True)
    files = files_of(channel)
    again = 0
    for number in range(100):
        message = incoming(f"e{number}", files=("f",))
        while isinstance(*await asyncio.gather(taken(files, message), return_exceptions=True), ChannelDown):
            again += 1
    assert (again, channel.fetched) == (2 * (TRIES - 1), 2 * TRIES)  # and not as often for each of a hundred
    one = [*await asyncio.gather(*[taken(files, incoming("b1", account="bob", files=("f",)))], return_exceptions=True)]
    assert [type(each) for each in one] == [ChannelDown]
    assert TRIES < MOST / FAILURE  # one message alone has as many attempts as ever


def test_whoever_writes_from_many_accounts_fills_no_memory():
    allowance = FileAllowance(lambda: 0.0)
    for number in range(REMEMBERED + 10):
        allowance.spend(f"{number}", MOST)
    assert [allowance.left(name) for name in ("0", f"{REMEMBERED}")] == [MOST, 0.0]
