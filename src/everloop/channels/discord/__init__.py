"""Discord: a bot that listens at the gateway (v10) and speaks through the REST API, in private, in servers and threads.

Importing this loads neither the network's side nor the text's: `open_channel` does.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...errors import SettingsError
from ...ports import Http, WebSockets
from ..settings import needs_extra
from .manifest import MANIFEST, SETUP, check_keys, check_settings

if TYPE_CHECKING:
    from .wire import DiscordChannel


def open_channel(values: Mapping[str, Any], http: Http) -> "DiscordChannel":
    """The channel that these settings describe. Raises SettingsError."""
    chosen = check_settings(values)
    if not isinstance(http, WebSockets):
        raise SettingsError("channels.discord needs a network that opens WebSockets")
    try:
        from .wire import DiscordChannel  # loads markdown-it-py
    except ImportError as error:
        raise needs_extra("channels.discord", error) from error
    return DiscordChannel(chosen, http)


__all__ = ["MANIFEST", "SETUP", "check_keys", "check_settings", "open_channel"]
