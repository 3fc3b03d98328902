"""A real mailbox: what is read from it, from where on, and in which state it is left."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from itertools import count

import pytest

from everloop.channels.email import open_channel
from everloop.channels.email.loops import (
    DAILY_MAILS,
    DAY,
    LOOP_MAILS,
    LOOP_SECONDS,
    REMEMBERED,
    SENDER_MAILS,
    LoopGuard,
)
from everloop.channels.email.wire import Email
from everloop.core.mail import Address
from everloop.errors import ChannelDown, ChannelRefused, Undeliverable
from everloop.net.trusted import TrustedHttp
from everloop.ports.channel import Delivered, Incoming, OutgoingFile, OutgoingPart
from tests.channels.email.relay import SecureRelay
from tests.channels.email.servers import BOT, PASSWORD, MailServer, written

NUMBERS = count(1)
ANNA = "anna@people.example"
FORGED = "evil.example; dkim=pass header.d=people.example"


class Desk:
    """A Deliver that remembers what came, with its files, and where to go on; `mail` waits for so many."""

    def __init__(self, channel: Email) -> None:
        self._channel = channel
        self.came: list[Incoming] = []
        self.files: list[tuple[str, bytes]] = []
        self.resume = ""
        self._more = asyncio.Condition()

    @property
    def texts(self) -> list[str]:
        return [each.text for each in self.came]

    async def __call__(self, incoming: Incoming, resume: str = "") -> Delivered:
        self.files += [await self._channel.fetch(ref, 10**6) for ref in incoming.files]
        async with self._more:
            self.came.append(incoming)
            self.resume = resume or self.resume
            self._more.notify_all()
        return Delivered()

    async def skip_to(self, resume: str) -> None:
        async with self._more:
            self.resume = resume
            self._more.notify_all()

    async def mail(self, number: int) -> None:
        async with asyncio.timeout(20), self._more:
            await self._more.wait_for(lambda: len(self.came) >= number)

    async def placed(self) -> None:
        async with asyncio.timeout(20), self._more:
            await self._more.wait_for(lambda: self.resume)


class Box:
    """A mailbox of its own on the server."""

    def __init__(self, server: MailServer, http: TrustedHttp) -> None:
        self.server = server
        self.address = f"box{next(NUMBERS)}@agent.example"
        self._http = http

    def channel(self, **settings: object) -> Email:
        return open_channel(self.server.settings(address=self.address, **{"senders": "any", **settings}), self._http)

    @asynccontextmanager
    async def listening(self, resume: str = "", **settings: object) -> AsyncIterator[Desk]:
        channel = self.channel(**settings)
        desk = Desk(channel)
        desk.resume = resume
        running = asyncio.ensure_future(channel.run(desk, resume))
        try:
            await desk.placed()
            yield desk
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def post(self, raw: bytes) -> None:
        """Returns when it lies in the mailbox."""
        there = self.server.names(self.address)
        await asyncio.to_thread(self.server.post, raw, ANNA, self.address)
        while self.server.names(self.address) <= there:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def flags(self, wanted: list[str]) -> None:
        """Wait until the mails have these, in the order in which they came."""
        while [*self.server.flags(self.address).values()] != wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.fixture
def box(server: MailServer, http: TrustedHttp) -> Box:
    return Box(server, http)


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_both_servers_are_spoken_with_over_tls(server: MailServer, http: TrustedHttp, security: str):
    async with SecureRelay(server, security).open() as relay:
        channel = open_channel({**server.settings(security, senders="any"), "smtp_port": relay.port}, http)
        probed = await channel.probe()
        assert (probed.account, probed.link) == (BOT, f"mailto:{BOT}")
        part = OutgoingPart(key=security, address=Address("email", f"{security}@people.example"), text="hi")
        id = await channel.send(part)
    while not (mails := server.mails(f"{security}@people.example")):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert [mail["Message-ID"] for mail in mails] == [f"<{id}>"]


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_a_certificate_that_nobody_vouches_for_is_refused(server: MailServer, security: str):
    stranger = TrustedHttp()
    async with SecureRelay(server, security).open() as relay:
        channel = open_channel({**server.settings(security), "smtp_port": relay.port}, stranger)
        for trying in (channel.probe(), channel.send(OutgoingPart(key="k", address=Address("email", ANNA), text="hi"))):
            with pytest.raises(ChannelDown, match="certificate that is not trusted"):
                await trying
    await stranger.close()


async def test_a_wrong_password_is_told_with_what_to_do_and_never_repeated(
    server: MailServer, http: TrustedHttp, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    async with SecureRelay(server, "tls").open() as relay:
        wrong = {"password": "wrong-canary-password", "smtp_port": relay.port}
        channel = open_channel({**server.settings("tls"), **wrong}, http)
        with pytest.raises(ChannelRefused, match="app password") as raised:
            await channel.probe()
        with pytest.raises(ChannelDown, match="app password") as failed:
            await channel.send(OutgoingPart(key="k", address=Address("email", ANNA), text="hi"))
    told = f"{raised.value} {failed.value} {caplog.text}"
    assert ("wrong-canary-password" in told, PASSWORD in told) == (False, False)


async def test_old_mails_are_nobodys_business_at_the_first_start(box: Box):
    await box.post(written("old", id="old@x"))
    async with box.listening() as desk:
        await box.post(written("new", id="new@x"))
        await desk.mail(1)
        await box.flags(["", "S"])
    assert (desk.texts, desk.resume.split("/")[1:2], desk.resume.split("/")[3]) == (["new"], ["2"], "taken")


async def test_unread_mails_of_some_days_are_taken_if_that_is_wanted(box: Box):
    await box.post(written("old", id="old@x"))
    async with box.listening(unseen_days=3) as desk:
        await desk.mail(1)
    async with box.listening(unseen_days=3) as again:
        await box.post(written("new", id="new@x"))
        await again.mail(1)
    assert (desk.texts, again.texts) == (["old"], ["new"])


async def test_what_came_meanwhile_is_taken_in_its_order_and_what_was_not_marked_is(box: Box):
    async with box.listening() as desk:
        await box.post(written("one", id="1@x"))
        await desk.mail(1)
        await box.flags(["S"])
    first = desk.resume
    await asyncio.to_thread(_unmark, box)
    for number in ("two", "three"):
        await box.post(written(number, id=f"{number}@x"))
    async with box.listening(first) as later:
        await later.mail(2)
        await box.flags(["S", "S", "S"])
    assert later.texts == ["two", "three"]


def _unmark(box: Box) -> None:
    import imaplib

    with imaplib.IMAP4("127.0.0.1", box.server.ports["imap"]) as client:
        client.login(box.address, PASSWORD)
        client.select("INBOX")
        client.store("1", "-FLAGS", "\\Seen")


async def test_a_mailbox_that_is_numbered_anew_hands_in_nothing_old_and_knows_what_it_had(box: Box):
    old = format_datetime(datetime.fromtimestamp(time.time() - 30 * 86_400, UTC))
    await box.post(written("from before", id="0@x", Date=old))
    async with box.listening() as desk:
        await box.post(written("one", id="1@x"))
        await desk.mail(1)
        await box.flags(["", "S"])
    while time.time() < int(desk.resume.split("/")[0]) + 1:  # noqa: ASYNC110  a UIDVALIDITY is the second it was given in
        await asyncio.sleep(0.01)
    folder = box.server.folder / "mail" / box.address
    for file in [*folder.glob("dovecot*"), *folder.glob("*/dovecot*")]:
        file.unlink(missing_ok=True)  # a lock is gone by itself
    await box.post(written("two", id="2@x"))
    async with box.listening("9" + desk.resume) as later:  # as if its UIDVALIDITY had been another
        await later.mail(2)
        await box.post(written("three", id="3@x"))
        await later.mail(3)
    assert (sorted(later.texts[:2]), later.texts[2]) == (["one", "two"], "three")
    known = [each.event for each in later.came if each.text == "one"]
    assert known == [desk.came[0].event]  # by which the house knows it
    assert desk.resume.split("/")[0] != later.resume.split("/")[0]


async def test_a_mail_that_is_too_large_is_told_and_one_that_is_broken_passed_by(
    box: Box, caplog: pytest.LogCaptureFixture
):
    async with box.listening(largest_mail=10_000) as desk:
        await box.post(written("x" * 20_000, id="1@x", Subject="photos", In_Reply_To="<0@x>"))
        await box.post(b"From: a@x.example, b@x.example\r\nSubject: two people\r\n\r\nhi\r\n")
        await box.post(written("hello", id="3@x"))
        await desk.mail(2)
    assert desk.texts == ["[a mail of 0 MB came, which is too large to be read. Subject: photos]", "hello"]
    assert "mail 2 is passed by: its From header names a group, several people or nobody" in caplog.text


async def test_files_come_with_a_mail_and_go_with_an_answer(box: Box):
    message = EmailMessage()
    message["From"], message["Message-ID"], message["Subject"] = ANNA, "<1@x>", "look"
    message.set_content("at this")
    message.add_attachment(b"\0\1" * 5000, "application", "octet-stream", filename="grüße.bin")
    async with box.listening() as desk:
        await box.post(message.as_bytes())
        await desk.mail(1)
    incoming = desk.came[0]
    assert (incoming.text, desk.files) == ("Subject: look\n\nat this", [("grüße.bin", b"\0\1" * 5000)])
    again = box.channel()
    assert await again.fetch(incoming.files[0], 10**6) == desk.files[0]
    with pytest.raises(Undeliverable, match="more than 5"):
        await again.fetch(incoming.files[0], 5)
    address = Address("email", "reader@people.example", incoming.thread)
    file = OutgoingFile("a.bin", "application/octet-stream", b"x" * 1000)
    await box.channel().send(
        OutgoingPart(key="k", address=address, text="here", reply_to=incoming.reply_to, files=(file,))
    )
    while not (mails := box.server.mails("reader@people.example")):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert [(each.get_filename(), each.get_content()) for each in mails[0].iter_attachments()] == [
        ("a.bin", b"x" * 1000)
    ]


async def test_what_is_taken_goes_to_a_folder_if_one_is_named(box: Box):
    async with box.listening(done_folder="Done") as desk:
        await box.post(written("one", id="1@x"))
        await desk.mail(1)
        await box.flags([])
    done = box.server.folder / "mail" / box.address / ".Done"
    assert [file.name.rpartition(",")[2] for file in done.glob("cur/*")] == ["S"]


async def test_a_sender_is_a_stranger_unless_the_named_server_vouches(box: Box, caplog: pytest.LogCaptureFixture):
    good = {"Authentication_Results": "mx.agent.example; dkim=pass header.d=people.example"}
    async with box.listening(senders="verified", authserv_id="mx.agent.example") as desk:
        await box.post(written("really", id="1@x", **good))
        await box.post(
            written("forged", id="2@x", Authentication_Results="evil.example; dkim=pass header.d=people.example")
        )
        await desk.mail(2)
    assert [(each.text, each.account) for each in desk.came] == [("really", ANNA), ("forged", f"unverified:{ANNA}")]
    assert "is not verified by mx.agent.example (the topmost result is of evil.example)" in caplog.text
    probed = await box.channel(senders="verified", authserv_id="mx.other.example", done_folder="Nowhere").probe()
    assert probed.missing[0].startswith("There is no folder 'Nowhere'")
    probed = await box.channel(senders="verified").probe()
    told = "set channels.email.authserv_id to the one that is your own server's."
    named = f"The last mails name mx.agent.example, evil.example: {told}"
    assert probed.missing == (f"Every sender is a stranger until authserv_id names your mail server. {named}",)
    assert (await box.channel(senders="verified", authserv_id="mx.agent.example").probe()).missing == ()


async def test_machines_are_passed_by_and_left_unread(box: Box):
    async with box.listening() as desk:
        await box.post(written("out of office", id="1@x", Auto_Submitted="auto-replied"))
        await box.post(written("hello", id="2@x"))
        await desk.mail(1)
        await box.flags(["", "S"])
    assert desk.texts == ["hello"]


def test_two_machines_that_answer_each_other_are_stopped():
    now = [0.0]
    guard = LoopGuard(lambda: now[0])
    assert [guard.stops("a", "t") for _ in range(LOOP_MAILS + 2)] == [False] * LOOP_MAILS + [True] * 2
    assert (guard.stops("a", "other"), guard.stops("b", "t")) == (False, False)
    now[0] = LOOP_SECONDS + 1
    assert guard.stops("a", "t") is False


@pytest.mark.parametrize(("most", "apart"), [(SENDER_MAILS, 1.0), (DAILY_MAILS, 300.0)])
def test_so_is_one_that_begins_a_new_thread_with_each_mail_also_when_it_is_slow(most, apart):
    now = [0.0]
    guard = LoopGuard(lambda: now[0])

    def comes(number: int) -> bool:
        now[0] += apart
        return guard.stops("a", f"ticket {number}")

    assert [comes(number) for number in range(most + 2)] == [False] * most + [True] * 2
    assert guard.stops("b", "ticket 1") is False
    now[0] += DAY
    assert guard.stops("a", "t") is False


def test_whoever_writes_from_many_addresses_fills_no_memory():
    guard = LoopGuard(lambda: 0.0)
    for number in range(REMEMBERED):
        guard.stops(f"{number}", "t")
    assert len(guard._came) == REMEMBERED
