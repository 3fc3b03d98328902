"""What the Matrix channel is, its settings, and how it is set up."""

import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from ...errors import SettingsError
from ...ports.channel import Manifest, Setup, SetupField, Traits
from ..settings import check_address, check_names, read_settings

# A homeserver drops a second send of the same transaction id from the same device: Synapse keeps them for a day.
MANIFEST = Manifest(
    "matrix",
    Traits(
        once=True,
        text_limit=40_000,  # an event has 65,536 bytes, with both forms of the text
        text_unit="byte",
        preview=2.0,
        typing=20.0,
        files=50_000_000,  # what Synapse takes unless it is told otherwise
        edits=True,
    ),
)

SETUP = Setup(
    title="Matrix",
    steps=(
        "Make an account for the agent on your homeserver, one that nobody else uses: with Element, or on a Synapse of "
        "your own with `register_new_matrix_user`.",
        "`everloop channels login matrix` asks for its password once and keeps an access token, not the password. In "
        "Element you find one under Settings, Help & About, Access Token; do not log out there afterwards, which would "
        "end it.",
        "Invite the account into a room, or begin a chat with it. Where that is end-to-end encrypted, the extra "
        "[matrix-e2ee] has to be installed.",
    ),
    fields=(
        SetupField("homeserver", "The address of the homeserver, such as https://matrix.org"),
        SetupField("access_token", "The access token of the agent's account", secret=True),
        SetupField("user_id", "The agent's full user id, such as @everloop:example.org", optional=True),
    ),
)
LOGIN = (
    SetupField("homeserver", "The address of the homeserver, such as https://matrix.org"),
    SetupField("user_id", "The agent's full user id, such as @everloop:example.org"),
    SetupField("password", "Its password, which is not kept", secret=True),
)

_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")
_USER = re.compile(r"@[^:\s]+:\S+")


class MatrixSettings(Struct, forbid_unknown_fields=True):
    """The settings `channels.matrix` that are this channel's own."""

    homeserver: str
    access_token: str
    user_id: str = ""  # if it is said, another account's token is refused
    device_id: str = ""  # of the login, which the next one takes up again
    join: Literal["known", "always", "never"] = "known"
    notices: bool = False  # answers are m.notice, which other bots do not answer
    receipts: bool = True


def check_keys(values: Mapping[str, Any]) -> None:
    """Raises SettingsError for one that means nothing."""
    check_names("matrix", values, MatrixSettings)


def check_settings(values: Mapping[str, Any]) -> MatrixSettings:
    """What they say. Raises SettingsError, which tells no token."""
    check_keys(values)
    if values.get("join", "known") not in ("known", "always", "never"):
        raise SettingsError("channels.matrix.join is one of known, always, never")
    chosen = read_settings("matrix", values, MatrixSettings)
    chosen.homeserver = checked_address(chosen.homeserver)
    if not _TOKEN.fullmatch(chosen.access_token):
        raise SettingsError("channels.matrix.access_token is empty, or has characters that no token has")
    if chosen.user_id and not _USER.fullmatch(chosen.user_id):
        raise SettingsError("channels.matrix.user_id is a full user id, such as @everloop:example.org")
    return chosen


def checked_address(homeserver: str) -> str:
    """Without a slash at its end. Raises SettingsError."""
    check_address("channels.matrix.homeserver", homeserver)
    parts = urlsplit(homeserver)
    if parts.query or parts.fragment or parts.username is not None:
        raise SettingsError("channels.matrix.homeserver is an address such as https://matrix.org, and nothing more")
    return homeserver.rstrip("/")
