"""Matrix (https://spec.matrix.org, client-server API v3): rooms of any homeserver, with end-to-end
encryption (`e2ee`) where the extra [matrix-e2ee] is installed.

`manifest` says what it is and how it is set up, `codec` what events mean, `writing` how ours are written; `homeserver`
calls the server, `rooms` knows who is in a room, `lookup` what an event refers to, `sync` what has happened;
`listening` hears it, `joining` follows invitations, `wire` is the channel.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...ports import Http
from ...ports.channel_state import ChannelRecords
from ..settings import needs_extra
from .e2ee import has_extra
from .e2ee.hindrances import NEEDS_EXTRA
from .login import log_in
from .manifest import LOGIN, MANIFEST, SETUP, MatrixSettings, check_keys, check_settings

if TYPE_CHECKING:
    from .wire import Matrix

__all__ = [
    "LOGIN", "MANIFEST", "SETUP", "MatrixSettings", "advise", "check_keys", "check_settings", "log_in", "open_channel",
]  # fmt: skip


def advise() -> str:
    """What whoever runs us can do better; "": nothing."""
    return "" if has_extra() else NEEDS_EXTRA[:1].upper() + NEEDS_EXTRA[1:]


def open_channel(values: Mapping[str, Any], http: Http, state: ChannelRecords | None = None) -> "Matrix":
    """The channel that these settings describe. Raises SettingsError."""
    chosen = check_settings(values)
    try:
        from .wire import Matrix  # loads markdown-it-py, which nobody needs before a channel is opened
    except ImportError as error:
        raise needs_extra("channels.matrix", error) from error
    return Matrix(chosen, http, state)
