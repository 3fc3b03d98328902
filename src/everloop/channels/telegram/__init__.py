"""Telegram, by its Bot API (https://core.telegram.org/bots/api): a bot that people write to, alone or in groups.

What is said is fetched (`getUpdates`), or with `mode = "webhook"` brought by Telegram. Nothing of it is loaded before
the channel is opened.
"""

from collections.abc import Mapping
from typing import Any

from ...ports import Channel, Http
from ..settings import needs_extra
from .manifest import MANIFEST, SETUP, check_keys, check_settings


def open_channel(values: Mapping[str, Any], http: Http) -> Channel:
    """The channel that these settings describe. Raises SettingsError."""
    chosen = check_settings(values)
    try:
        from .hook import TelegramByHook  # loads markdown-it-py
        from .wire import Telegram
    except ImportError as error:
        raise needs_extra("channels.telegram", error) from error
    return Telegram(chosen, http) if chosen.mode == "polling" else TelegramByHook(chosen, http)


__all__ = ["MANIFEST", "SETUP", "check_keys", "check_settings", "open_channel"]
