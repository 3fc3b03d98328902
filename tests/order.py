"""In which order tests are collected, and in which they are run."""

from pathlib import Path

import pytest

# What takes longest, the longest first, by the beginnings of its names.
LONG = [
    f"tests/{place}"
    for place in (
        *("torture/", "gateway/api/test_schema", "gateway/page/test_page_access", "providers/test_embedded.py"),
        *(
            "packaging/",
            "channels/matrix/",
            "cli/test_approvals_command",
            "cli/test_agent_command",
            "tools/test_limits",
        ),
        *("tools/test_files", "tools/test_exec", "tools/", "gateway/page/", "store/", "journeys/"),
        *("channels/", "cli/", "gateway/", "providers/", "net/", "replay/", "test_"),
    )
]


def in_turn(items: list[pytest.Item]) -> list[pytest.Item]:
    """What takes longest begins first, so that all workers end together: a file is one worker's."""
    return sorted(items, key=lambda item: (_turn_of(item.nodeid), item.path))


def _turn_of(name: str) -> int:
    return next((turn for turn, place in enumerate(LONG) if name.startswith(place)), len(LONG))


def begin_elsewhere(config: pytest.Config) -> None:
    """Every worker collects all tests. One that begins where no other does compiles what they find compiled when they
    come there, so that on a new checkout not all of them compile everything."""
    worker = getattr(config, "workerinput", None)
    if worker and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        folder = config.rootpath / config.args[0]
        places = sorted(str(path) for path in folder.iterdir() if path.name.startswith("test_") or _holds_tests(path))
        start = len(places) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        config.args = places[start:] + places[:start]


def _holds_tests(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith("_")
