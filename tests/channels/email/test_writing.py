"""An answer as a mail: in its thread, to the one person it is for, and never more than its headers say."""

from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

import msgspec
import pytest

from everloop.channels.email.codec import MailThread, Ours, read_mail
from everloop.channels.email.smtp import stuffed
from everloop.channels.email.writing import Envelope, write_mail
from everloop.core.mail import Address, ReplyTo
from everloop.errors import Undeliverable
from everloop.ports.channel import OutgoingFile, OutgoingPart
from everloop.readings.keys import escaped

BOT = "bot@agent.example"
THREAD = MailThread("Anna@People.example", "Wäsche", "1@people.example", ["0@people.example"])


def part(
    text: str = "**hi**", thread: MailThread = THREAD, chat: str = "anna@people.example", **more: object
) -> OutgoingPart:
    reply_to = ReplyTo(msgspec.json.encode(thread).decode())
    address = Address("email", escaped(chat), "ab" * 10)
    return OutgoingPart(**{"key": "k", "address": address, "text": text, "reply_to": reply_to, **more})  # type: ignore[arg-type]


def write(asked: OutgoingPart, name: str = "", limit: int = 10**6) -> tuple[Envelope, EmailMessage]:
    envelope = write_mail(asked, BOT, name, 1_790_000_000.0, limit)
    message = message_from_bytes(envelope.data, policy=default)
    assert isinstance(message, EmailMessage)
    return envelope, message


def test_an_answer_stands_in_its_thread():
    envelope, message = write(part())
    assert (envelope.sender, envelope.recipient) == (BOT, "Anna@people.example")
    names = ("From", "To", "Subject", "In-Reply-To", "References", "Auto-Submitted", "X-Auto-Response-Suppress")
    assert {name: message[name] for name in names} == {
        "From": BOT,
        "To": "Anna@people.example",
        "Subject": "Re: Wäsche",
        "In-Reply-To": "<1@people.example>",
        "References": "<0@people.example> <1@people.example>",
        "Auto-Submitted": "auto-replied",
        "X-Auto-Response-Suppress": "All",
    }
    assert message["Message-ID"] == f"<{envelope.id}>"
    plain, html = (message.get_body((kind,)) for kind in ("plain", "html"))
    assert plain
    assert html
    assert plain.get_content().strip() == "hi"
    assert html.get_content().strip() == "<!DOCTYPE html><html><body><p><strong>hi</strong></p></body></html>"


def test_an_attempt_has_the_same_id_and_another_part_another():
    assert write(part())[0].id == write(part("(may be repeated) hi"))[0].id != write(part(key="k/1"))[0].id


def test_what_we_say_first_has_a_subject_of_its_own():
    _, message = write(part("# Your tea\n\nis ready", MailThread("")))
    told = (message["Subject"], message["In-Reply-To"], message["Auto-Submitted"], message["To"])
    assert told == ("Your tea", None, "auto-generated", "anna@people.example")


def test_our_own_answers_are_automatic_to_others_of_our_kind():
    envelope, _ = write(part())
    assert read_mail(envelope.data, "1/1", Ours("other@elsewhere.example", (), trusts_anyone=True)).ignored


@pytest.mark.parametrize(
    "evil",
    [
        "x\r\nBcc: eve@evil.example", "x\nBcc: y@z", "x\rBcc: y@z", "x\0\x0b\u2028Bcc: y@z", "x\r\n\r\nbody",
        "=?utf-8?q?x=0D=0ABcc:_eve=40evil.example?=", "a =?utf-8?b?eA0KQmNjOiBldmVAZXZpbC5leGFtcGxl?= b", "\ud800",
        'x"; filename="y.exe', "x\\",
    ],
)  # fmt: skip
def test_nothing_that_others_wrote_becomes_a_header(evil: str):
    safe = evil.encode("utf-8", "replace").decode()
    thread = MailThread("anna@people.example", safe, "1@people.example", [])
    files = (OutgoingFile(safe, "text/plain\r\nBcc: x", b"data"), OutgoingFile(evil, evil, b"data"))
    envelope, message = write(part(evil, thread, files=files), name=evil)
    assert sorted(message.keys()) == sorted(
        ["From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "X-Auto-Response-Suppress", "In-Reply-To",
         "References", "MIME-Version", "Content-Type"]
    )  # fmt: skip
    assert message.defects == []
    for attached in message.iter_attachments():
        assert sorted(attached.keys()) == [
            "Content-Disposition",
            "Content-Transfer-Encoding",
            "Content-Type",
            "MIME-Version",
        ]
    assert b"\nBcc:" not in envelope.data.partition(b"\r\n\r\n")[0]


def test_ids_that_are_none_are_not_named_again():
    raw = (
        b"From: anna@people.example\nReferences: <a b@x> <\xff@x> <0@x.example>\n <"
        + b"y" * 300
        + b"@x>\nMessage-ID: <1@x.example>\n\nhi"
    )
    incoming = read_mail(raw, "1/1", Ours(BOT, (), trusts_anyone=True)).incoming
    _, message = write(part(reply_to=incoming.reply_to))
    assert message["References"] == "<0@x.example> <1@x.example>"


def test_a_long_thread_keeps_its_root_and_its_end_each_on_a_line():
    ids = [f"{'i' * 100}{number}@x.example" for number in range(60)]
    head = "\n ".join(f"<{id}>" for id in ids)
    raw = f"From: anna@people.example\nReferences: {head}\nMessage-ID: <own@x.example>\n\nhi".encode()
    incoming = read_mail(raw, "1/1", Ours(BOT, (), trusts_anyone=True)).incoming
    envelope, message = write(part(reply_to=incoming.reply_to))
    named = str(message["References"]).split()
    assert (named[0], named[-2:], len(named)) == (f"<{ids[0]}>", [f"<{ids[-1]}>", "<own@x.example>"], 20)
    assert max(map(len, envelope.data.split(b"\r\n"))) < 200


@pytest.mark.parametrize("chat", ["anna@people.example", "unverified:anna@people.example"])
def test_an_answer_goes_to_whoever_the_chat_is_with_and_nobody_else(chat: str):
    other = MailThread("eve@evil.example", "x", "1@evil.example", [])
    envelope, message = write(part(thread=other, chat=chat))
    assert (envelope.recipient, message["In-Reply-To"]) == ("anna@people.example", None)


@pytest.mark.parametrize(
    "chat", ["nobody", "a b@x.example", "a@x.example>\r\nRCPT TO:<eve@evil.example", "@", "a@x..example"]
)
def test_a_chat_that_is_no_address_is_never_written_to(chat: str):
    with pytest.raises(Undeliverable, match="is no e-mail address"):
        write(part(thread=MailThread(""), chat=chat))


def test_files_go_along_as_far_as_the_server_takes_them():
    small, large = (
        OutgoingFile("a.txt", "text/plain", b"x" * 1000),
        OutgoingFile("b.bin", "x/y", b"x" * 90_000, "https://h/b"),
    )
    _, message = write(part("see", files=(small, large, OutgoingFile("c.bin", "x/y"))), limit=100_000)
    assert [(each.get_filename(), each.get_content_type()) for each in message.iter_attachments()] == [
        ("a.txt", "text/plain")
    ]
    body = message.get_body(("plain",))
    assert body
    assert body.get_content().split() == [
        *("see", "b.bin:", "https://h/b", "c.bin"),
        *["(not", "sent", "here;", "the", "page", "has", "its", "files", "under", "Files)"],
    ]


@pytest.mark.parametrize(
    "data, said",
    [
        (b"a\r\n.\r\nMAIL FROM:<x>\r\n", b"a\r\n..\r\nMAIL FROM:<x>\r\n"),
        (b".a\r\n..b", b"..a\r\n...b\r\n"),
        (b"a\n.\nb", b"a\r\n..\r\nb\r\n"),
        (b"a\r.\rb", b"a\r\n..\r\nb\r\n"),
        (b"a\r\n.\rb\n", b"a\r\n..\r\nb\r\n\r\n"),
        (b"", b"\r\n"),
    ],
)
def test_nothing_in_a_mail_ends_it(data: bytes, said: bytes):
    assert stuffed(data) == said
