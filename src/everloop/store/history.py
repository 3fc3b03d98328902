"""The log as it is read back, written once for both databases. To open a thread and to append to it is hot."""

from ..core import log
from ..core.log import MANY, Compacted, Entry
from ..ports.conversation import Written
from ..ports.rows import Lease
from ..readings.spoken import name_of
from .conversations import LINE, is_kind
from .database import Database


class HistoryRows(Database):
    async def history(self, thread: str, after: int = 0, limit: int = MANY) -> list[Written]:
        rows = await self._ask(
            f"{LINE} SELECT e.seq, e.at, e.body FROM line l JOIN entries e ON e.thread = l.id "
            "AND e.seq BETWEEN {greatest}(l.first, $2 + 1) AND l.last ORDER BY e.seq LIMIT $3",
            thread,
            after,
            limit,
        )
        return [Written(seq, at, log.decode(body)) for seq, at, body in rows]

    async def read(self, thread: str, after: int = 0, limit: int = MANY) -> list[Entry]:
        return [written.entry for written in await self.history(thread, after, limit)]

    async def folded(self, thread: str, until: int) -> int:
        rows = await self._ask(
            f"{LINE} SELECT e.seq FROM line l JOIN entries e ON e.thread = l.id AND e.seq BETWEEN l.first AND l.last "
            f"WHERE e.seq <= $2 AND {is_kind(name_of(Compacted))} ORDER BY e.seq DESC LIMIT 1",
            thread,
            until,
        )
        return int(rows[0][0]) if rows else 0

    async def give_back(self, lease: Lease) -> None:
        await self._change(
            "UPDATE threads SET holder = NULL WHERE id = $1 AND CAST($2 AS {int}) IN (0, epoch) AND holder = $3",
            lease.thread,
            lease.epoch,
            self.holder,
        )
