"""Slack: over a socket that we open (Socket Mode), or by events that Slack posts to /hooks/slack.

Importing it loads neither the network nor markdown: `open_channel` does.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...errors import SettingsError
from ...ports import Http, WebSockets
from ..settings import needs_extra
from .manifest import MANIFEST, SETUP, check_keys, check_settings

if TYPE_CHECKING:
    from .wire import SlackChannel

__all__ = ["MANIFEST", "SETUP", "check_keys", "check_settings", "open_channel"]


def open_channel(values: Mapping[str, Any], http: Http) -> "SlackChannel":
    """The channel that these settings describe. Raises SettingsError."""
    chosen = check_settings(values)
    try:
        from .wire import SlackChannel  # loads markdown-it-py, which only those need who use a channel
    except ImportError as error:
        raise needs_extra("channels.slack", error) from error
    if chosen.mode == "socket" and not isinstance(http, WebSockets):
        raise SettingsError('channels.slack.mode "socket" needs a network with WebSockets; "events" does without')
    return SlackChannel(chosen, http)
