"""What people have sent and were given, by name, written once for both databases. The bytes lie elsewhere."""

from typing import Any

from ..ports.files import FileRecord
from .database import Database

_BEGINNING = len("file:") + 12  # of a reference, by which a text names a file
_ROWS = "SELECT owner, ref, name, mime, size, at FROM files"


class FileRecordRows(Database):
    async def note_file(self, record: FileRecord, sent: bool = True) -> None:
        anew = "name = excluded.name, mime = excluded.mime, at = excluded.at" if sent else "at = excluded.at"
        await self._change(
            "INSERT INTO files(owner, ref, name, mime, size, at) VALUES($1, $2, $3, $4, $5, {now}) "
            f"ON CONFLICT(owner, ref) DO UPDATE SET {anew}",
            record.owner,
            record.ref,
            record.name,
            record.mime,
            record.size,
        )

    async def recorded_files(self, owner: str, *, limit: int = 100, skip: int = 0) -> list[FileRecord]:
        rows = await self._ask(
            f"{_ROWS} WHERE owner = $1 ORDER BY at DESC, ref LIMIT $2 OFFSET $3",
            owner,
            limit,
            skip,
        )
        return [_record(row) for row in rows]

    async def recorded_file(self, owner: str, ref: str) -> FileRecord | None:
        rows = await self._ask(f"{_ROWS} WHERE owner = $1 AND ref = $2", owner, ref)
        return _record(rows[0]) if rows else None

    async def owners_of_file(self, ref: str) -> list[str]:
        return [owner for (owner,) in await self._ask("SELECT owner FROM files WHERE ref = $1 ORDER BY owner", ref)]

    async def threads_of_file(self, owner: str, ref: str) -> list[str]:
        rows = await self._ask(
            "SELECT e.thread, max(e.at) FROM threads t JOIN entries e ON e.thread = t.id "
            "WHERE t.owner = $1 AND e.body LIKE $2 GROUP BY e.thread ORDER BY 2 DESC LIMIT 20",
            owner,
            f"%{ref[:_BEGINNING]}%",
        )
        return [thread for thread, _ in rows]

    async def forget_file(self, owner: str, ref: str) -> bool:
        return await self._changed_one("DELETE FROM files WHERE owner = $1 AND ref = $2 RETURNING ref", owner, ref)


def _record(row: Any) -> FileRecord:
    owner, ref, name, mime, size, at = row
    return FileRecord(owner, ref, name, mime, size, at)
