"""The PromptFiles port over all workspaces: in the owner's are bootstrap files and skills, in any other are skills; and
in each the memory of whose workspace it is, if they have one."""

from collections import OrderedDict
from collections.abc import Callable

from ..core.mail import Outbound
from ..ports.permission import Held
from ..readings.held import is_memory_file
from .prompt_files import WatchedFiles, WatchedStore
from .watched_memory import WatchedMemory

PLACES = 500  # workspaces that are kept in mind
MEMORIES = 200  # that are in use


class HousePromptFiles:
    """Whose memory is in use is watched from then on: what was written before is judged when it is first looked at."""

    def __init__(
        self,
        owners: WatchedFiles,
        make: Callable[[str], WatchedFiles],
        make_memory: Callable[[str], WatchedMemory],
        store: WatchedStore,
    ) -> None:
        """`make` those of another workspace, by its folder; `make_memory` those of somebody's memory."""
        self.owners = owners
        self._make = make
        self._make_memory = make_memory
        self._store = store
        self._others: OrderedDict[str, WatchedFiles] = OrderedDict()
        self._memories: OrderedDict[str, WatchedMemory] = OrderedDict()

    @property
    def unasked(self) -> bool:
        if not self._memories:
            return self.owners.unasked
        return self.owners.unasked or any(each.unasked for each in self._memories.values())

    @property
    def names(self) -> tuple[str, ...]:
        """Of the owner's files that are held back."""
        memory = self._memories.get(self.owners.owner)
        return (*self.owners.names, *(memory.names if memory else ()))

    def at(self, place: str) -> WatchedFiles:
        if place == self.owners.place:
            return self.owners
        if place not in self._others:
            self._others[place] = self._make(place)
            if len(self._others) > PLACES:
                self._others.popitem(last=False)
        return self._others[place]

    def memory_of(self, principal: str) -> WatchedMemory:
        if principal not in self._memories:
            made = self._memories[principal] = self._make_memory(principal)
            self.at(made.place)  # so that it judges, too, before a taint of this workspace ends
            if len(self._memories) > MEMORIES:
                self._memories.popitem(last=False)
        self._memories.move_to_end(principal)
        return self._memories[principal]

    def expect_more(self, place: str) -> None:
        for files in self._all_at(place):
            files.expect_more()

    async def look(self, place: str, *, closely: bool = False) -> None:
        for files in self._all_at(place):
            await files.look(closely=closely)

    async def merge(self, place: str) -> None:
        await self.owners.merge(place)

    async def held(self) -> list[Held]:
        memories = [row.held for row in await self._store.held_back() if row.held and is_memory_file(row.name)]
        return [*await self.owners.held(), *memories]

    async def due(self, thread: str) -> list[Held]:
        unasked = [each for each in (self.owners, *self._memories.values()) if each.unasked]
        return [held for each in unasked for held in await each.due(thread)]

    async def tell(self, held: Held, question: Outbound | None) -> bool:
        return await self._of(held).tell(held, question)

    async def decide(self, held: Held, allow: bool) -> str:
        return await self._of(held).decide(held, allow)

    def _of(self, held: Held) -> WatchedFiles:
        return self.memory_of(held.owner) if is_memory_file(held.name) else self.owners

    def _all_at(self, place: str) -> list[WatchedFiles]:
        return [self.at(place), *(each for each in self._memories.values() if each.place == place)]
