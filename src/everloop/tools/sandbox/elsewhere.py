"""Whether a command may have been begun on another machine that drives the same conversations.

A spool knows every command that was begun through it. Where a store is shared, one that it does not know may have been
begun elsewhere, if there is an elsewhere: before its first command each home writes its id into the store, so that one
which is alone there knows that what it has not begun nobody has.
"""

import asyncio
import os
import secrets
from contextlib import suppress
from pathlib import Path

from ...ports.command_homes import CommandHomes


class Elsewhere:
    def __init__(self, spool: Path, homes: CommandHomes) -> None:
        self._spool = spool
        self._homes = homes
        self._noted = False

    async def note(self) -> None:
        """That commands are begun here, before the first one is."""
        if not self._noted:
            await self._homes.note_command_home(await asyncio.to_thread(_id_of, self._spool))
            self._noted = True

    async def is_possible(self) -> bool:
        return await self._homes.has_command_homes_beside(await asyncio.to_thread(_id_of, self._spool))


def _id_of(spool: Path) -> str:
    """Made once; of two that make one at the same time the first counts."""
    file = spool / "home.id"
    with suppress(FileNotFoundError):
        return file.read_text()
    spool.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = spool / f".{secrets.token_hex(16)}"
    made.write_text(made.name[1:])
    with suppress(FileExistsError):
        os.link(made, file)
    made.unlink()
    return file.read_text()
