"""End-to-end encryption: `records` is what is remembered, `devices` whose devices there are, `olm` speaks with one of
them (`account` has our own keys), `room_keys` reads and `speaking` writes what is said to all of a room; `waiting` is
what has no key yet, `attachments` are files, `encrypted_rooms` which rooms it is about, and `encryption` is the whole.
Importing this needs no extra."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from ....ports.channel_state import ChannelRecords

if TYPE_CHECKING:
    from ..homeserver import Homeserver
    from .encryption import Encryption

NEEDS_EXTRA = "encrypted messages need the extra [matrix-e2ee]: pip install 'everloop[matrix-e2ee]'"
NO_PLACE = "whoever has opened this channel has given it no place for its keys"
OTHER_KEYS = (
    "the access token is that of another client, which has keys of its own, or everloop's own have been lost: "
    "encrypted messages cannot be read with it. Take away channels.matrix.device_id and log in "
    "anew: everloop channels login matrix"
)
UNSIGNED = (
    "another client (Element, say) has made this account's own keys, its cryptographic identity, and everloop's device "
    "is not signed with them: who uses Element may not be able to write to it in encrypted rooms. Use an account in "
    "which nobody was ever logged in with such a client"
)


def has_extra() -> bool:
    return find_spec("vodozemac") is not None


def opened_encryption(server: "Homeserver", state: ChannelRecords, user: str, device: str) -> "Encryption | None":
    """None without the extra."""
    if not has_extra():
        return None
    from .encryption import Encryption  # loads vodozemac

    return Encryption(server, state, user, device)
