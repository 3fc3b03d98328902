"""Signed webhooks, in and out: a program posts what someone said to /hooks/webhook, and answers are posted to its URL.

The form is that of Standard Webhooks (https://www.standardwebhooks.com): the headers webhook-id, webhook-timestamp and
webhook-signature, which is an HMAC-SHA256 over all three: id, timestamp and body.
"""

import time
from collections.abc import Mapping
from typing import Any

from ...ports import Http
from ..settings import needs_extra
from .manifest import MANIFEST, SETUP, check_keys, check_settings
from .wire import Webhook


def open_channel(values: Mapping[str, Any], http: Http) -> Webhook:
    """The channel that these settings describe. Raises SettingsError; without a secret there is no channel."""
    chosen, secrets = check_settings(values)
    if chosen.dialect == "markdown":
        return Webhook(chosen.url, secrets, http)
    try:
        from .rendered import RenderedWebhook  # loads markdown-it-py, which only those need who want a dialect
    except ImportError as error:
        raise needs_extra("channels.webhook.dialect", error) from error
    return RenderedWebhook(chosen.url, secrets, http, time.time, dialect=chosen.dialect, limit=chosen.text_limit)


__all__ = ["MANIFEST", "SETUP", "Webhook", "check_keys", "check_settings", "open_channel"]
