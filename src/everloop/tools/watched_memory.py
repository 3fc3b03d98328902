"""The files of somebody's memory, watched as all that stands in prompts; everloop itself writes them, too."""

import asyncio
from collections.abc import Mapping

from msgspec import structs

from ..errors import ToolError
from ..ports import Files
from ..ports.permission import FileState, PromptFile
from ..readings.held import ChangeSource, is_memory_file, judge
from .bootstrap import Bootstrap, Contents
from .prompt_files import Beside, WatchedFiles, WatchedStore
from .tainted import Tainted
from .workspace import Workspace


class WatchedMemory(WatchedFiles):
    """Somebody wrote each of these, so that also one that is found for the first time is judged: by its time."""

    def __init__(
        self,
        source: Bootstrap,
        workspace: Workspace,
        store: WatchedStore,
        tainted: Tainted,
        files: Files,
        owner: str,
        beside: Beside | None = None,
    ) -> None:
        """The `owner` is whose workspace it is, `beside` are others who watch files there."""
        super().__init__(source, workspace, store, tainted, files, owner, beside=beside)
        self._source_of_memory = source
        self.longest = source.longest

    @property
    def rows(self) -> Mapping[str, PromptFile]:
        """What was accepted of each file, and what is held, as it was at the last look."""
        return self._rows

    def changed_at(self, name: str) -> float:
        """When a file was written, as it was at the last look."""
        return self._source_of_memory.changed_at(name)

    async def put(self, name: str, content: bytes, expected: FileState) -> bool:
        """Have a file hold this, which is everloop's own doing and accepted, whatever else goes on in the workspace.
        False if it holds something else than was `expected`, or a change of it is held. Raises ToolError."""
        async with self._alone:
            await self._look()
            row = self._rows[name]
            if row.held or row.accepted != expected or expected.link:
                return False
            await asyncio.to_thread(_replace, self._workspace, name, content, expected.content, self.longest)
            while not await self._store.keep_watched(self.place, [_holding(row, content)]):
                row = {each.name: each for each in await self._watched()}.get(name, structs.replace(row, version=0))
            await self._look()
            return True

    def _is_mine(self, name: str) -> bool:
        return is_memory_file(name)

    async def _judged(
        self, before: dict[str, PromptFile], found: Contents, source: ChangeSource | None
    ) -> dict[str, PromptFile]:
        for name in found.keys() - before.keys():
            before[name] = PromptFile(name, FileState(), version=0, owner=self.owner)
        return {
            name: judge(before[name], name, held, await self._written(name, source), self.place)
            for name, held in found.items()
        }

    async def _written(self, name: str, source: ChangeSource | None) -> ChangeSource | None:
        """Where a change came from. Of a file that this process has not seen yet, its time tells."""
        if source or name in self._rows:
            return source
        return ChangeSource() if await self._tainted.holds(self._source_of_memory.written_at(name)) else None


def _replace(workspace: Workspace, name: str, content: bytes, expected: bytes | None, longest: int) -> None:
    seen = workspace.look(name, longest)
    if seen.content != expected:
        raise ToolError(f"{name} was changed in this moment and is left as it is")
    workspace.replace(name, content, f"view:{name}", seen)


def _holding(row: PromptFile, content: bytes) -> PromptFile:
    return structs.replace(row, accepted=FileState(content), held=None, version=row.version + 1)
