"""What nanobot writes into the tables of the channels that both have, whatever its owner wants: version 0.3.5, and
where it differs the ones before."""

from collections.abc import Mapping
from typing import Any

_ALONE = {"enabled": True, "policy": "open", "allowFrom": []}
USUAL: Mapping[str, Mapping[str, Any]] = {
    "telegram": {
        "react_emoji": "👀",
        "connection_pool_size": 32,
        "pool_timeout": 5.0,
        "streaming": True,
        "stream_edit_interval": 0.6,
        "webhook_listen_host": "127.0.0.1",
        "webhook_listen_port": 8081,
        "webhook_path": "/telegram",
        "webhook_max_connections": 4,
    },
    "discord": {
        "intents": 37377,
        "read_receipt_emoji": "👀",
        "working_emoji": "🔧",
        "working_emoji_delay": 2.0,
        "streaming": True,
        "gateway_url": "wss://gateway.discord.gg/?v=10&encoding=json",
    },
    "slack": {
        "webhook_path": "/slack/events",
        "react_emoji": "eyes",
        "done_emoji": "white_check_mark",
        "include_thread_context": True,
        "thread_context_limit": 20,
        "user_token_read_only": True,
        "dm": _ALONE,
    },
    "email": {
        "consent_granted": True,
        "verify_dkim": True,
        "verify_spf": True,
        "imap_use_ssl": True,
        "smtp_use_tls": True,
        "auto_reply_enabled": True,
        "mark_seen": True,
        "post_action_ignore_skipped": True,
        "max_body_chars": 12000,
        "subject_prefix": "Re: ",
        "max_attachment_size": 2_000_000,
        "max_attachments_per_email": 5,
    },
    "matrix": {
        "e2ee_enabled": True,
        "sync_stop_grace_seconds": 2,
        "max_media_bytes": 20_971_520,
        "max_concurrent_media_downloads": 2,
    },
}
# Beside the tables, for all channels.
BESIDE: Mapping[str, tuple[Any, ...]] = {
    "send_progress": (True,),
    "send_tool_hints": (True, False),
    "show_reasoning": (True,),
    "extract_document_text": (True,),
    "send_max_retries": (3,),
    "transcription_provider": ("groq", ""),
    "transcription_language": ("",),
}
