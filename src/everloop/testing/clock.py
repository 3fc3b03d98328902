"""A time that stands still until it is moved on, so that a year passes in a moment, in every process that shares it.

On SQLite the store is opened with it. On PostgreSQL the time is the server's: `SHADOW` puts a `clock_timestamp` of its
own into a schema, which is found before the real one where the `search_path` names that schema and then `pg_catalog`;
`SET` moves it on.
"""

import asyncio
from pathlib import Path

SHADOW = (
    "CREATE TABLE simulated_time(at DOUBLE PRECISION NOT NULL)",
    "INSERT INTO simulated_time VALUES(extract(epoch from now()))",
    "CREATE FUNCTION clock_timestamp() RETURNS TIMESTAMPTZ LANGUAGE plpgsql VOLATILE AS "
    "$$ BEGIN RETURN (SELECT to_timestamp(at) FROM simulated_time); END $$",
)
SET = "UPDATE simulated_time SET at = {now!r}"


class SimulatedClock:
    """Its time lies in a file, which several processes may share. Who sleeps is awake again when it was moved on."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def now(self) -> float:
        return float(self._file.read_text())

    def set(self, now: float) -> None:
        beside = self._file.with_name(f"{self._file.name}.new")
        beside.write_text(repr(now))
        beside.rename(self._file)

    async def sleep(self, seconds: float) -> None:
        until = self.now() + seconds
        while self.now() < until:  # noqa: ASYNC110  another process may move it on
            await asyncio.sleep(0.001)
