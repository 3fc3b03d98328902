"""What the e-mail channel is, how it is set up, and its settings."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, structs

from ...errors import SettingsError
from ...ports.channel import Manifest, Setup, SetupField, Traits
from ..settings import HERE, check_names, read_settings
from .presets import PRESETS

LARGEST_FILE = (
    15_000_000  # bytes that go out as an attachment; many servers take mails of 25 MB, a third of which is coding
)
MANIFEST = Manifest("email", Traits(files=LARGEST_FILE, enclosed=True))
SETUP = Setup(
    title="E-mail",
    steps=(
        "Take a mailbox that is the agent's alone: it reads every new mail there, and answers.",
        "With Gmail, iCloud, Yahoo, Fastmail and others make an app password: the account's own is refused. IMAP must "
        "be switched on.",
        "For gmail.com, icloud.com, yahoo.com, fastmail.com, gmx.net, web.de, posteo.de and mailbox.org the servers "
        "are known; for others give imap_host and smtp_host.",
        "`everloop channels test email` says which authserv_id your server writes into its mails; set it in the "
        "settings file, for a sender is believed only if your server vouches for them.",
    ),
    fields=(
        SetupField("address", "The mailbox's address"),
        SetupField("password", "Its password, or an app password", secret=True),
        SetupField("imap_host", "IMAP server (empty for a known provider)", optional=True),
        SetupField("smtp_host", "SMTP server (empty for a known provider)", optional=True),
        SetupField("authserv_id", "The authserv-id of your mail server, if you know it", optional=True),
    ),
)

Security = Literal["", "tls", "starttls", "none"]
Port = Annotated[int, Meta(ge=1, le=65535)]
_IMPLICIT = (993, 465)  # where TLS is spoken from the first byte on


class MailAccount(Struct, forbid_unknown_fields=True, frozen=True):
    """The settings `channels.email`. Without hosts those of the address's provider are taken, without a user name the
    address. Security is `tls` (from the start), `starttls` or `none`; "" is what the port is known for."""

    address: str
    password: str
    username: str = ""
    name: str = ""
    imap_host: str = ""
    imap_port: Port = 993
    imap_security: Security = ""
    smtp_host: str = ""
    smtp_port: Port = 465
    smtp_security: Security = ""
    allow_plain_text: bool = False
    folder: str = "INBOX"
    done_folder: str = ""
    senders: Literal["verified", "any"] = "verified"
    authserv_id: str = ""
    unseen_days: Annotated[int, Meta(ge=0, le=365)] = 0
    largest_mail: Annotated[int, Meta(ge=10_000, le=100_000_000)] = 25_000_000
    poll_seconds: Annotated[int, Meta(ge=1, le=3600)] = 60

    @property
    def servers(self) -> tuple[str, ...]:
        """The names by which the receiving server may call itself."""
        return tuple(self.authserv_id.lower().replace(",", " ").split())


def check_keys(values: Mapping[str, Any]) -> None:
    """Raises SettingsError for one that means nothing."""
    check_names("email", values, MailAccount)


def check_settings(values: Mapping[str, Any]) -> MailAccount:
    """What they say, whole. Raises SettingsError."""
    from .addresses import BadAddress, account_of

    chosen = read_settings("email", values, MailAccount)
    try:
        domain = account_of(chosen.address).rpartition("@")[2]
    except BadAddress as error:
        raise SettingsError("channels.email.address is an address such as agent@example.org") from error
    chosen = _completed(chosen, domain, {name for name, value in values.items() if value != ""})
    for name in ("username", "password", "name", "folder", "done_folder", "imap_host", "smtp_host"):
        if not getattr(chosen, name).isprintable():
            raise SettingsError(f"channels.email.{name} has a line break in it, or what cannot be seen")
    if not chosen.password:
        raise SettingsError("channels.email.password is empty; many providers want an app password there")
    _check_security(chosen)
    return chosen


def _completed(chosen: MailAccount, domain: str, given: set[str]) -> MailAccount:
    known = dict(PRESETS.get(domain, {}))
    if not (chosen.imap_host and chosen.smtp_host) and not known:
        missing = "imap_host" if not chosen.imap_host else "smtp_host"
        raise SettingsError(f"channels.email.{missing} is missing: the servers of {domain} are not known here")
    if chosen.imap_host and chosen.imap_host != known.get("imap_host"):
        known = {}  # what a provider calls itself is worth nothing for another's server
    filled = structs.replace(chosen, **{name: value for name, value in known.items() if name not in given})
    return structs.replace(
        filled,
        username=filled.username or filled.address,
        imap_security=filled.imap_security or _usual(filled.imap_port),
        smtp_security=filled.smtp_security or _usual(filled.smtp_port),
    )


def _usual(port: int) -> Security:
    return "tls" if port in _IMPLICIT else "starttls"


def _check_security(chosen: MailAccount) -> None:
    for kind in ("imap", "smtp"):
        host, security = getattr(chosen, f"{kind}_host"), getattr(chosen, f"{kind}_security")
        if security == "none" and host not in HERE and not chosen.allow_plain_text:
            raise SettingsError(
                f"channels.email.{kind}_security is none, so that anyone in between could read the password; this is "
                f"taken for this machine alone, or with channels.email.allow_plain_text"
            )
