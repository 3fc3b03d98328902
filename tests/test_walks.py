"""What bench/walks.py and bench/house.py count, tried on a package small enough to count by hand."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import house, walks

FILES = {
    "app.py": "from .core.log import Said\nfrom .store import Kept\nfrom . import steward\n",
    "steward.py": "class Kept: ...\nclass Found: ...\n",
    "store/__init__.py": "from ..core import log\nclass Kept: ...\n",
    "core/__init__.py": "",
    "core/log.py": (
        "class _Entry: ...\nclass Said(_Entry): ...\nclass Told(_Entry): ...\n"
        "def whole(entry):\n    match entry:\n        case Said(): ...\n        case _: assert_never(entry)\n"
        "def half(entry):\n    match entry:\n        case Told(): ...\n"
    ),
    "core/thread.py": "class Thread:\n    def __init__(self): self.a, self.b = 1, 2\n    def add(self): self.b = 3\n",
    "ports.py": (
        "class Mail(Protocol):\n    def one(self): ...\n    async def two(self): ...\n"
        "class Store(Mail, Protocol):\n    def three(self): ...\n"
    ),
    "cli.py": 'def show(event):\n    if event.name in ("taken", "answer"): ...\n    if event.name == "joe": ...\n',
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "src" / "everloop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_the_house_is_counted(checkout: Path):
    counted = {name: str(count(house.House(checkout))) for name, (_, count) in house.ROWS.items()}
    assert counted == {
        "import edges above the rooms": "3",
        "import edges between all places": "4",
        "class names for two things": "1",
        "class names for three or more": "0",
        "slots of Thread": "2",
        "methods of the largest port, its own": "2",
        "the same with what it inherits": "3",
        "lines of core": "13",
        "comparisons with an event's name": "2",
        "matches over entries": "2",
        "of these, ending in assert_never": "1",
        "matches over events": "0",
        "of those, ending in assert_never": "0",
        "files, lines": "8, 28",
    }


@pytest.fixture
def walked(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "walked").mkdir()
    (tmp_path / "walked" / "__init__.py").write_text("")
    (tmp_path / "walked" / "one.py").write_text(
        "from . import two\ndef table(): return [1]\nTABLE = table()\n"
        "def ask(): two.answer(); two.answer(); return last()\ndef last(): return [each for each in TABLE]\n"
    )
    (tmp_path / "walked" / "two.py").write_text("def answer(): return 1\n")
    sys.path.insert(0, str(tmp_path))
    yield tmp_path / "walked"
    sys.path.remove(str(tmp_path))


def test_a_walk_is_what_is_called_and_not_what_is_loaded(walked: Path):
    walk = walks.Walk(walked)
    walk.seeing = True
    sys.setprofile(walk)
    try:
        importlib.import_module("walked.one").ask()
    finally:
        sys.setprofile(None)
    steps = list(walk.steps.values())
    assert steps == ["one.py:ask", "two.py:answer", "one.py:last"]
    assert walks.counted(steps) == {"files entered": 2, "functions": 3, "changes of file": 2}


async def test_everloop_of_this_checkout_can_be_walked():
    found = await walks.walks_of(Path(__file__).parent.parent)
    assert list(found) == ["everloop agent -m hi", "a WebSocket message, one tool call"]
    assert all("core/decide.py:decide" in steps for steps in found.values())
    command, message = found.values()
    assert "tools/list_dir.py:list_dir_tool.<locals>.list_dir" in message
    assert "tools/list_dir.py:list_dir_tool.<locals>.list_dir" not in command
