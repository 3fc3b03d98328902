"""The home of OpenClaw, https://github.com/openclaw/openclaw: version 2026.9.6 as it writes it, and the layout before.

Sessions are events, each with the one before it. They lie in `agents/<id>/agent/openclaw-agent.sqlite`, earlier in
`agents/<id>/sessions/<session>.jsonl` with the keys in `sessions.json`; jobs in `state/openclaw.sqlite`, earlier in
`cron/jobs.json`. A database is copied before it is read, for reading one in place writes beside it.
"""

import base64
import binascii
import json
import os
import re
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import EverloopError
from . import json5
from .homes import json_lines, read_json, read_text, skills_in, when_of, workspace_in, workspace_texts
from .transcript import ForeignTranscript, seconds
from .values import ForeignConversation, ForeignFile, ForeignJob, ForeignSkill, ForeignText, Remark
from .zstd import decompressor

COMPRESSED = (
    "the session {key} of OpenClaw holds compressed messages, which nothing here can read: "
    "pip install zstandard, then run this again"
)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}.*\.md")
_DIRECT = re.compile(r"telegram:(?:direct|dm):([1-9]\d{0,15})")
Events = list[Mapping[str, Any]]


class OpenClawHome:
    kind = "openclaw"

    def __init__(self, path: Path) -> None:
        """Raises EverloopError."""
        inner = path / ".openclaw"
        self.home = inner if inner.is_dir() else path
        if not self.home.is_dir():
            raise EverloopError(f"there is no folder {path}")
        if not any((self.home / name).exists() for name in ("openclaw.json", "agents", "workspace")):
            raise EverloopError(f"{path} is no home of OpenClaw: it has neither an openclaw.json nor agents")
        try:
            config = self.settings()
        except EverloopError:  # told when it is asked for
            config = {}
        self.workspace = workspace_in(self.home, config, "~/.openclaw/workspace")

    def close(self) -> None:
        """Nothing is held open."""

    def settings(self) -> Mapping[str, Any]:
        file = self.home / "openclaw.json"
        try:
            found = json5.loads(read_text(file) or "{}")
        except (ValueError, RecursionError) as error:
            raise EverloopError(f"{file} cannot be read as JSON5 ({error}): mend it, or move it away") from error
        return found if isinstance(found, Mapping) else {}

    def conversations(self) -> Iterator[ForeignConversation | Remark]:
        for agent in sorted((self.home / "agents").glob("*")):
            database = agent / "agent" / "openclaw-agent.sqlite"
            seen: set[str] = set()
            for session, key, title, events in _from_database(database) if database.exists() else ():
                seen.add(session)
                yield _conversation(session, key, title, events)
            for session, key, events in _from_files(agent / "sessions"):
                if session not in seen:
                    yield _conversation(session, key, "", events)

    def file(self, found: ForeignFile, most: int) -> bytes | None:
        if len(found.place) > most * 4 // 3 + 4:
            return None
        try:
            return base64.b64decode(found.place, validate=True) or None
        except (binascii.Error, ValueError):  # told as missing
            return None

    def memory(self) -> str:
        return read_text(self.workspace / "MEMORY.md").strip()

    def history(self) -> str:
        """The notes of each day, with the day before every line."""
        lines = []
        for path in sorted((self.workspace / "memory").glob("*.md")):
            if _DAY.fullmatch(path.name):
                said = (line.strip() for line in read_text(path).split("\n"))
                lines += [f"[{path.name[:10]}] {line.removeprefix('- ')}" for line in said if line and line[0] != "#"]
        return "\n\n".join(lines)

    def skills(self) -> Iterator[ForeignSkill]:
        yield from skills_in(self.workspace / "skills")
        yield from skills_in(self.home / "skills")

    def texts(self) -> Iterator[ForeignText | Remark]:
        for each in workspace_texts(self.workspace):
            if not (isinstance(each, ForeignText) and each.name == "BOOTSTRAP.md"):
                yield each

    def jobs(self) -> Iterator[ForeignJob | Remark]:
        database = self.home / "state" / "openclaw.sqlite"
        jobs: list[Any] = []
        if database.exists():
            try:
                with opened(database) as found:
                    rows = found.execute("SELECT CAST(job_json AS TEXT) FROM cron_jobs ORDER BY sort_order").fetchall()
            except (sqlite3.Error, OSError) as error:
                yield Remark(
                    f"the jobs of OpenClaw cannot be read ({_why(error)}): make them anew with `everloop cron add`"
                )
                rows = []
            jobs = [_parsed(text) for (text,) in rows]
            if broken := jobs.count(None):
                yield Remark(f"{broken} jobs of OpenClaw are broken: make them anew with `everloop cron add`")
        store = read_json(self.home / "cron" / "jobs.json")
        known = {str(job["id"]) for job in jobs if isinstance(job, dict) and "id" in job}
        more = store.get("jobs") if isinstance(store, dict) else None
        jobs += [job for job in (more or ()) if isinstance(job, dict) and str(job.get("id")) not in known]
        for job in jobs:
            if isinstance(job, dict) and not job.get("declarationKey"):  # else it is OpenClaw's own
                yield _job(job)


def _parsed(text: str | None) -> Any:
    """None for what is no JSON."""
    try:
        return json.loads(text or "null")
    except (ValueError, RecursionError):  # told by whoever needs it
        return None


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A copy of a database with what was not written into it yet. Whatever stands in it, it is read as text. Raises
    OSError."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        _copy(path, copy)
        if (log := path.with_name(f"{path.name}-wal")).exists():
            _copy(log, copy.with_name(log.name))
        connection = sqlite3.connect(copy, check_same_thread=False)  # who reads may do so in threads, one at a time
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.set_authorizer(_tables_alone)
        try:
            yield connection
        finally:
            connection.close()


def _copy(path: Path, to: Path) -> None:
    """A plain file, as far as there is room for it. Raises OSError."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path.name} is no plain file")
        if status.st_size > shutil.disk_usage(to.parent).free // 2:
            raise OSError(f"there is no room for a copy of it in {to.parent.parent}: set TMPDIR to where there is")
        with to.open("wb") as out:
            shutil.copyfileobj(file, out)


def _tables_alone(action: int, first: str | None, second: str | None, database: str | None, inner: str | None) -> int:
    """What stands in the place of a table may be a view that never ends."""
    return sqlite3.SQLITE_DENY if inner or action == sqlite3.SQLITE_RECURSIVE else sqlite3.SQLITE_OK


def _from_database(path: Path) -> Iterator[tuple[str, str, str, Events | Remark]]:
    """Of each key the session that it is at comes first."""
    try:
        with opened(path) as found:
            rows = found.execute(
                "SELECT w.session_id, coalesce(CAST(w.session_key AS TEXT), ''), "
                "coalesce(CAST(n.display_name AS TEXT), CAST(n.label AS TEXT), '') FROM session_windows w "
                "LEFT JOIN session_nodes n ON n.session_key = w.session_key "
                "ORDER BY n.current_session_id = w.session_id DESC, w.created_at"
            ).fetchall()
            for session, key, title in rows:
                yield str(session), key, title, _events(found, session, key)
    except (sqlite3.Error, OSError) as error:
        yield "", path.name, "", Remark(f"the sessions in {path.name} cannot be read ({_why(error)})")


def _why(error: sqlite3.Error | OSError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _events(found: sqlite3.Connection, session: str, key: str) -> Events | Remark:
    unpack = decompressor()
    rows = found.execute(
        "SELECT CAST(event_json AS TEXT), event_zstd FROM transcript_events WHERE session_id = ? ORDER BY seq",
        (session,),
    ).fetchall()
    if unpack is None and any(packed is not None for _, packed in rows):
        return Remark(COMPRESSED.format(key=key))
    events: Events = []
    for text, packed in rows:
        try:
            plain = text if packed is None or unpack is None else unpack(packed).decode()
        except ValueError:  # counted among the broken ones
            plain = "broken"
        events += [each or {} for each in json_lines(plain or "")]
    return events


def _from_files(folder: Path) -> Iterator[tuple[str, str, Events | Remark]]:
    index = read_json(folder / "sessions.json")
    entries = {key: row for key, row in index.items() if isinstance(row, dict)} if isinstance(index, dict) else {}
    keys = {str(row.get("sessionId")): str(key) for key, row in entries.items()}
    for path in sorted(folder.glob("*.jsonl"), key=lambda path: (path.stem not in keys, path.name)):
        yield path.stem, keys.get(path.stem, ""), [each or {} for each in json_lines(read_text(path))]


def _conversation(session: str, key: str, title: str, events: Events | Remark) -> ForeignConversation | Remark:
    if isinstance(events, Remark):
        return events
    if re.search(r":(?:cron|subagent|heartbeat|hook)\b", key):
        return Remark(f"the session {key[:80]} is of a job or a helper, and stays there")
    begun = next((seconds(each.get("timestamp")) for each in events if each.get("timestamp")), None) or 0.0
    transcript = ForeignTranscript(begun)
    for event in _line(events):
        if event.get("type") == "message" and isinstance(event.get("message"), dict):
            _add(transcript, event["message"], seconds(event.get("timestamp")))
    transcript.end()
    if not transcript.messages:
        return Remark(f"the session {key[:80] or session} holds no message that can be read")
    broken = sum(not each for each in events)
    return ForeignConversation(
        id=session,
        title=title,
        created=begun,
        messages=transcript.messages,
        session=session_of(key),
        files=transcript.files,
        remarks=(f"{broken} lines of it are broken and left out",) if broken else (),
    )


def _line(events: Events) -> Events:
    """The events that lead to the last one; all of them where they do not tell which one they follow."""
    known = {str(each["id"]): each for each in events if each.get("id") and each.get("type") != "session"}
    if not any(each.get("parentId") for each in known.values()):
        return events
    line: Events = []
    at: Any = next(reversed(known), None)
    while isinstance(at, str) and at in known and len(line) <= len(known):
        line.append(known[at])
        at = known[at].get("parentId")
    return line[::-1]


def _add(transcript: ForeignTranscript, message: Mapping[str, Any], at: float | None) -> None:
    content = message.get("content")
    blocks = [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    texts = [str(each.get("text") or "") for each in blocks if each.get("type") == "text"]
    text = content if isinstance(content, str) else "\n".join(texts)
    pictures = [each for each in blocks if each.get("type") == "image" and isinstance(each.get("data"), str)]
    files = tuple(ForeignFile(f"picture-{number}", each["data"]) for number, each in enumerate(pictures, 1))
    match message.get("role"):
        case "user":
            transcript.ask(text, at, files)
        case "assistant":
            thought = "\n".join(str(each.get("thinking") or "") for each in blocks if each.get("type") == "thinking")
            calls = [each for each in blocks if each.get("type") == "toolCall"]
            transcript.answer(text, at, calls=tuple(map(_call, calls)), reasoning=thought)
        case "toolResult":
            failed = bool(message.get("isError"))
            transcript.result(str(message.get("toolCallId")), text, at, failed=failed)


def _call(block: Mapping[str, Any]) -> tuple[str, str, str]:
    return (
        str(block.get("id")),
        str(block.get("name") or ""),
        json.dumps(block.get("arguments") or {}, ensure_ascii=False),
    )


def session_of(key: str) -> str:
    """Where it goes on here: at the terminal, or in the same private chat; else in the page."""
    _, _, rest = key.removeprefix("agent:").partition(":")
    if direct := _DIRECT.fullmatch(rest):
        return f"telegram:{direct[1]}"
    return "cli:direct" if key == "agent:main:main" else ""


def _job(job: Mapping[str, Any]) -> ForeignJob | Remark:
    raw, told = job.get("schedule"), job.get("payload")
    schedule: Mapping[str, Any] = raw if isinstance(raw, dict) else {}
    payload: Mapping[str, Any] = told if isinstance(told, dict) else {}
    name, text = str(job.get("name") or job.get("id")), str(payload.get("message") or payload.get("text") or "")
    if not text.strip():
        kind = str(payload.get("kind"))[:30]
        return Remark(f"the job “{name[:60]}” ({kind}) asks the agent nothing: make it anew with `everloop cron add`")
    when = when_of(schedule, time.time())
    if isinstance(when, Remark):
        return Remark(f"the job “{name[:60]}” is left: {when.text}")
    way = job.get("delivery")
    delivery: Mapping[str, Any] = way if isinstance(way, dict) else {}
    to = f"agent:main:{delivery.get('channel')}:direct:{delivery.get('to')}"
    zone = str(schedule.get("tz") or ("UTC" if when.startswith("at") else ""))
    return ForeignJob(str(job.get("id")), name, when, text, zone, session_of(to), bool(job.get("enabled", True)))
