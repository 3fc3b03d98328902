"""How letters came, written once for both databases."""

from collections.abc import Sequence

from ..core.mail import Address, Said
from ..ports.rows import Came, RecentLetter
from .codec import list_of, read_letter
from .database import Database

_OF = "FROM inbox WHERE id IN (SELECT CAST(value AS {int}) FROM {each}($1{json}))"
# The last by their numbers, for letters have no index of when they came.
_RECENT = (
    "SELECT event, body, at FROM (SELECT id, channel, kind, event, body, at FROM inbox ORDER BY id DESC LIMIT $2) AS i "
    "WHERE channel = $1 AND kind IN ('said', 'command') AND body <> '' AND at > {now} - 3600 ORDER BY id DESC"
)


class ArrivalRows(Database):
    """What a store knows of letters by their events and numbers."""

    async def origins(self, mails: Sequence[int]) -> dict[int, str]:
        return {int(id): str(event) for id, event in await self._ask(f"SELECT id, event {_OF}", list_of(mails))}

    async def arrivals(self, mails: Sequence[int]) -> dict[int, float]:
        return {int(id): float(at) for id, at in await self._ask(f"SELECT id, at {_OF}", list_of(mails))}

    async def came(self, channel: str, event: str) -> bool:
        return bool(await self._ask("SELECT 1 FROM inbox WHERE channel = $1 AND event = $2", channel, event))

    async def recent(self, channel: str, most: int) -> list[RecentLetter]:
        rows = await self._ask(_RECENT, channel, most)
        letters = ((event, read_letter(body), at) for event, body, at in reversed(rows))
        return [
            RecentLetter(event, letter.author, Address.parse(letter.address).chat, at, not letter.parts)
            for event, letter, at in letters
            if isinstance(letter, Said) and letter.address
        ]

    async def newest(self, channel: str, first: str, last: str) -> Came | None:
        rows = await self._ask(
            "SELECT event, id, thread, at, ended, taken FROM inbox WHERE channel = $1 AND event BETWEEN $2 AND $3 "
            "AND length(event) = length($2) "  # what a command has posted is called EVENT/stop or EVENT/told
            "ORDER BY event DESC LIMIT 1",
            channel,
            first,
            last,
        )
        if not rows:
            return None
        event, mail, thread, at, ended, taken = rows[0]
        return Came(event=event, mail=mail, thread=thread, at=at, ended=ended, given=taken == 2)
