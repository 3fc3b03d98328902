"""The home of nanobot, https://github.com/HKUDS/nanobot: version 0.3.5 as it writes it, and the layouts before.

Sessions lie in `sessions/<workspace id>/<key in base64>.jsonl`, earlier in `sessions/<key>.jsonl` of the home or of the
workspace. A job that was made while no gateway ran is not in `cron/jobs.json` yet, but in `cron/action.jsonl`.
"""

import base64
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import EverloopError
from .homes import json_lines, read_json, read_text, skills_in, when_of, workspace_in, workspace_texts
from .transcript import ForeignTranscript, seconds
from .values import ForeignConversation, ForeignFile, ForeignJob, ForeignSkill, ForeignText, Remark

# Lines that nanobot puts into every memory, and that say nothing.
_TEMPLATE = re.compile(r"^\(.*\)$|^\*This file is automatically updated|^---$|^This file stores important information")
_HIDDEN = ("_command", "_hidden_history", "_hidden")


class NanobotHome:
    kind = "nanobot"

    def __init__(self, path: Path) -> None:
        """Raises EverloopError."""
        inner = path / ".nanobot"
        self.home = inner if inner.is_dir() else path
        if not self.home.is_dir():
            raise EverloopError(f"there is no folder {path}")
        if not (self.home / "config.json").exists() and not (self.home / "workspace").is_dir():
            raise EverloopError(f"{path} is no home of nanobot: it has neither a config.json nor a workspace")
        self.workspace = self._workspace()

    def close(self) -> None:
        """Nothing is held open."""

    def settings(self) -> Mapping[str, Any]:
        found = read_json(self.home / "config.json") if (self.home / "config.json").exists() else {}
        if not isinstance(found, Mapping):
            raise EverloopError(f"{self.home / 'config.json'} is no JSON object: mend it, or move it away")
        return found

    def _workspace(self) -> Path:
        return workspace_in(self.home, read_json(self.home / "config.json"), "~/.nanobot/workspace")

    def conversations(self) -> Iterator[ForeignConversation | Remark]:
        folders = (self.home / "sessions", self.workspace / "sessions")
        for path in sorted(path for folder in folders for path in folder.rglob("*.jsonl")):
            if path.is_file() and not path.name.startswith("."):
                yield self._conversation(path)

    def _conversation(self, path: Path) -> ForeignConversation | Remark:
        broken, about = 0, {}
        transcript = ForeignTranscript()
        for line in json_lines(read_text(path)):
            if line is None:
                broken += 1
            elif line.get("_type") == "metadata":
                about = dict(line)
                transcript = ForeignTranscript(seconds(line.get("created_at")) or 0.0)
            elif "role" in line and not any(line.get(key) for key in _HIDDEN):
                self._add(transcript, line)
        transcript.end()
        key = str(about.get("key") or _key_of(path.stem))
        if not transcript.messages:
            return Remark(f"the session {key[:60]} ({path.name}) holds no message that can be read")
        more = about.get("metadata") if isinstance(about.get("metadata"), dict) else {}
        remarks = [f"{broken} lines of it are broken and left out"] if broken else []
        remarks += [f"{transcript.left_out} results of it belong to no call"] if transcript.left_out else []
        return ForeignConversation(
            id=f"{key}:{about.get('created_at', '')}",
            title=str((more or {}).get("title") or ""),
            created=seconds(about.get("created_at")) or 0.0,
            messages=transcript.messages,
            session=session_of(key),
            files=transcript.files,
            remarks=tuple(remarks),
        )

    def _add(self, transcript: ForeignTranscript, line: Mapping[str, Any]) -> None:
        at, text = seconds(line.get("timestamp")), _text(line.get("content"))
        match line.get("role"):
            case "user":
                transcript.ask(text, at, self._media(line.get("media")))
            case "assistant":
                calls = line.get("tool_calls")
                made = tuple(
                    _call(each) for each in (calls if isinstance(calls, list) else ()) if isinstance(each, dict)
                )
                transcript.answer(text, at, calls=made, reasoning=str(line.get("reasoning_content") or ""))
            case "tool":
                transcript.result(str(line.get("tool_call_id")), text, at)

    def _media(self, given: Any) -> tuple[ForeignFile, ...]:
        """Under the home's own folder of media, wherever the home was when they were named."""
        names = [str(each) for each in given if isinstance(each, str)] if isinstance(given, list) else []
        inner = [(name, name.replace("\\", "/").rpartition("/media/")[2]) for name in names]
        return tuple(ForeignFile(Path(name).name, place) for name, place in inner)

    def file(self, found: ForeignFile, most: int) -> bytes | None:
        folder = self.home.resolve() / "media"  # which a link leads nowhere else
        try:
            path = (folder / found.place).resolve()
            inside = path.is_relative_to(folder) and path.is_file() and path.stat().st_size <= most
            return path.read_bytes() if inside else None
        except (OSError, ValueError):  # it is no path, or cannot be read: told as missing
            return None

    def memory(self) -> str:
        return own_lines(read_text(self.workspace / "memory" / "MEMORY.md"))

    def history(self) -> str:
        folder = self.workspace / "memory"
        kept = [read_text(folder / "HISTORY.md").strip()]
        for line in json_lines(read_text(folder / "history.jsonl")):
            if line and line.get("content"):
                kept.append(f"[{str(line.get('timestamp') or '')[:16]}] {str(line['content']).strip()}")
        return "\n\n".join(filter(None, kept))

    def skills(self) -> Iterator[ForeignSkill]:
        return skills_in(self.workspace / "skills")

    def texts(self) -> Iterator[ForeignText | Remark]:
        return workspace_texts(self.workspace)

    def jobs(self) -> Iterator[ForeignJob | Remark]:
        found: dict[str, Mapping[str, Any]] = {}
        for folder in (self.home / "cron", self.workspace / "cron"):
            store = read_json(folder / "jobs.json")
            jobs = store.get("jobs") if isinstance(store, dict) else None
            found |= {str(job.get("id")): job for job in (jobs or ()) if isinstance(job, dict)}
            for line in json_lines(read_text(folder / "action.jsonl")):
                given = line.get("params") if line else None
                if line and isinstance(given, dict) and line.get("action") == "del":
                    found.pop(str(given.get("job_id")), None)
                elif isinstance(given, dict):
                    found[str(given.get("id"))] = given
        for id, job in found.items():
            yield _job(id, job)


def own_lines(text: str) -> str:
    """A memory without the lines that say nothing, and the headings that nothing stands under."""
    lines = [line.rstrip() for line in text.split("\n") if not _TEMPLATE.match(line.strip())]
    kept: list[str] = []
    for line in reversed(lines):
        level = len(line) - len(line.lstrip("#"))
        below = next((each for each in reversed(kept) if each.strip()), "#")
        if level and below.startswith("#") and len(below) - len(below.lstrip("#")) <= level:
            continue
        kept.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(reversed(kept))).strip()


def session_of(key: str) -> str:
    """Where it goes on here: at the terminal, or in the same private chat; else in the page."""
    return key if key == "cli:direct" or re.fullmatch(r"telegram:[1-9]\d{0,15}", key) else ""


def _key_of(stem: str) -> str:
    try:
        return base64.urlsafe_b64decode(stem + "=" * (-len(stem) % 4)).decode()
    except ValueError:  # an earlier version has written the key itself, with an underscore
        return stem.replace("_", ":", 1)


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = [each for each in content if isinstance(each, Mapping)]
        return "\n".join(str(each.get("text") or "") for each in parts if each.get("type") == "text")
    return content if isinstance(content, str) else ""


def _call(given: Mapping[str, Any]) -> tuple[str, str, str]:
    function = given.get("function") if isinstance(given.get("function"), dict) else {}
    assert function is not None
    return str(given.get("id")), str(function.get("name") or ""), str(function.get("arguments") or "{}")


def _job(id: str, job: Mapping[str, Any]) -> ForeignJob | Remark:
    raw, payload = job.get("schedule"), job.get("payload")
    schedule: Mapping[str, Any] = raw if isinstance(raw, dict) else {}
    told: Mapping[str, Any] = payload if isinstance(payload, dict) else {}
    name, text = str(job.get("name") or id), str(told.get("message") or "")
    if told.get("kind") == "system_event" or not text.strip():
        return Remark(f"the job “{name[:60]}” is nanobot's own: heartbeat and memory have settings of their own here")
    when = when_of(schedule, time.time())
    if isinstance(when, Remark):
        return Remark(f"the job “{name[:60]}” is left: {when.text}")
    key = told.get("session_key") or told.get("sessionKey") or f"{told.get('channel')}:{told.get('to')}"
    zone = str(schedule.get("tz") or "UTC") if not when.startswith("every") else ""
    return ForeignJob(id, name, when, text, zone, session_of(str(key)), bool(job.get("enabled", True)))
