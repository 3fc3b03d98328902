"""Who someone is to the agent."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Literal


class Role(IntEnum):
    """What someone may do includes all that those below may. Who is blocked may do nothing: no permission is so low."""

    BLOCKED = -1
    GUEST = 0
    USER = 1
    ADMIN = 2
    OWNER = 3


ROLES_GIVEN = {"guest": Role.GUEST, "user": Role.USER, "admin": Role.ADMIN}  # there is one owner


def role_named(name: str) -> Role:
    """A role of which this version has not heard is worth nothing."""
    return Role[name.upper()] if name.upper() in Role.__members__ else Role.GUEST


OWNER = "owner"
ERASED = "erased"  # who is named where somebody stood who was erased: nobody
Strangers = Literal["pair", "guest", "ignore"]


_CHAT = "chat:"  # how the principal of a group is named: no author is named so


def chat_of(channel: str, chat: str) -> str:
    """The principal of a group: its conversation has memory, files and a workspace of its own, whoever speaks in it."""
    return f"{_CHAT}{channel}/{chat}"


def is_chat(principal: str) -> bool:
    return principal.startswith(_CHAT) and "/" in principal


def role_of(person: str, roles: Mapping[str, Role]) -> Role:
    """The owner is the owner, whatever these say, and whom nobody has introduced is a guest."""
    return Role.OWNER if person == OWNER else roles.get(person, Role.GUEST)
