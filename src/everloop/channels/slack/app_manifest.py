"""The app that a workspace needs: Slack makes it of a manifest, which a link can bring along."""

import json
from collections.abc import Iterable
from urllib.parse import quote

HINT = "new | stop | model | help"
EVENTS = ("message.im", "message.channels", "message.groups", "message.mpim")


def link_to_new_app(scopes: Iterable[str]) -> str:
    """Opens Slack's page with everything filled in."""
    written = json.dumps(app_manifest(scopes), separators=(",", ":"))
    return f"https://api.slack.com/apps?new_app=1&manifest_json={quote(written, safe='')}"


def app_manifest(scopes: Iterable[str]) -> dict[str, object]:
    """As docs/channels-slack.md shows it."""
    command = {"command": "/everloop", "description": "Commands for the agent", "usage_hint": HINT}
    home = {"home_tab_enabled": False, "messages_tab_enabled": True, "messages_tab_read_only_enabled": False}
    return {
        "display_information": {"name": "everloop", "description": "Your own agent"},
        "features": {
            "bot_user": {"display_name": "everloop", "always_online": True},
            "app_home": home,
            "slash_commands": [command],
        },
        "oauth_config": {"scopes": {"bot": [*scopes]}},
        "settings": {
            "event_subscriptions": {"bot_events": [*EVENTS]},
            "interactivity": {"is_enabled": True},
            "socket_mode_enabled": True,
            "token_rotation_enabled": False,
        },
    }
