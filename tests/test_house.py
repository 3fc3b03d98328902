"""Core is what runs a turn and no more: counted, and read from what its modules import."""

import ast
from pathlib import Path

import pytest
from bench.house import House

CHECKOUT = Path(__file__).parents[1]
WHERE_IT_BEGINS = {"decide", "briefing"}


def imports_in(core: Path) -> dict[str, set[str]]:
    """Of each module of core, those that it imports."""
    return {file.stem: set(_imported(file)) for file in core.glob("*.py") if file.stem != "__init__"}


def _imported(file: Path) -> list[str]:
    nodes = [node for node in ast.walk(ast.parse(file.read_bytes())) if isinstance(node, ast.ImportFrom)]
    named = [node.module for node in nodes if node.level == 1 and node.module]
    return named + [alias.name for node in nodes if node.level == 1 and not node.module for alias in node.names]


def superfluous(core: Path) -> set[str]:
    """Modules that are not needed to decide what a turn does next, or to say what it begins with."""
    imports = imports_in(core)
    needed, ahead = set(), WHERE_IT_BEGINS & imports.keys()
    while ahead:
        needed |= ahead
        ahead = {name for each in ahead for name in imports.get(each, ())} - needed
    return imports.keys() - needed


def test_core_is_what_runs_a_turn():
    assert superfluous(CHECKOUT / "src" / "everloop" / "core") == set()


def test_a_module_that_no_turn_needs_is_seen(tmp_path: Path):
    sources = {"decide": "from .thread import x", "thread": "from . import log", "log": "", "rows": ""}
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source)
    assert superfluous(tmp_path) == {"rows"}


LIMITS = {"lines of core": 3_000, "slots of Thread": 30, "methods of the largest port, its own": 10,
          "import edges above the rooms": 45}  # fmt: skip


def counts_of(house: House) -> dict[str, int]:
    return {
        "lines of core": house.lines("core"),
        "slots of Thread": house.slots(),
        "methods of the largest port, its own": max(own for own, _ in house.ports.values()),
        "import edges above the rooms": house.edges_above,
    }


def test_the_house_stays_within_its_limits():
    assert {name: n for name, n in counts_of(House(CHECKOUT)).items() if n > LIMITS[name]} == {}


def test_whoever_tells_events_apart_knows_all_of_them():
    """Who cares for a few asks for these: an open match looks the same whether one was left out or forgotten."""
    matches = House(CHECKOUT).event_matches
    left_open = {file for file, closed in matches.items() if not all(closed)}
    assert (left_open, "gateway/ws/feed.py" in matches) == (set(), True)


@pytest.mark.parametrize("lines", [3_000, 3_001])
def test_one_line_too_many_is_seen(tmp_path: Path, lines: int):
    files = {
        "core/thread.py": "class Thread:\n    def __init__(self): self.a = 1\n" + "\n" * (lines - 2),
        "ports/log.py": "class Log(Protocol):\n    def one(self): ...\n",
    }
    for name, text in files.items():
        path = tmp_path / "src" / "everloop" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    counts = counts_of(House(tmp_path))
    assert [name for name, n in counts.items() if n > LIMITS[name]] == (["lines of core"] if lines > 3_000 else [])
