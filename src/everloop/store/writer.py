"""One writer for the SQLite file: transactions that meet in the queue share one commit.

Nobody is told anything before COMMIT. Statements are run in place, which spares the way to a thread and back: a single
turn's at once, those of many turns together at the end of a round of the event loop. The COMMIT that follows is made in
place only while the disk is quick; else a thread waits for the disk, and what comes meanwhile is gathered for the next.
When another process is writing, the thread does it all.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import apsw
from msgspec import Struct

from ..errors import StoreBroken, StoreCorrupt, StoreError, StoreFull

Execute = Callable[..., Any]
Result = TypeVar("Result")
Transaction = Callable[[Execute], Any]
_Job = tuple["asyncio.Future[Any]", Transaction]
_Told = tuple["asyncio.Future[Any]", Any, Exception | None]

# Transactions that share a commit at most. While one batch is on its way to the disk, those of the one before it speak
# with the network: if all went together, everything would wait for the longest of each.
BATCH = 100
# Seconds that a commit may take to be made in place: when nothing else is going on, and when others could go on.
QUICK, BRIEF = 0.002, 0.0005


class _Half(Struct):
    """A batch whose statements have been run, and which waits for its COMMIT."""

    batch: list[_Job]
    told: list[_Told]


class Writer:
    def __init__(self, connection: apsw.Connection, blocked: Callable[[float], None]) -> None:
        self._connection = connection
        self._execute = connection.cursor().execute
        self._blocked = blocked  # told how long the write lock has been waited for
        self._queue: SimpleQueue[_Job | _Half | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._broken: StoreError | None = None  # the disk has failed
        self._closed = False
        self._pace = 0.0  # seconds that commits take, lately
        self._waiting = 0
        self._committing = False  # the thread waits for the disk
        self._gathered: list[_Job] = []  # in this round of the event loop
        self.running = 0  # turns, as the port says
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="everloop-writer", daemon=True)
        self._thread.start()
        self.commits = 0

    def write(self, transaction: Callable[[Execute], Result]) -> "asyncio.Future[Result]":
        future: asyncio.Future[Result] = self._loop.create_future()
        if self._broken or self._closed:
            future.set_exception(self._broken or StoreError("the store is closed"))
        elif self._waiting:
            self._hand_over([(future, transaction)])
        elif self.running > 1 or self._gathered or self._committing:
            if not self._gathered and not self._committing:
                self._loop.call_soon(self._write_gathered)
            self._gathered.append((future, transaction))
        else:
            self._write_here([(future, transaction)])
        return future

    def read(self, sql: str, values: tuple[object, ...]) -> list[Any] | None:
        """The few rows that a statement finds; None while something is written, or when it has to be read elsewhere.

        This connection remembers the pages that it has written itself, any other has to read them again after every
        commit; and what is large is to be read elsewhere, so that it goes on remembering them."""
        if self._broken or self._closed or not self._lock.acquire(False):
            return None
        try:
            rows: list[Any] = self._execute(sql, values).fetchall()
        except apsw.Error:  # whoever reads elsewhere is told what it is, or waits for it
            return None
        finally:
            self._lock.release()
        return rows

    def close(self) -> None:
        """Write what is still queued, and nothing after it."""
        self._hand_over(self._gathered)
        self._gathered = []
        self._closed = True
        self._queue.put(None)
        self._thread.join()

    def _write_gathered(self) -> None:
        """What came together in one round of the event loop is committed together, as far as a batch holds it."""
        batch, self._gathered = self._gathered[:BATCH], self._gathered[BATCH:]
        self._write_here(batch)
        if self._gathered and not self._committing:
            self._loop.call_soon(self._write_gathered)

    def _write_here(self, batch: list[_Job]) -> None:
        if not batch:
            return  # closed meanwhile
        if self._broken:
            _tell([(future, None, self._broken) for future, _ in batch])
            return
        if self._waiting or not self._lock.acquire(False):
            self._hand_over(batch)
            return
        told: list[_Told] = []
        try:
            self._execute("BEGIN IMMEDIATE")
            told = self._perform(batch, self._begin_at_once)
        except apsw.BusyError:
            self._hand_over(batch)
        except apsw.Error as error:
            told = self._refuse(batch, error)
        else:
            if self._pace > (QUICK if self.running <= 1 else BRIEF):
                self._committing = True
                self._queue.put(_Half(batch, told))
                return  # the thread lets the lock go
            told = self._commit(batch, told)
        self._lock.release()
        _tell(told)

    def _hand_over(self, batch: list[_Job]) -> None:
        self._waiting += len(batch)
        for job in batch:
            self._queue.put(job)

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            done = self._finish(job) if isinstance(job, _Half) else self._work_off(job)
            del job  # with all that its transactions hold, while the next is waited for
            if not done:
                return

    def _finish(self, half: _Half) -> bool:
        told = self._commit(half.batch, half.told)
        self._lock.release()
        return self._report_later(self._report_half, told)

    def _work_off(self, job: _Job) -> bool:
        batch = [job, *self._queued(BATCH - 1)]
        with self._lock:
            told = self._write(batch)
        return self._report_later(self._report, told)

    def _queued(self, most: int) -> Iterator[_Job]:
        for _ in range(most):
            try:
                job = self._queue.get_nowait()
            except Empty:
                return
            if not isinstance(job, tuple):
                self._queue.put(job)
                return
            yield job

    def _report_later(self, report: Callable[[list[_Told]], None], told: list[_Told]) -> bool:
        try:
            self._loop.call_soon_threadsafe(report, told)
        except RuntimeError:  # the loop has been closed, and those who waited are gone with it
            return False
        return True

    def _write(self, batch: list[_Job]) -> list[_Told]:
        if self._broken:
            return [(future, None, self._broken) for future, _ in batch]
        try:
            self._begin()
            told = self._perform(batch, self._begin)
        except apsw.Error as error:
            return self._refuse(batch, error)
        return self._commit(batch, told)

    def _begin_at_once(self) -> None:
        """Raises apsw.BusyError while another process is writing: the event loop does not wait for it."""
        self._execute("BEGIN IMMEDIATE")

    def _begin(self) -> None:
        # SQLite's own back-off starves one of two processes; short waits of our own are fair.
        began = time.monotonic()
        while True:
            try:
                self._execute("BEGIN IMMEDIATE")
                return
            except apsw.BusyError:
                self._blocked(time.monotonic() - began)

    def _perform(self, batch: list[_Job], begin: Callable[[], None]) -> list[_Told]:
        """All but the COMMIT, together as long as none fails; else `begin` begins anew, and each is attempted alone.

        A savepoint for each makes SQLite keep copies of pages that are almost never needed. Raises apsw.Error when the
        disk refuses.
        """
        try:
            return [(future, transaction(self._execute), None) for future, transaction in batch]
        except apsw.ConstraintError:
            pass
        except apsw.Error:  # the disk, not the transaction
            raise
        except Exception:  # it is attempted again, alone, and told then
            pass
        self._execute("ROLLBACK")
        begin()
        return [self._attempt(job) for job in batch]

    def _commit(self, batch: list[_Job], told: list[_Told]) -> list[_Told]:
        began = time.monotonic()
        try:
            if self._connection.in_transaction:
                self._execute("COMMIT")
        except apsw.Error as error:
            return self._refuse(batch, error)
        self.commits += 1
        self._pace += (time.monotonic() - began - self._pace) * 0.1
        return told

    def _attempt(self, job: _Job) -> _Told:
        future, transaction = job
        self._execute("SAVEPOINT one")
        try:
            return future, transaction(self._execute), None
        except apsw.ConstraintError as error:
            failure: Exception = StoreError(f"the database refused a write: {error}")
        except apsw.Error:  # the disk, not the transaction: all who share the commit are told
            raise
        except Exception as error:  # what fails takes nothing with it but itself, or every later write would hang
            failure = error
        self._execute("ROLLBACK TO one")
        return future, None, failure

    def _refuse(self, batch: list[_Job], error: apsw.Error) -> list[_Told]:
        """A commit that failed on the way to the disk is not tried again: what the disk holds is no longer known."""
        if self._connection.in_transaction:
            with suppress(apsw.Error):
                self._execute("ROLLBACK")
        failure = _failure(error)
        if isinstance(error, apsw.IOError | apsw.CorruptError | apsw.CantOpenError):
            self._broken = failure
        return [(future, None, failure) for future, _ in batch]

    def _report(self, told: list[_Told]) -> None:
        self._waiting -= len(told)
        _tell(told)

    def _report_half(self, told: list[_Told]) -> None:
        self._committing = False
        _tell(told)
        if self._gathered:
            self._loop.call_soon(self._write_gathered)


def _tell(told: list[_Told]) -> None:
    for future, result, error in told:
        if future.done():  # whoever asked was cancelled meanwhile; the commit stands
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


def _failure(error: apsw.Error) -> StoreError:
    if isinstance(error, apsw.FullError):
        return StoreFull("the disk is full: nothing was written. Make room and try again")
    if isinstance(error, apsw.ReadOnlyError):
        return StoreFull("the database cannot be written: it, its folder or its disk is read-only")
    if isinstance(error, apsw.CorruptError):
        return StoreCorrupt(f"the database is damaged ({error}): nothing more is written. Restore a backup")
    if isinstance(error, apsw.IOError | apsw.CantOpenError):
        return StoreBroken(f"the disk refused a write ({error}): nothing more is written until a restart")
    return StoreError(f"the database refused a write: {error}")
