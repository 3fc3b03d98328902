"""What becomes of an answer says the mail server: never, later, or perhaps."""

import pytest

from everloop.channels.email import open_channel
from everloop.channels.email.connections import MailServers
from everloop.channels.email.manifest import check_settings
from everloop.channels.email.smtp import Smtp, SmtpReply
from everloop.channels.email.writing import write_mail
from everloop.core.mail import Address
from everloop.errors import ChannelDown, ChannelRefused, EverloopError, HostHungUp, Undeliverable
from everloop.net.trusted import TrustedHttp
from everloop.ports.channel import OutgoingPart
from tests.channels.email.hosts import SmtpHost, hosting

PASSWORD = "canary-mail-password"
CODED = "AGJvdEBhZ2VudC5leGFtcGxlAGNhbmFyeS1tYWlsLXBhc3N3b3Jk"  # as AUTH PLAIN says it


def settings(smtp: int = 1, imap: int = 1) -> dict[str, object]:
    there = {"imap_host": "127.0.0.1", "imap_port": imap, "imap_security": "none", "smtp_host": "127.0.0.1"}
    return {"address": "bot@agent.example", "password": PASSWORD, **there, "smtp_port": smtp, "smtp_security": "none"}


def part(text: str = "hi", chat: str = "anna@people.example") -> OutgoingPart:
    return OutgoingPart(key="k", address=Address("email", chat), text=text)


async def send(host: SmtpHost, asked: OutgoingPart | None = None) -> str:
    http = TrustedHttp()
    try:
        async with hosting(host.serve) as port:
            return await open_channel(settings(port), http).send(asked or part())
    finally:
        await http.close()


async def test_a_mail_is_handed_over_whole():
    host = SmtpHost()
    id = await send(host, part("first\n\n.\n\nlast"))
    assert host.heard[:5] == [
        "EHLO agent.example",
        f"AUTH PLAIN {CODED}",
        f"MAIL FROM:<bot@agent.example> SIZE={len(host.mails[0]) - 4}",
        "RCPT TO:<anna@people.example>",
        "DATA",
    ]
    assert f"Message-ID: <{id}>".encode() in host.mails[0]
    assert b"\r\n..\r\n" in host.mails[0]


@pytest.mark.parametrize(
    "answers, error, after",
    [
        ({"greeting": ""}, ChannelDown, None),
        ({"greeting": "554 go away"}, ChannelDown, None),
        ({"greeting": "220-" + "x" * 5000}, ChannelDown, None),
        ({"greeting": "HTTP/1.1 400 Bad"}, ChannelDown, None),
        ({"EHLO": "421 busy"}, ChannelDown, None),
        ({"EHLO": "250-x\r\n" * 300 + "250 x"}, ChannelDown, None),
        ({"EHLO": ""}, ChannelDown, None),
        ({"AUTH": "535 5.7.8 wrong"}, ChannelDown, None),  # nothing is lost while the owner changes the password
        ({"AUTH": "454 later"}, ChannelDown, None),
        ({"MAIL": "451 not now"}, ChannelDown, None),
        ({"MAIL": "530 log in"}, ChannelDown, None),
        ({"MAIL": "552 too large"}, Undeliverable, None),
        ({"RCPT": "450 4.7.1 Greylisted, try again in 5 minutes"}, ChannelDown, 300.0),
        ({"RCPT": "451 4.7.1 please wait 30 seconds"}, ChannelDown, 30.0),
        ({"RCPT": "550 no such user"}, Undeliverable, None),
        ({"RCPT": ""}, ChannelDown, None),
        ({"DATA": "554 no"}, Undeliverable, None),
        ({"DATA": "421 no"}, ChannelDown, None),
        ({"dot": "554 spam"}, Undeliverable, None),
        ({"dot": "451 not now"}, ChannelDown, None),
        ({"dot": ""}, HostHungUp, None),  # it may have arrived
        ({"dot": "what?"}, HostHungUp, None),
        ({"EHLO": "250-here\r\n250 SIZE 100"}, Undeliverable, None),
    ],
)
async def test_what_a_server_says_is_never_later_or_perhaps(answers: dict[str, str], error: type, after: float | None):
    with pytest.raises(error) as raised:
        await send(SmtpHost(answers))
    assert type(raised.value) is error
    assert getattr(raised.value, "retry_after", None) == after


async def test_a_server_that_is_away_has_surely_taken_nothing():
    http = TrustedHttp()
    with pytest.raises(ChannelDown, match="cannot be reached"):
        await open_channel(settings(), http).send(part())
    await http.close()


@pytest.mark.parametrize("word, error", [("RCPT", ChannelDown), ("dot", HostHungUp)])
async def test_a_server_that_falls_silent_is_left(word: str, error: type):
    http, host = TrustedHttp(), SmtpHost({word: None})
    async with hosting(host.serve) as port, http.dial("127.0.0.1", port, tls=False) as stream:
        smtp = Smtp(stream, "there", patience=0.1, accepting=0.1)
        await smtp.greet("agent.example")
        with pytest.raises(error):
            await hand_over(smtp)
    await http.close()


async def hand_over(smtp: Smtp) -> None:
    await smtp.offer(write_mail(part(), "bot@agent.example", "", 0, 10**6))
    await smtp.finish()


async def test_a_login_in_two_steps_is_known():
    host = SmtpHost({"EHLO": "250-here\r\n250 AUTH=LOGIN", "AUTH": "334 VXNlcg==", "Ym90QGFnZW50LmV4YW1wbGU=": "334 x",
                     "Y2FuYXJ5LW1haWwtcGFzc3dvcmQ=": "235 in"})  # fmt: skip
    await send(host)
    assert host.heard[1:4] == ["AUTH LOGIN", "Ym90QGFnZW50LmV4YW1wbGU=", "Y2FuYXJ5LW1haWwtcGFzc3dvcmQ="]


@pytest.mark.parametrize(
    "answers",
    [
        {"AUTH": f"535 no: {PASSWORD} {CODED}"},
        {"AUTH": f"454 {CODED} {PASSWORD}"},
        {"MAIL": f"550 you said {PASSWORD} and {CODED}"},
        {"dot": f"554 {CODED}"},
    ],
)
async def test_no_error_tells_the_password_although_the_server_repeats_it(answers: dict[str, str]):
    with pytest.raises(EverloopError) as raised:
        await send(SmtpHost(answers))
    told = str(raised.value)
    assert (PASSWORD in told, CODED in told) == (False, False)
    assert "…" in told


async def test_a_server_that_refuses_the_password_is_told_as_such_when_it_is_tried():
    http, host = TrustedHttp(), SmtpHost({"AUTH": "535 5.7.8 wrong"})
    async with hosting(host.serve) as port:
        servers = MailServers(check_settings(settings(port)), http)
        with pytest.raises(ChannelRefused, match="app password"):
            async with servers.smtp():
                pass
    await http.close()


async def test_without_tls_no_password_is_sent():
    http, host = TrustedHttp(), SmtpHost()
    async with hosting(host.serve) as port:
        with pytest.raises(ChannelDown, match="offers no STARTTLS"):
            await open_channel({**settings(port), "smtp_security": "starttls"}, http).send(part())
    assert host.heard == ["EHLO agent.example"]
    await http.close()


async def test_an_address_beyond_ascii_wants_a_server_that_knows_them():
    with pytest.raises(Undeliverable, match="SMTPUTF8"):
        await send(SmtpHost(), part(chat="%C3%A4nna@people.example"))
    host = SmtpHost({"EHLO": "250-here\r\n250 SMTPUTF8"})
    await send(host, part(chat="%C3%A4nna@people.example"))
    assert host.heard[1:3] == ["MAIL FROM:<bot@agent.example> SMTPUTF8", "RCPT TO:<änna@people.example>"]


def test_seconds_are_read_from_words_that_mean_them():
    said = ["in 10 seconds", "after 2 min", "for 1 hour", "wait 5 s", "550 users in 3 states", "in 99999999 s"]
    assert [SmtpReply(451, (each,)).retry_after for each in said] == [10.0, 120.0, 3600.0, 5.0, None, None]
