"""Who wrote a mail: what anyone can write into one is never enough to be taken for somebody who is known here."""

import pytest

from everloop.channels.email.addresses import BadAddress, Mailbox, account_of, read_mailbox
from everloop.channels.email.authentication import judge, read_results
from everloop.channels.email.codec import Ours, UnreadableMail, read_mail

ID = "mx.agent.example"
OURS = Ours("bot@agent.example", (ID,))
GOOD = f"{ID}; dmarc=pass (p=reject) header.from=people.example"


@pytest.mark.parametrize(
    "header, mailbox",
    [
        ("anna@people.example", Mailbox("anna@people.example", "anna@people.example")),
        ("Anna <Anna@People.Example>", Mailbox("Anna@People.Example", "anna@people.example", "Anna")),
        ('"Anna, you" <anna@people.example>', Mailbox("anna@people.example", "anna@people.example", "Anna, you")),
        ("anna@people.example (Anna (really))", Mailbox("anna@people.example", "anna@people.example")),
        ("=?utf-8?q?J=C3=BCrgen?= <j@people.example>", Mailbox("j@people.example", "j@people.example", "Jürgen")),
        ("j@b\u00fccher.example", Mailbox("j@b\u00fccher.example", "j@xn--bcher-kva.example")),
        ("<a.b+c@people.example>", Mailbox("a.b+c@people.example", "a.b+c@people.example")),
        # the name is what people see, never who it is
        ('"anna@a.example" <eve@evil.example>', Mailbox("eve@evil.example", "eve@evil.example", "anna@a.example")),
        ("anna@a.example <eve@evil.example>", Mailbox("eve@evil.example", "eve@evil.example", "anna@a.example")),
        (
            "=?utf-8?q?Anna_=3Canna=40people=2Eexample=3E?= <eve@evil.example>",
            Mailbox("eve@evil.example", "eve@evil.example", "Anna <anna@people.example>"),
        ),
        ("(anna@people.example) eve@evil.example", Mailbox("eve@evil.example", "eve@evil.example")),
    ],
)  # fmt: skip
def test_a_from_header_names_one_mailbox(header: str, mailbox: Mailbox):
    assert read_mailbox(header) == mailbox


@pytest.mark.parametrize(
    "header",
    [
        "", "<>", "Anna", "anna@", "@people.example", "anna@people.example, eve@evil.example",
        "<anna@people.example> <eve@evil.example>", "friends: anna@people.example;", "anna@people.example;",
        "<@evil.example:anna@people.example>", '"anna@people.example', "anna@people.example (", 'a"b@people.example',
        '"an na"@people.example', "an(x)na@people.example", "anna@people(x).example", "anna@people.example>",
        "<anna@people.example", "<=?utf-8?q?anna=40people=2Eexample?=>", "=?utf-8?q?anna=40people=2Eexample?=",
        "anna@[127.0.0.1]", "anna@people..example", ".anna@people.example", "anna@-people.example",
        "anna@people.example.", "anna@people.example eve@evil.example", "<anna@people.example> eve",
        "anna@evil.example@people.example",
        "anna\u200b@people.example", "an\u202ena@people.example", "anna@\uff50eople.example",
        "anna@people\u3002example", "a" * 250 + "@people.example", "anna@" + "x" * 64 + ".example",
        "undisclosed-recipients:;",
    ],
)  # fmt: skip
def test_what_could_be_read_in_two_ways_is_nobody(header: str):
    with pytest.raises(BadAddress):
        read_mailbox(header)


@pytest.mark.parametrize(
    "other",
    ["\u0430nna@people.example", "anna@p\u0435ople.example", "Anna\u0307@people.example", "\u212aim@people.example"],
)
def test_letters_that_look_alike_are_other_people(other: str):
    assert account_of(other) not in ("anna@people.example", "kim@people.example")


@pytest.mark.parametrize(
    "headers, verdict",
    [
        ([GOOD], "pass"),
        ([f"{ID} 1; dkim=pass header.d=people.example"], "pass"),
        ([f"{ID}; dkim=pass header.i=@people.example"], "pass"),
        ([f"{ID}; dkim=fail header.d=evil.example; dkim=pass header.d=people.example"], "pass"),
        ([f"{ID}; spf=pass smtp.mailfrom=anna@people.example"], "pass"),
        ([f"{ID};\r\n\tspf=pass (x)\r\n\tsmtp.mailfrom=people.example"], "pass"),
        ([f"{ID.upper()}; dmarc=pass header.from=PEOPLE.example"], "pass"),
        # nobody vouches
        ([], "none"),
        ([f"{ID}; none"], "none"),
        ([f"{ID}; dmarc=none header.from=people.example; spf=softfail smtp.mailfrom=people.example"], "none"),
        ([f"{ID}; dkim=pass header.d=evil.example; spf=pass smtp.mailfrom=evil.example"], "none"),
        ([f"{ID}; dmarc=pass header.from=evil.example"], "none"),
        ([f"{ID}; dmarc=pass"], "none"),
        ([f"{ID}; dkim=pass header.d=x.people.example"], "none"),
        ([f"{ID}; dkim=pass header.d=example"], "none"),
        ([f"{ID}; dkim=pass header.d=evilpeople.example"], "none"),
        ([f"{ID}; spf=pass smtp.helo=people.example"], "none"),
        ([f"{ID}; iprev=pass policy.iprev=1.2.3.4 header.from=people.example"], "none"),
        # written by others
        (["evil.example; dmarc=pass header.from=people.example"], "none"),
        ([f"{ID}.evil.example; dmarc=pass header.from=people.example"], "none"),
        ([f"evil.example; x=y {ID}; dmarc=pass header.from=people.example"], "none"),
        ([f"({ID}) evil.example; dmarc=pass header.from=people.example"], "none"),
        ([f"{ID}; dmarc=none", GOOD], "none"),
        ([f"{ID}; spf=none", "other.example; spf=pass", GOOD], "none"),
        # the other server's is passed over, ours below it counts
        (["filter.example; spf=fail", GOOD], "pass"),
        # what somebody wrote into it says nothing
        ([f"{ID}; spf=fail (dkim=pass header.d=people.example) smtp.mailfrom=eve@evil.example"], "none"),
        ([f'{ID}; spf=pass smtp.mailfrom="a; dmarc=pass header.from=people.example"@evil.example'], "none"),
        ([f'{ID}; spf=pass smtp.mailfrom="x dkim=pass header.d=people.example"@evil.example'], "none"),
        ([f'{ID}; spf=pass smtp.mailfrom="a@people.example"@evil.example'], "none"),
        ([f"{ID}; dmarc=none (; dmarc=pass header.from=people.example"], "none"),
        ([f'{ID}; dmarc=none reason="; dmarc=pass header.from=people.example'], "none"),
        ([f"{ID}; spf=pass smtp.mailfrom=evil.example smtp.mailfrom=people.example"], "none"),
        # said to be forged
        ([f"{ID}; dmarc=fail (p=reject) header.from=people.example; dkim=pass header.d=people.example"], "fail"),
        ([f"{ID}; dmarc=pass header.from=people.example; dmarc=fail header.from=people.example"], "fail"),
    ],
)  # fmt: skip
def test_our_own_server_alone_says_who_wrote_a_mail(headers: list[str], verdict: str):
    assert judge(headers, OURS.servers, "people.example") == verdict


def test_without_a_name_for_our_server_nobody_vouches():
    assert judge([GOOD, "; dmarc=pass header.from=people.example", ""], (), "people.example") == "none"
    assert read_results("").server == ""


def mail(*headers: str, body: str = "hi") -> bytes:
    return "\r\n".join([*headers, "", body, ""]).encode("utf-8", "surrogateescape")


def seen(*headers: str, ours: Ours = OURS) -> tuple[str, str, bool]:
    found = read_mail(mail(*headers), "1/1", ours)
    return found.incoming.account, found.incoming.chat, found.verified


VERIFIED = f"Authentication-Results: {GOOD}"
ANNA = "From: Anna <anna@people.example>"


def test_a_sender_that_our_server_vouches_for_is_known_by_their_address():
    assert seen(VERIFIED, ANNA) == ("anna@people.example", "anna@people.example", True)


@pytest.mark.parametrize(
    "headers",
    [
        [ANNA],
        ["Authentication-Results: evil.example; dmarc=pass header.from=people.example", ANNA],
        [f"Authentication-Results: {ID}; dmarc=pass header.from=evil.example", ANNA],
        [f"X-Authentication-Results: {GOOD}", ANNA],
        [f"ARC-Authentication-Results: i=1; {GOOD}", ANNA],
        [f"Subject: x =?utf-8?q?=0D=0AAuthentication-Results:_{ID};_dmarc=3Dpass_header.from=3Dpeople.example?=", ANNA],
        [f"Authentication-Results: {ID}; dmarc=none", f"Authentication-Results: {GOOD}", ANNA],
    ],
)
def test_whoever_only_says_that_they_are_somebody_is_a_stranger_in_a_chat_of_their_own(headers: list[str]):
    wanted = "unverified:anna@people.example"
    assert seen(*headers) == (wanted, wanted, False)
    assert seen(*headers, ours=Ours("bot@agent.example", (), trusts_anyone=True))[0] == "anna@people.example"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        ["From: anna@people.example", "From: eve@evil.example"],
        ["From: eve@evil.example", "from : anna@people.example"],
        ["From: anna@people.example, eve@evil.example"],
        ["From: =?utf-8?q?anna=40people=2Eexample?="],
        ["From: anna\udcff@people.example"],
    ],
)
def test_a_mail_of_nobody_or_of_two_is_passed_by(headers: list[str]):
    with pytest.raises(UnreadableMail):
        read_mail(mail(VERIFIED, *headers), "1/1", OURS)


def test_a_forged_thread_or_event_leads_to_no_other_persons_conversation():
    anna = read_mail(mail(VERIFIED, ANNA, "Message-ID: <1@people.example>"), "1/1", OURS).incoming
    forged = read_mail(
        mail(ANNA, "Message-ID: <1@people.example>", "References: <1@people.example>"), "1/2", OURS
    ).incoming
    assert (anna.thread == forged.thread, anna.chat == forged.chat, anna.event == forged.event) == (True, False, False)


def test_what_our_server_calls_forged_is_not_answered():
    headers = (f"Authentication-Results: {ID}; dmarc=fail header.from=people.example", ANNA)
    assert read_mail(mail(*headers), "1/1", OURS).ignored == "its sender is forged, says our mail server (DMARC)"
    assert read_mail(mail(VERIFIED, ANNA), "1/1", OURS).ignored == ""
