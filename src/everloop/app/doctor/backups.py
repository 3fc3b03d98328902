"""Whether what is kept could be brought back."""

import time
from collections.abc import Sequence
from pathlib import Path

from ...backup.listing import BackupFile, backups_in, made_ones
from ...errors import BackupError
from ...ports.doctor import Diagnosis
from ...store.onlooking import KNOWN
from ..backups import folder_of, names_made
from .check import Check, Patient, advice, aside, broken, fine, many, why_unwritable

DAYS = {"daily": 1, "weekly": 7}
LATE = 1.5  # of the time between two
PLAN = "Have the next one planned anew: everloop backup schedule {every}; then everloop backup create"
MAKE = "Make one now with `everloop backup create`, and see in `everloop logs` why the gateway made none"


async def look_at_backups(patient: Patient) -> Sequence[Diagnosis]:
    chosen = patient.chosen.backup
    try:
        last = await _last(patient, folder_of(patient.chosen, patient.home))
    except BackupError as error:
        return [broken(str(error), "Set backup.folder to a folder that can be read and written")]
    if not chosen.every:
        return fine("no backups are made by themselves; `everloop backup schedule daily` has them made")
    if why := await aside(why_unwritable, folder_of(patient.chosen, patient.home)):
        return [broken(f"the backups cannot be written: {why}", "Set backup.folder to a folder that can be written")]
    if last is None:
        return [advice(f"backups are to be made {chosen.every}, and there is none yet", MAKE)]
    return judged(last, chosen.every, time.time())


def judged(last: BackupFile, every: str, now: float) -> Sequence[Diagnosis]:
    days = (now - last.made) / 86_400
    if days > DAYS[every] * LATE:
        return [broken(f"the last backup is {many(int(days), 'day')} old, and one is due {every}", MAKE)]
    if days < -1:
        what = f"{last.name} was made by a clock that was {many(int(-days), 'day')} ahead, and puts off those after it"
        return [broken(what, PLAN.format(every=every))]
    return fine(f"the last backup is {last.name}")


async def _last(patient: Patient, folder: Path) -> BackupFile | None:
    """Of those that this home has noted; where its store cannot be asked, of those whose name can be true."""
    if patient.opened is not None and patient.schema == KNOWN:
        return next(iter(await aside(made_ones, folder, await names_made(patient.opened.store))), None)
    found = await aside(backups_in, folder)
    return next((each for each in found if each.made <= time.time()), None)


CHECKS = (Check("backups", "backups are made as often as they are to be", look_at_backups, needs="settings"),)
