"""The mail servers of well-known providers, by the domain of an address. A setting takes the place of each.

`authserv_id` stands where the provider is known to write one and the same name into all mails; `channels test email`
shows what stands in yours.
"""

from collections.abc import Mapping
from typing import Any


def _servers(imap: str, smtp: str, smtp_port: int = 465, **more: str) -> Mapping[str, Any]:
    return {"imap_host": imap, "smtp_host": smtp, "smtp_port": smtp_port, **more}


_GMAIL = _servers("imap.gmail.com", "smtp.gmail.com", authserv_id="mx.google.com")
_ICLOUD = _servers("imap.mail.me.com", "smtp.mail.me.com", 587)
_FASTMAIL = _servers("imap.fastmail.com", "smtp.fastmail.com")
_GMX = _servers("imap.gmx.net", "mail.gmx.net", 587)

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "gmail.com": _GMAIL,
    "googlemail.com": _GMAIL,
    "icloud.com": _ICLOUD,
    "me.com": _ICLOUD,
    "mac.com": _ICLOUD,
    "yahoo.com": _servers("imap.mail.yahoo.com", "smtp.mail.yahoo.com"),
    "fastmail.com": _FASTMAIL,
    "fastmail.fm": _FASTMAIL,
    "gmx.net": _GMX,
    "gmx.de": _GMX,
    "web.de": _servers("imap.web.de", "smtp.web.de", 587),
    "posteo.de": _servers("posteo.de", "posteo.de"),
    "mailbox.org": _servers("imap.mailbox.org", "smtp.mailbox.org"),
}
