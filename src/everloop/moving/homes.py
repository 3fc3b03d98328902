"""What the homes of other agents have in common: a workspace with files and skills, and JSON that may be broken."""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import EverloopError
from .transcript import seconds, written_time
from .values import ForeignSkill, ForeignText, Remark

LARGEST_FILE = 100 << 20
MOST_FILES = 20_000
LARGEST_JSON = 64 << 20
SKIPPED = {".git", ".nanobot", ".openclaw", "node_modules", "__pycache__", ".venv", "sessions", "cron", "skills"}
MARKS = ("AGENTS.md", "SOUL.md", "USER.md", "memory")  # what both agents write into every workspace
MEMORIES = {"MEMORY.md", "HISTORY.md", "history.jsonl", ".cursor", ".dream_cursor"}


def read_text(path: Path) -> str:
    """What a file says; "" when it is not there, cannot be read, or is a link or a pipe."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            is_fit = stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST_JSON
            return file.read().decode("utf-8", "replace") if is_fit else ""
    except OSError:  # what is not there says nothing
        return ""


def read_json(path: Path) -> Any:
    """None for what is not there, or is no JSON."""
    try:
        return json.loads(read_text(path) or "null")
    except (ValueError, RecursionError):  # told by whoever needs it
        return None


def workspace_in(home: Path, config: Any, usual: str) -> Path:
    """The folder that its owner has chosen, if it is there; else the one in the home, wherever the home is now. A
    stranger's home may name any folder of whoever moves in, such as that of their keys: one outside of the home counts
    only if it looks like a workspace. Raises EverloopError."""
    for key in ("agents", "defaults", "workspace"):
        config = config.get(key) if isinstance(config, Mapping) else None
    if isinstance(config, str) and config.rstrip("/") not in ("", usual) and "\0" not in config:
        chosen = Path(config).expanduser() if config.startswith("~/") else Path(config)
        if chosen.is_absolute() and chosen.is_dir():
            return _looked_at(chosen)
    inner = home / "workspace"
    return _looked_at(inner) if inner.is_symlink() else inner


def _looked_at(folder: Path) -> Path:
    if not any(os.path.lexists(folder / name) for name in MARKS):
        raise EverloopError(
            f"its workspace is said to be {folder}, which holds nothing that a workspace has ({', '.join(MARKS)}): if "
            "it is one, put an AGENTS.md there; else mend its settings, or what links there"
        )
    return folder


def json_lines(text: str) -> Iterator[Mapping[str, Any] | None]:
    """The objects of a file that has one a line; None for a line that is broken."""
    for line in text.split("\n"):
        if line.strip():
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                found = None
            yield found if isinstance(found, Mapping) else None


def workspace_texts(workspace: Path) -> Iterator[ForeignText | Remark]:
    """The files of a workspace, but for what is taken over in other ways."""
    count = 0
    for path in sorted(workspace.rglob("*")):
        name = path.relative_to(workspace)
        if set(name.parts[:-1]) & SKIPPED or name.name in SKIPPED:
            continue
        if name.parts[0] == "memory" or name.as_posix() in MEMORIES:
            continue
        is_folder, is_link = os.path.isdir(path), path.is_symlink()
        if is_folder and not is_link and os.access(path, os.R_OK | os.X_OK):
            continue
        if is_link or not (is_folder or os.path.isfile(path)):
            yield Remark(f"{name} of the workspace is a link or no plain file: copy it by hand if you need it")
        elif is_folder or not os.access(path, os.R_OK):
            yield Remark(f"{name} of the workspace may not be read: copy it by hand")
        elif path.stat().st_size > LARGEST_FILE:
            yield Remark(f"{name} of the workspace has more than {LARGEST_FILE:,} bytes: copy it by hand")
        elif (count := count + 1) > MOST_FILES:
            yield Remark(f"the workspace has more than {MOST_FILES:,} files: copy the rest by hand")
            return
        else:
            yield ForeignText(name.as_posix(), path)


def skills_in(folder: Path) -> Iterator[ForeignSkill]:
    for path in sorted(folder.glob("*/SKILL.md")):
        if path.is_file() and not path.parent.is_symlink():
            yield ForeignSkill(path.parent.name, path.parent)


def when_of(schedule: Mapping[str, Any], now: float) -> str | Remark:
    """When a job is due, as our schedules say it; zones stand beside it."""
    kind = schedule.get("kind")
    every = schedule.get("everyMs", schedule.get("every_ms"))
    if kind == "every" and isinstance(every, int | float) and 0 < every < 1e12:
        minutes, rest = divmod(round(every / 1000), 60)
        return f"every {minutes}m" if not rest else f"every {round(every / 1000)}s"
    if kind == "cron":
        expression = " ".join(str(schedule.get("expr") or "").split())
        if len(expression.split()) != 5:
            return Remark("its cron expression has seconds or is none of five fields: `everloop cron add` takes five")
        return f"cron {expression}"
    at = seconds(schedule.get("at") or schedule.get("atMs") or schedule.get("at_ms"))
    if kind == "at" and at is not None:
        return f"at {written_time(at)[:19]}" if at > now else Remark("its time is over")
    return Remark(f"its kind of time ({str(kind)[:30]}) is not known here: make it anew with `everloop cron add`")
