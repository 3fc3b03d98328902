"""What an IMAP server says is read strictly; what is none of it breaks the connection and nothing else."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from everloop.channels.email import open_channel
from everloop.channels.email.imap import HEADERS, Imap, ImapError, MailSize, Selected, day_of
from everloop.channels.email.imap_replies import (
    BadReply,
    ImapContinue,
    ImapCount,
    ImapFetch,
    ImapOther,
    ImapStatus,
    ImapWords,
    Response,
    read_response,
)
from everloop.errors import ChannelDown, ChannelRefused
from everloop.net.trusted import TrustedHttp
from everloop.ports.channel import Delivered, Incoming
from tests.channels.email.hosts import ImapHost, hosting
from tests.channels.email.test_smtp import CODED, PASSWORD, settings
from tests.effort import in_full


@pytest.mark.parametrize(
    "pieces, response",
    [
        ([b"* OK [UIDVALIDITY 7] fine\r\n"], ImapStatus("*", "OK", "UIDVALIDITY 7", "fine")),
        ([b"a1 NO [AUTHENTICATIONFAILED] (no\r\n"], ImapStatus("a1", "NO", "AUTHENTICATIONFAILED", "(no")),
        ([b"a1 OK\r\n"], ImapStatus("a1", "OK", "", "")),
        ([b"* 12 EXISTS\r\n"], ImapCount("EXISTS", 12)),
        ([b"* SEARCH 3 1 2\r\n"], ImapWords("SEARCH", ("3", "1", "2"))),
        ([b"* SEARCH\r\n"], ImapWords("SEARCH", ())),
        ([b"+ go on\r\n"], ImapContinue()),
        ([b"* FLAGS (\\Seen)\r\n"], ImapOther()),
        ([b"* LIST (\\HasNoChildren \"/\" )unbalanced\r\n"], ImapOther()),
        ([b'* 1 FETCH (UID 7 RFC822.SIZE 5 INTERNALDATE "16-Nov-2026 10:00:00 +0000")\r\n'],
         ImapFetch({"UID": b"7", "RFC822.SIZE": b"5", "INTERNALDATE": b"16-Nov-2026 10:00:00 +0000"})),
        ([b"* 1 FETCH (UID 7 BODY[] {5}\r\n", b"a)\r\n(", b" FLAGS (\\Seen $x))\r\n"],
         ImapFetch({"UID": b"7", "BODY[]": b"a)\r\n(", "FLAGS": [b"\\Seen", b"$x"]})),
        ([b"* 1 FETCH (BODY[HEADER]<0> {0}\r\n", b"", b" UID 7)\r\n"], ImapFetch({"BODY[HEADER]": b"", "UID": b"7"})),
        ([b'* 1 FETCH (BODY[] "a\\"b" X NIL)\r\n'], ImapFetch({"BODY[]": b'a"b', "X": None})),
    ],
)  # fmt: skip
def test_a_response_is_read(pieces: list[bytes], response: Response):
    assert read_response(pieces) == response


@pytest.mark.parametrize(
    "line",
    [
        b"", b" \r\n", b"a1 WHAT\r\n", b"\xff\xff OK\r\n", b"* 1 FETCH (UID\r\n", b"* 1 FETCH UID 7)\r\n",
        b"* 1 FETCH (UID)\r\n", b"* 1 FETCH ()x\r\n", b'* 1 FETCH ("x)\r\n', b"* 1 FETCH (BODY[ x)\r\n",
        b"* 1 FETCH " + b"(" * 100, b"* 1 FETCH\r\n", b"* 1 FETCH (a {)\r\n",
    ],
)  # fmt: skip
def test_what_is_no_response_is_refused(line: bytes):
    with pytest.raises(BadReply):
        read_response([line])


@pytest.mark.shortened
def test_whatever_bytes_come_a_response_is_read_or_refused():
    chosen, seeds = random.Random(3), [
        [b"* 1 FETCH (UID 7 BODY[] {5}\r\n", b"hello", b' FLAGS (\\Seen) INTERNALDATE "16-Nov-2026 10:00:00")\r\n'],
        [b"* OK [CAPABILITY IMAP4rev1 IDLE] hi\r\n"], [b"* SEARCH 1 2 3\r\n"], [b"a1 OK [READ-WRITE] done\r\n"],
    ]  # fmt: skip
    scraps = [b"(", b")", b'"', b"\\", b"[", b"]", b"{5}", b"<0>", b" ", b"\xff", b"\0", b"NIL", b"9" * 30, b"\r", b"*"]
    refused = 0
    for _ in range(in_full(50_000, 5000)):
        pieces = [bytearray(piece) for piece in chosen.choice(seeds)]
        for _ in range(chosen.randint(1, 6)):
            piece = chosen.choice(pieces)
            at = chosen.randrange(len(piece) + 1)
            piece[at : at + chosen.choice((0, 1, 4))] = chosen.choice(scraps)
        try:
            said = read_response([bytes(piece) for piece in pieces])
            if isinstance(said, ImapFetch):
                said.number("UID"), said.data("BODY[]")
        except BadReply:
            refused += 1
    assert refused


@asynccontextmanager
async def talking(host: ImapHost, patience: float = 30.0) -> AsyncIterator[Imap]:
    http = TrustedHttp()
    try:
        async with hosting(host.serve) as port, http.dial("127.0.0.1", port, tls=False) as stream:
            yield Imap(stream, "there", patience)
    finally:
        await http.close()


async def test_a_mailbox_is_asked_for_what_is_needed():
    host = ImapHost(
        {
            "UID SEARCH": b"* SEARCH 9 4\r\n* SEARCH 4 x 99999999999\r\nTAG OK done\r\n",
            "UID FETCH 4,9": b'* 1 FETCH (UID 9 RFC822.SIZE 3 INTERNALDATE " 1-Nov-2026 10:00:00 +0000")\r\n'
            b"* 2 FETCH (FLAGS (\\Seen))\r\n* 3 EXISTS\r\nTAG OK done\r\n",
            "UID FETCH 9": b"* 1 FETCH (UID 8)\r\n* 1 FETCH (BODY[] {3}\r\nxyz UID 9)\r\nTAG OK done\r\n",
            "UID FETCH 5": b"TAG OK done\r\n",
            "UID COPY": b"TAG NO [TRYCREATE] there is none\r\n",
        }
    )
    async with talking(host) as imap:
        await imap.greet()
        assert await imap.select("Entwürfe & mehr") == Selected(7, 1)
        assert await imap.search("ALL") == [4, 9]
        assert await imap.sizes([4, 9]) == [MailSize(9, 3, 1793527200.0)]
        assert (await imap.fetch(9, 100), await imap.fetch(5, 100), imap.news) == (b"xyz", None, 1)
        with pytest.raises(ImapError, match="there is none"):
            await imap.move(9, "Done")
    assert host.heard[1] == 'SELECT "Entw&APw-rfe &- mehr"'


@pytest.mark.parametrize(
    "greeting, answers",
    [
        (b"220 smtp.example ESMTP\r\n", {}),
        (b"* BYE go away\r\n", {}),
        (b"* OK hi\r\n", {"CAPABILITY": b"* BYE too many\r\n"}),
        (b"* OK hi\r\n", {"CAPABILITY": b"\x00\x01\x02\r\n"}),
        (b"* OK hi\r\n", {"CAPABILITY": b"* 1 FETCH (X {999999999}\r\n"}),
        (b"* OK hi\r\n", {"CAPABILITY": b"* 1 FETCH (" + b"X {1}\r\nx " * 200}),
        (b"* OK hi\r\n", {"CAPABILITY": b""}),
        (b"* OK hi", {}),
        (b"", {}),
        (b"x" * 5_000_000, {}),
    ],
)
async def test_a_server_that_says_what_it_should_not_is_left(greeting: bytes, answers: dict[str, bytes]):
    host = ImapHost(answers)
    host.greeting = greeting
    async with talking(host, patience=0.3) as imap:
        with pytest.raises(ChannelDown):
            await imap.greet()


async def test_a_mail_that_is_larger_than_was_said_is_not_read():
    host = ImapHost({"UID FETCH": b"* 1 FETCH (UID 9 BODY[] {%d}\r\n" % (HEADERS * 20)})
    async with talking(host) as imap:
        with pytest.raises(ChannelDown, match="more than was asked for"):
            await imap.fetch(9, 1000)


@pytest.mark.parametrize("capabilities", ["IMAP4rev1", "IMAP4rev1 AUTH=PLAIN"])
async def test_a_refused_password_is_not_told_again(capabilities: str):
    said = f"TAG NO [AUTHENTICATIONFAILED] no {PASSWORD} {CODED}\r\n".encode()
    host = ImapHost({"LOGIN": said, "AUTHENTICATE": said}, capabilities)
    async with talking(host) as imap:
        await imap.greet()
        with pytest.raises(ChannelRefused, match="app password") as raised:
            await imap.login("bot@agent.example", PASSWORD)
    assert (PASSWORD in str(raised.value), CODED in str(raised.value)) == (False, False)


@pytest.mark.parametrize("evil", ["x\r\na2 DELETE INBOX", "x\ny", "x\0"])
async def test_no_setting_becomes_a_command(evil: str):
    host = ImapHost()
    async with talking(host) as imap:
        await imap.greet()
        with pytest.raises(ChannelRefused):
            await imap.login("bot", evil)
    assert host.heard == ["CAPABILITY"]


async def test_a_quote_in_a_password_is_a_part_of_it():
    host = ImapHost()
    async with talking(host) as imap:
        await imap.greet()
        await imap.login("bot", 'a"b\\c')
    assert host.heard[1] == 'LOGIN "bot" "a\\"b\\\\c"'


class Taken:
    """A Deliver that remembers."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.resumes: list[str] = []

    async def __call__(self, incoming: Incoming, resume: str = "") -> Delivered:
        self.texts.append(incoming.text)
        self.resumes.append(resume)
        return Delivered()

    async def skip_to(self, resume: str) -> None:
        self.resumes.append(resume)


async def test_without_idle_the_server_is_asked_now_and_then():
    mail = b"From: anna@people.example\r\n\r\nhi"
    answers = {
        "NOOP": b"* 1 EXISTS\r\nTAG OK done\r\n",
        "UID SEARCH UID 1:*": b"* SEARCH 1\r\nTAG OK done\r\n",
        "UID FETCH 1 (UID RFC822": b"* 1 FETCH (UID 1 RFC822.SIZE %d)\r\nTAG OK done\r\n" % len(mail),
        "UID FETCH 1 (UID BODY": b"* 1 FETCH (UID 1 BODY[] {%d}\r\n%s)\r\nTAG OK done\r\n" % (len(mail), mail),
    }
    host, taken, http = ImapHost(answers), Taken(), TrustedHttp()
    async with hosting(host.serve) as port:
        channel = open_channel({**settings(imap=port), "poll_seconds": 1, "senders": "any"}, http)
        running = asyncio.ensure_future(channel.run(taken, "7/0/0/passed"))
        while "NOOP" not in host.heard:
            host.heard_of.clear()
            await host.heard_of.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    await http.close()
    assert (taken.texts, taken.resumes, "IDLE" in host.heard) == (["hi"], ["7/1/0/taken"], False)
    assert "UID STORE 1 +FLAGS.SILENT (\\Seen)" in host.heard


@pytest.mark.parametrize("ending", [b"* BYE shutting down\r\n", b"\0\r\n"])
async def test_a_server_that_goes_while_it_is_waited_for_is_told_as_down(ending: bytes):
    async with talking(ImapHost({"IDLE": b"* 3 EXPUNGE\r\n+ idling\r\n* OK still here\r\n" + ending})) as imap:
        await imap.greet()
        with pytest.raises(ChannelDown):
            await imap.wait_for_news(30)


def test_a_day_is_written_as_a_search_wants_it():
    assert day_of(1_794_787_200.0) == "16-Nov-2026"
