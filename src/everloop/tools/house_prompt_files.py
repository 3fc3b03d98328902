"""The PromptFiles port over all workspaces: in the owner's are bootstrap files and skills, in any other are skills."""

from collections import OrderedDict
from collections.abc import Callable

from ..core.mail import Outbound
from ..ports.permission import Held
from .prompt_files import WatchedFiles

PLACES = 500  # workspaces that are kept in mind


class HousePromptFiles:
    def __init__(self, owners: WatchedFiles, make: Callable[[str], WatchedFiles]) -> None:
        """`make` those of another workspace, by its folder."""
        self.owners = owners
        self._make = make
        self._others: OrderedDict[str, WatchedFiles] = OrderedDict()

    @property
    def unasked(self) -> bool:
        return self.owners.unasked

    def at(self, place: str) -> WatchedFiles:
        if place == self.owners.place:
            return self.owners
        if place not in self._others:
            self._others[place] = self._make(place)
            if len(self._others) > PLACES:
                self._others.popitem(last=False)
        return self._others[place]

    def expect_more(self, place: str) -> None:
        self.at(place).expect_more()

    async def look(self, place: str, *, closely: bool = False) -> None:
        await self.at(place).look(closely=closely)

    async def merge(self, place: str) -> None:
        await self.owners.merge(place)

    async def held(self) -> list[Held]:
        return await self.owners.held()

    async def due(self, thread: str) -> list[Held]:
        return await self.owners.due(thread)

    async def tell(self, held: Held, question: Outbound | None) -> bool:
        return await self.owners.tell(held, question)

    async def decide(self, held: Held, allow: bool) -> str:
        return await self.owners.decide(held, allow)
