"""The key of a session, as a person types it."""

from ..readings.keys import exact
from ..readings.visible import refuse_unseen

DIRECT = "cli:direct"  # where one speaks who names no other


def session_key(text: str) -> str:
    """Raises MailRefused for what is none."""
    refuse_unseen(text, "a session key")
    return str(exact(text))


def way_into(session: str) -> str:
    """The command by which one speaks in a session."""
    from shlex import quote  # few are asked for it

    return "everloop" if session == DIRECT else f"everloop -s {quote(session)}"
