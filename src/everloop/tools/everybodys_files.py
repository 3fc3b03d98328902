"""The files of everybody that stand in prompts: the owner's bootstrap files, and the memory of each who has one."""

from collections import OrderedDict
from collections.abc import Callable, Iterator

from ..core.mail import Outbound
from ..ports.permission import Held
from .bootstrap import FILES
from .prompt_files import WatchedFiles, WatchedStore

PEOPLE = 200  # whose files are known at once


class EverybodysFiles:
    """The PromptFiles port. Whose memory is in use is watched from then on: what was written before, and lies there
    when it is first looked at, is judged by its time."""

    def __init__(self, owners: WatchedFiles, memory_of: Callable[[str], WatchedFiles], store: WatchedStore) -> None:
        """`owners` are the bootstrap files; `memory_of` somebody are those of their memory."""
        self.owners = owners
        self._make = memory_of
        self._store = store
        self._memories: OrderedDict[str, WatchedFiles] = OrderedDict()

    def memory_of(self, principal: str) -> WatchedFiles:
        files = self._memories.get(principal)
        if files is None:
            files = self._memories[principal] = self._make(principal)
            if len(self._memories) > PEOPLE:
                self._memories.popitem(last=False)
        self._memories.move_to_end(principal)
        return files

    @property
    def unasked(self) -> bool:
        return self.owners.unasked or any(each.unasked for each in self._memories.values())

    @property
    def names(self) -> tuple[str, ...]:
        """Of the owner's files that are held back."""
        own = self._memories.get(self.owners.owner)
        return (*self.owners.names, *(own.names if own else ()))

    def expect_more(self, place: str) -> None:
        for files in self._at(place):
            files.expect_more()

    async def look(self, place: str, *, closely: bool = False) -> None:
        for files in self._at(place):
            await files.look(closely=closely)

    async def merge(self, place: str) -> None:
        await self.owners.merge(place)

    async def held(self) -> list[Held]:
        return [row.held for row in await self._store.held_back() if row.held]

    async def due(self, thread: str) -> list[Held]:
        unasked = [files for files in (self.owners, *self._memories.values()) if files.unasked]
        return [held for files in unasked for held in await files.due(thread)]

    async def tell(self, held: Held, question: Outbound | None) -> bool:
        return await self._of(held).tell(held, question)

    async def decide(self, held: Held, allow: bool) -> str:
        return await self._of(held).decide(held, allow)

    def _of(self, held: Held) -> WatchedFiles:
        return self.owners if held.name in FILES else self.memory_of(held.owner)

    def _at(self, place: str) -> Iterator[WatchedFiles]:
        return (files for files in (self.owners, *self._memories.values()) if files.place == place)
