"""In which homes commands were run, written once for both databases."""

from .database import Database


class CommandHomeRows(Database):
    async def note_command_home(self, home: str) -> None:
        await self._change(
            "INSERT INTO command_homes(home, at) VALUES($1, {now}) ON CONFLICT DO NOTHING RETURNING home", home
        )

    async def has_command_homes_beside(self, home: str) -> bool:
        return bool(await self._ask("SELECT 1 FROM command_homes WHERE home <> $1 LIMIT 1", home))
