"""End-to-end encryption: `records` is what is remembered, `devices` whose devices there are, `olm` speaks with one of
them (`account` has our own keys), `room_keys` reads and `speaking` writes what is said to all of a room; `waiting` is
what has no key yet, `attachments` are files, `encrypted_rooms` which rooms it is about, `hindrances` say why it cannot
be done, and `encryption` is the whole. Importing this needs no extra."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from ....ports.channel_state import ChannelRecords

if TYPE_CHECKING:
    from ..homeserver import Homeserver
    from .encryption import Encryption


def has_extra() -> bool:
    return find_spec("vodozemac") is not None


def opened_encryption(server: "Homeserver", state: ChannelRecords, user: str, device: str) -> "Encryption | None":
    """None without the extra."""
    if not has_extra():
        return None
    from .encryption import Encryption  # loads vodozemac

    return Encryption(server, state, user, device)
