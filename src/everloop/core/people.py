"""Who someone is to the agent."""

from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from enum import IntEnum
from types import MappingProxyType
from typing import cast


class Role(IntEnum):
    """What someone may do includes all that those below may."""

    GUEST = 0
    USER = 1
    ADMIN = 2
    OWNER = 3


OWNER = "owner"
OWNERS_CHANNELS = frozenset({"api", "cli", "page", "openai"})  # where the owner speaks unless somebody else is named
OWNER_ALONE: Mapping[str, Role] = MappingProxyType({OWNER: Role.OWNER})


def with_owner(roles: Mapping[str, Role]) -> Mapping[str, Role]:
    """These and the owner; who is introduced later is in it as well."""
    return ChainMap({OWNER: Role.OWNER}, cast(MutableMapping[str, Role], roles))


def role_of(person: str, roles: Mapping[str, Role]) -> Role:
    """Whom nobody has introduced is a guest."""
    return roles.get(person, Role.GUEST)


# Model calls of a day (by UTC), until there are budgets: of one guest, and of all guests together.
CALLS_OF_A_GUEST = 50
CALLS_OF_ALL_GUESTS = 500


def is_guest(person: str, roles: Mapping[str, Role]) -> bool:
    return role_of(person, roles) < Role.USER
