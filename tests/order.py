"""In which order tests are collected, and in which they are run."""

from pathlib import Path
from zlib import crc32

import pytest

# What takes longest, by the beginnings of its names.
LONG = [
    f"tests/{place}"
    for place in (
        *("torture/", "tools/test_limits", "tools/mcp/test_client", "app/doctor/test_faults", "tools/test_servers"),
        *("tools/test_exec.py", "gateway/ws/test_robustness", "gateway/api/test_schema", "tools/test_sandbox_escapes"),
        *("store/test_store.py", "tools/test_home", "cli/test_approvals_command", "store/test_outages"),
        *("gateway/page/test_page_setup", "tools/test_files", "gateway/page/test_page.py", "cli/test_mcp_command"),
        *("gateway/page/test_page_speech", "cli/test_chat_at_a_terminal", "store/test_vault", "cli/test_rich_chat"),
        *("providers/test_embedded.py", "gateway/page/test_page_access", "packaging/"),
    )
]


def in_turn(items: list[pytest.Item]) -> list[pytest.Item]:
    """What takes longest begins first, so that all workers end together: a file is one worker's. The others are mixed,
    so that at any time some of the workers wait and some compute."""
    return sorted(items, key=lambda item: (_turn_of(item.nodeid), _number_of(item.path), item.path))


def _turn_of(name: str) -> int:
    return next((turn for turn, place in enumerate(LONG) if name.startswith(place)), len(LONG))


def _number_of(path: Path) -> int:
    return crc32(path.name.encode())


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
