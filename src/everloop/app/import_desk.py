"""Moving in as the page and the API do it: the owner sends an export or names a path of this machine, looks at what
would come, and has it done beside everything else. One at a time; how it stands is kept as long as the process."""

import asyncio
import secrets
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path

from ..errors import EverloopError, FileTooLarge, MailRefused, NoRoom
from ..moving.values import ForeignSource
from ..ports.importing import EXPORTS, ImportedThing, ImportStanding, ImportUpload, ImportWanted
from ..settings import path_in
from ..settings.editor import SettingsEditor
from .house import House
from .moving import Mover, MovingOptions, MovingReport, source_for
from .moving_hand import TakingHand
from .moving_ledger import ImportLedger
from .moving_look import LookingHand
from .schedules import schedules_in

LARGEST = 4 << 30
SPARED = 1 << 30  # bytes of the disk that stay free
SHOWN, LEFT_SHOWN = 50, 200  # of each kind; of what is not taken over
BUSY = "An import runs already; wait until it is done."
NO_UPLOAD = "This file is not here any more; choose it again."
NEITHER = "Name a path of the gateway's machine, or send a file."


class ImportDesk:
    def __init__(self, house: House, book: SettingsEditor, changed: Callable[[], Awaitable[None]]) -> None:
        """`changed` is called when settings may have been written."""
        self._house = house
        self._book = book
        self._changed = changed
        self._folder = house.opened.home / EXPORTS
        self._wanted: ImportWanted | None = None
        self._report = MovingReport([], {}, [])
        self._running = self._receiving = False
        self._error = ""

    async def receive(self, pieces: AsyncIterator[bytes]) -> ImportUpload:
        """Keep an export; the one before it goes. Raises NoRoom, FileTooLarge, MailRefused."""
        if self._running or self._receiving:
            raise MailRefused(BUSY)
        self._receiving = True
        try:
            await asyncio.to_thread(self._clear)
            return await self._receive(self._folder / f"{secrets.token_hex(8)}.zip", pieces)
        finally:
            self._receiving = False

    async def _receive(self, path: Path, pieces: AsyncIterator[bytes]) -> ImportUpload:
        size = 0
        await asyncio.to_thread(self._folder.mkdir, mode=0o700, exist_ok=True)
        try:
            with await asyncio.to_thread(open, path, "xb") as file:
                async for piece in pieces:
                    size += len(piece)
                    await asyncio.to_thread(self._check_room, size)
                    await asyncio.to_thread(file.write, piece)
        except BaseException:
            await asyncio.to_thread(self._clear)
            raise
        return ImportUpload(path.stem, size)

    def _check_room(self, size: int) -> None:
        if size > LARGEST:
            raise FileTooLarge(
                f"The export is larger than {LARGEST:,} bytes. Run everloop import on the gateway's machine instead."
            )
        if shutil.disk_usage(self._folder).free < SPARED:
            raise NoRoom("There is too little room on the disk of the gateway for this export.")

    def _clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def begin(self, wanted: ImportWanted) -> ImportStanding:
        """Look, or do it, beside everything else. Raises MailRefused."""
        if self._running or self._receiving:
            raise MailRefused(BUSY)
        path = self._path(wanted)
        self._wanted, self._error, self._running = wanted, "", True
        self._report = MovingReport([], {}, [])
        self._house.supervisor.start("import", lambda: self._run(wanted, path), once=True)
        return self.standing()

    def _path(self, wanted: ImportWanted) -> Path:
        if not wanted.upload:
            if not wanted.path.strip():
                raise MailRefused(NEITHER)
            return path_in(Path(), wanted.path.strip())
        path = self._folder / f"{wanted.upload}.zip"
        if not wanted.upload.isalnum() or not path.is_file():
            raise MailRefused(NO_UPLOAD)
        return path

    async def _run(self, wanted: ImportWanted, path: Path) -> None:
        try:
            await self._move(wanted, path)
            if not wanted.dry_run:
                await self._changed()
        except EverloopError as error:
            self._error = str(error)
        except BaseException:
            self._error = "It was interrupted. What was taken over is there; run it again for the rest."
            raise
        else:
            if wanted.upload and not wanted.dry_run:
                await asyncio.to_thread(self._clear)
        finally:
            self._running = False

    async def _move(self, wanted: ImportWanted, path: Path) -> None:
        """The source is let go of, however it ends: what was sent is removed then, and takes no room any more."""
        with closing(await asyncio.to_thread(source_for, self._house.opened.home, wanted.kind, path)) as source:
            mover = await self._mover_for(wanted, source)
            self._report = mover.report
            await mover.move()

    async def _mover_for(self, wanted: ImportWanted, source: ForeignSource) -> Mover:
        house, home = self._house, self._house.opened.home
        options = MovingOptions(wanted.enable, wanted.grown)
        ledger = await asyncio.to_thread(ImportLedger, home)
        if wanted.dry_run:
            looking = await asyncio.to_thread(LookingHand, home, self._book, wanted.kind)
            return Mover(source, ledger, looking, _silent, options)
        hand = TakingHand(
            opened=house.opened,
            sessions=house.sessions,
            book_of_memory=house.memory,
            attachments=house.storage.attachments,
            schedules=schedules_in(house.store, house.bus, house.clock, house.opened.settings_now),
            book=self._book,
            source=source,
            enable=wanted.enable,
        )
        return Mover(source, ledger, hand, _silent, options)

    def standing(self) -> ImportStanding:
        if self._wanted is None:
            return ImportStanding()
        report = self._report
        state = "running" if self._running else "failed" if self._error else "done"
        counts = Counter(each.what for each in report.taken)
        return ImportStanding(
            state=state,  # type: ignore[arg-type]
            wanted=self._wanted,
            done=len(report.taken) + sum(report.there.values()),
            messages=report.messages,
            counts=dict(counts),
            taken=_first_of_each(report) if not self._running else [],
            there=dict(report.there),
            left=report.left[:LEFT_SHOWN] if not self._running else [],
            left_count=len(report.left),
            error=self._error,
        )


def _first_of_each(report: MovingReport) -> list[ImportedThing]:
    seen: Counter[str] = Counter()
    found = []
    for each in report.taken:
        seen[each.what] += 1
        if seen[each.what] <= SHOWN:
            found.append(ImportedThing(each.what, each.name[:200], each.note[:400]))
    return found


def _silent(line: str) -> None:
    pass
