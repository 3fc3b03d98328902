"""The doctor says when backups that are to be made are not."""

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from everloop.app.doctor.backups import MAKE, judged, look_at_backups
from everloop.app.doctor.check import Patient
from everloop.backup.listing import BackupFile
from everloop.net.trusted import TrustedHttp
from everloop.settings import Settings
from everloop.settings.shape import BackupSection


@pytest.mark.parametrize(
    ("every", "days", "found"),
    [
        ("", None, ("ok", "")),
        ("daily", None, ("advice", MAKE)),
        ("daily", 0, ("ok", "")),
        ("daily", 3, ("broken", MAKE)),
        ("weekly", 3, ("ok", "")),
        ("weekly", 12, ("broken", MAKE)),
    ],
)
async def test_what_is_overdue_is_found(tmp_path: Path, every: str, days: int | None, found: tuple[str, str]):
    (tmp_path / "backups").mkdir()
    if days is not None:
        made = datetime.fromtimestamp(time.time() - days * 86_400, UTC)
        (tmp_path / "backups" / f"everloop-{made:%Y%m%d-%H%M%S}.tar.gz").touch()
    settings = Settings(backup=BackupSection(every=every))
    (finding,) = await look_at_backups(Patient(home=tmp_path, environ={}, settings=settings, http=TrustedHttp))
    assert (finding.verdict, finding.todo) == found


@pytest.mark.parametrize(("ahead", "verdict"), [(0, "ok"), (30, "broken")])
def test_a_clock_that_was_ahead_is_found(ahead: int, verdict: str, tmp_path: Path):
    last = BackupFile(tmp_path / "everloop-20261201-000000.tar.gz", time.time() + ahead * 86_400, 1, False)
    (finding,) = judged(last, "daily", time.time())
    assert finding.verdict == verdict


async def test_a_folder_that_is_none_is_found(tmp_path: Path):
    (tmp_path / "backups").touch()
    (finding,) = await look_at_backups(Patient(home=tmp_path, environ={}, settings=Settings(), http=TrustedHttp))
    assert (finding.verdict, finding.todo) == ("broken", "Set backup.folder to a folder that can be read and written")
