"""A home that is moved aside for a restore is never lost from sight, whenever the restore is cut off."""

import errno
import os
from pathlib import Path

import pytest

from everloop.app.new_home import NewHome, make_room
from everloop.app.opening import half_restored, opened_home
from everloop.app.restore_marker import marker_beside
from everloop.errors import HomeError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / "workspace").mkdir(parents=True)
    (home / "workspace" / "mine.txt").write_text("mine")
    return home


async def is_refused(home: Path, aside: Path) -> bool:
    with pytest.raises(HomeError) as refused:
        async with opened_home(home):
            pass
    return f"lies in {aside}, whole" in str(refused.value) and not (home / "everloop.db").exists()


def cut_off(home: Path) -> Path:
    """As a process is that was killed when the home was moved aside, and nothing is in its place."""
    aside = make_room(home, replace=True).aside
    home.rmdir()
    assert aside is not None
    return aside


def linked(home: Path) -> Path:
    link = home.parent / "link"
    link.symlink_to(home)
    return link


async def test_killed_before_anything_is_in_its_place_no_empty_home_is_opened(home: Path):
    aside, link = cut_off(home), linked(home)
    assert await is_refused(home, aside)
    os.mkdir(home)
    assert await is_refused(home, aside)
    assert await is_refused(link, aside)
    os.unlink(marker_beside(home))
    assert half_restored(home) == ""  # without the marker nobody would know


def test_renamed_back_it_opens_and_restored_again_it_still_lies_aside(home: Path):
    aside = cut_off(home)
    assert make_room(home, replace=False) == NewHome(home, aside)
    home.rmdir()
    aside.rename(home)
    assert half_restored(home) == ""
    assert (home / "workspace" / "mine.txt").read_text() == "mine"


def test_what_fails_is_put_back_and_what_succeeds_leaves_no_marker(home: Path):
    begun = make_room(home, replace=True)
    with begun.marked("file", ""):
        begun.put_back()
    assert sorted(path.name for path in home.parent.iterdir()) == ["home"]
    assert (home / "workspace" / "mine.txt").read_text() == "mine"
    done = make_room(home, replace=True)
    with done.marked("file", ""):
        done.finish()
    assert (half_restored(home), sorted(home.iterdir())) == ("", [])
    assert done.aside is not None
    assert sorted(home.parent.iterdir()) == sorted([home, done.aside])


def test_a_volume_of_its_own_is_empty_with_what_its_disk_has_put_there(tmp_path: Path):
    (tmp_path / "volume" / "lost+found").mkdir(parents=True)
    assert make_room(tmp_path / "volume", replace=False) == NewHome(tmp_path / "volume", None)
    assert os.listdir(tmp_path / "volume") == ["lost+found"]


def test_a_volume_is_not_moved_aside_and_it_is_said_what_to_do(home: Path, monkeypatch: pytest.MonkeyPatch):
    def busy(*paths: Path) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(Path, "rename", busy)
    with pytest.raises(HomeError, match="is a volume of its own, which cannot be moved aside: move what lies in it"):
        make_room(home, replace=True)
    assert os.listdir(home.parent) == ["home"]
