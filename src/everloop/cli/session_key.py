"""The key of a session, as a person types it."""

from ..core.errors import MailRefused
from ..core.mail import Address
from ..core.visible import refuse_unseen


def session_key(text: str) -> str:
    """Raises MailRefused for what is none."""
    refuse_unseen(text, "a session key")
    try:
        return str(Address.parse(text))
    except ValueError as error:
        raise MailRefused(str(error)) from error
