"""What the settings of a mailbox say, and what they cannot say."""

import subprocess
import sys

import pytest

from everloop.channels.email import MANIFEST, SETUP, check_keys, check_settings, open_channel
from everloop.errors import SettingsError
from everloop.net.trusted import TrustedHttp
from everloop.ports.http import Http

GIVEN = {"address": "bot@agent.example", "password": "canary-mail-password"}
HOSTS = {"imap_host": "imap.agent.example", "smtp_host": "smtp.agent.example"}


def test_a_known_provider_has_its_servers():
    chosen = check_settings({**GIVEN, "address": "Bot@Gmail.com"})
    there = (
        chosen.imap_host,
        chosen.imap_port,
        chosen.imap_security,
        chosen.smtp_host,
        chosen.smtp_port,
        chosen.smtp_security,
    )
    assert there == ("imap.gmail.com", 993, "tls", "smtp.gmail.com", 465, "tls")
    assert (chosen.username, chosen.servers) == ("Bot@Gmail.com", ("mx.google.com",))
    icloud = check_settings({**GIVEN, "address": "bot@icloud.com"})
    assert (icloud.smtp_port, icloud.smtp_security) == (587, "starttls")


def test_what_is_given_takes_its_place():
    chosen = check_settings(
        {**GIVEN, "address": "bot@icloud.com", "smtp_port": "465", "username": "bot", "authserv_id": "a.x, B.x"}
    )
    assert (chosen.imap_host, chosen.smtp_port, chosen.username, chosen.servers) == (
        "imap.mail.me.com",
        465,
        "bot",
        ("a.x", "b.x"),
    )
    own = check_settings({**GIVEN, "address": "bot@gmail.com", **HOSTS, "smtp_port": 587})
    assert (own.imap_host, own.smtp_security, own.servers) == ("imap.agent.example", "starttls", ())


@pytest.mark.parametrize(
    "values, sentence",
    [
        ({}, "address is missing"),
        ({"address": "bot@agent.example"}, "password is missing"),
        ({**GIVEN, **HOSTS, "password": ""}, "channels.email.password is empty"),
        (GIVEN, "channels.email.imap_host is missing: the servers of agent.example are not known here"),
        ({**GIVEN, "imap_host": "x.example"}, "channels.email.smtp_host is missing"),
        ({**GIVEN, "address": "bot"}, "channels.email.address is an address such as"),
        ({**GIVEN, "address": "a@x.example\r\nBcc: y"}, "channels.email.address is an address such as"),
        ({**GIVEN, **HOSTS, "password": "canary-mail-password\r\nx"}, "channels.email.password has a line break"),
        ({**GIVEN, **HOSTS, "folder": "x\r\na DELETE y"}, "channels.email.folder has a line break"),
        ({**GIVEN, **HOSTS, "imap_security": "none"}, "channels.email.imap_security is none"),
        ({**GIVEN, **HOSTS, "smtp_security": "none"}, "channels.email.smtp_security is none"),
        ({**GIVEN, **HOSTS, "smtp_security": "ssl"}, "channels.email.smtp_security is one of tls, starttls, none"),
        ({**GIVEN, **HOSTS, "imap_port": 0}, "imap_port"),
        ({**GIVEN, **HOSTS, "senders": "everyone"}, "senders"),
        ({**GIVEN, **HOSTS, "imap": "x"}, "there is no setting channels.email.imap; the keys here are address"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_a_sentence(values: dict[str, object], sentence: str):
    with pytest.raises(SettingsError) as raised:
        check_settings(values)
    assert sentence in str(raised.value)
    assert "canary-mail-password" not in str(raised.value)


def test_plain_text_is_for_this_machine_or_for_who_says_so():
    here = {"imap_host": "127.0.0.1", "smtp_host": "localhost", "imap_security": "none", "smtp_security": "none"}
    assert check_settings({**GIVEN, **here}).imap_security == "none"
    assert check_settings({**GIVEN, **here, **HOSTS, "allow_plain_text": True}).smtp_security == "none"


def test_what_is_asked_for_is_a_setting_and_the_password_a_secret():
    check_keys({field.name: "x" for field in SETUP.fields})
    assert [field.name for field in SETUP.fields if field.secret] == ["password"]
    assert (MANIFEST.name, MANIFEST.traits.once) == ("email", False)


def test_a_network_client_that_cannot_dial_is_told():
    class Other:
        request = TrustedHttp.request

        async def close(self) -> None: ...

    stranger: Http = Other()  # type: ignore[assignment]
    with pytest.raises(SettingsError, match="Dials"):
        open_channel({**GIVEN, **HOSTS}, stranger)


def test_to_import_it_costs_nothing_until_it_is_enabled():
    heavy = "markdown_it", "email.message", "everloop.channels.email.wire", "idna", "html.parser"
    program = f"import sys, everloop.channels.email; print([name for name in {heavy} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
