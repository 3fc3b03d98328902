"""Who someone is, from what a program has said of its users and from those in the store, and who speaks in a group."""

from collections.abc import Iterable, Mapping

from msgspec import structs

from ..core.mail import Inbound, Said
from ..core.people import OWNER, Role, is_chat
from ..core.speakers import GroupSpeaker
from ..ports import Directory, People, Users


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


class Speakers:
    """Who speaks in a group: looked up once, when they have, and kept with what they said."""

    def __init__(self, directory: Directory, people: People) -> None:
        self._directory = directory
        self._people = people

    async def name(self, inbound: Inbound) -> Inbound:
        """With who speaks, where others do too. In a conversation of two nobody is looked up."""
        letter = inbound.letter
        if not isinstance(letter, Said) or not is_chat(letter.principal):
            return inbound
        person = await self._directory.person(letter.author)
        role = (await self._people.role(letter.author)).name.lower()
        called = letter.speaker.name if letter.speaker else letter.author  # a platform's word, where the house has none
        speaker = GroupSpeaker(person.name if person else called, role)
        return structs.replace(inbound, letter=structs.replace(letter, speaker=speaker))
