"""Who someone is to the agent."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType


class Role(IntEnum):
    """What someone may do includes all that those below may."""

    GUEST = 0
    USER = 1
    ADMIN = 2
    OWNER = 3


OWNER_ALONE: Mapping[str, Role] = MappingProxyType({"owner": Role.OWNER})


def role_of(person: str, roles: Mapping[str, Role]) -> Role:
    """Whom nobody has introduced is a guest."""
    return roles.get(person, Role.GUEST)
