"""Who speaks in a group: looked up once, when they have, and kept with what they said."""

from msgspec import structs

from ..core.mail import Inbound, Said
from ..core.people import is_chat
from ..core.ports import Directory, People
from ..core.speakers import GroupSpeaker


class Speakers:
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
        speaker = GroupSpeaker(person.name if person else letter.author, role)
        return structs.replace(inbound, letter=structs.replace(letter, speaker=speaker))
