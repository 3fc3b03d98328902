"""The key of a session, as a person types it."""

from ..readings.keys import exact
from ..readings.visible import refuse_unseen

DIRECT = "cli:direct"  # where one speaks who names no other


def session_key(text: str) -> str:
    """Raises MailRefused for what is none."""
    refuse_unseen(text, "a session key")
    return str(exact(text))
