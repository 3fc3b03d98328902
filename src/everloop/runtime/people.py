"""Who someone is, from what a program has said of its users and from the users in the store."""

from collections.abc import Iterable, Mapping

from ..core.people import OWNER, Role
from ..core.ports import People, Users


class KnownPeople:
    """What the program says counts first. Both are looked at each time: someone may be introduced at any moment."""

    def __init__(self, users: Users | None = None, given: Mapping[str, Role] = {}) -> None:
        self._users = users
        self._given = given

    async def role(self, person: str) -> Role:
        if person == OWNER:
            return Role.OWNER
        if person in self._given:
            return self._given[person]
        return await self._users.role(person) if self._users and person else Role.GUEST


async def roles_of(people: People, persons: Iterable[str]) -> dict[str, Role]:
    """Those of several, but for the owner's, which needs no looking up."""
    return {person: await people.role(person) for person in set(persons) - {OWNER}}
