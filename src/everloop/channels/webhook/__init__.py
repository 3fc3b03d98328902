"""Signed webhooks, in and out: a program posts what someone said to /hooks/webhook, and answers are posted to its URL.

The form is that of Standard Webhooks (https://www.standardwebhooks.com): the headers webhook-id, webhook-timestamp and
webhook-signature, which is an HMAC-SHA256 over all three: id, timestamp and body.
"""

from .setup import SETUP
from .wire import MANIFEST, Webhook, check_keys, check_settings, open_channel

__all__ = ["MANIFEST", "SETUP", "Webhook", "check_keys", "check_settings", "open_channel"]
