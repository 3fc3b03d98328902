"""`python -m everloop`, typed in a workspace, takes no module that a command has put there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

NAMES = ("json", "resource", "asyncio", "msgspec", "sqlite3", "logging", "argparse", "yaml", "ssl")


def plant(folder: Path) -> None:
    for name in NAMES:
        (folder / f"{name}.py").write_text(
            f"open({str(folder / 'evil')!r}, 'a').write({name!r}); raise SystemExit(9)\n"
        )


def run(folder: Path, *words: str) -> tuple[int, bool]:
    """The exit code, and whether something that was planted has run."""
    (folder / "home").mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "EVERLOOP_HOME": str(folder / "home")}
    done = subprocess.run([sys.executable, *words], cwd=folder, env=env, capture_output=True, timeout=60)
    return done.returncode, (folder / "evil").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("-m", "everloop", "--version"),
        ("-meverloop", "--version"),
        ("-u", "-m", "everloop", "models", "--help"),
        ("-P", "-m", "everloop", "--version"),
        ("-I", "-m", "everloop", "--version"),
        ("-m", "everloop", "sessions", "list"),
        ("-m", "everloop.testing.model_server", "--help"),
    ],
)
def test_nothing_planted_is_run(tmp_path: Path, words: tuple[str, ...]) -> None:
    plant(tmp_path)
    assert run(tmp_path, *words) == (0, False)


@pytest.mark.parametrize("words", [("-m", "asyncio"), ("-c", "import everloop, json")])
def test_other_programs_find_what_lies_beside_them_as_ever(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Which also shows that what was planted would be found."""
    plant(tmp_path)
    assert run(tmp_path, *words) == (9, True)
