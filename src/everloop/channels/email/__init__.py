"""E-mail: a mailbox that is read over IMAP, and answers that leave over SMTP, each thread a conversation."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...errors import SettingsError
from ...ports import Dials, Http
from ..settings import needs_extra
from .manifest import MANIFEST, SETUP, check_keys, check_settings

if TYPE_CHECKING:
    from .wire import Email


def open_channel(values: Mapping[str, Any], http: Http) -> "Email":
    """The channel that these settings describe. Raises SettingsError."""
    chosen = check_settings(values)
    if not isinstance(http, Dials):
        raise SettingsError("channels.email needs connections that this program's network client does not make (Dials)")
    try:
        from .wire import Email  # loads markdown-it-py and the reading of mails
    except ImportError as error:
        raise needs_extra("channels.email", error) from error
    return Email(chosen, http)


__all__ = ["MANIFEST", "SETUP", "check_keys", "check_settings", "open_channel"]
