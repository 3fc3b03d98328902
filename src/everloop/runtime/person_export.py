"""All that is a person's, as files that they can read: conversations as Markdown and as lines of JSON, files under
their names, the workspace, and tables of the rest. Nothing of anybody else: of a group's conversation only their words.

Each file is handed on piece by piece, so that none has to lie in memory. The names of files are made of what people and
models call things: none leads anywhere else (path traversal), on any system.
"""

import csv
import io
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from ..core.message import Media
from ..ports import Archive, Audit, Belongings, Files, HomeFile, HomeFolders, Log, Memory
from ..ports.audit import line_of
from ..ports.conversation import Conversation, Written
from ..ports.directory import Person
from ..ports.memory import DOCUMENTS
from ..readings.erasing import author_of, is_of_theirs_alone
from ..readings.filenames import safe_name
from ..readings.spoken import Utterance, spoken
from .exporting import stamp
from .sessions import Sessions

PAGE = 1000  # rows or entries that are read at once
_FOLDERS = {"files": "files", "workspace": "files in the workspace", "skills": "files of skills"}
_TOLD = ("accounts", "tokens", "browsers logged in", "secrets", "snapshots", "jobs", "grants")
_TIMES = ("at", "until", "due", "created", "resets", "said", "since", "made", "last", "begun", "ended")
BILLION = 1_000_000_000  # parts of a dollar, in which budgets are kept
_LATEST = 253_402_300_800  # the year 10000: no calendar has what lies after it
_WHO = {"user": "They said", "assistant": "The agent said", "tool": "A tool answered", "house": "everloop said"}
README = """# What everloop keeps of {name}

Made {when}. Everything here is theirs; of others there is nothing.

- `conversations/`: each conversation, to be read (`.md`) and to be taken elsewhere (`.jsonl`, which
  `everloop sessions import` reads)
- `in-groups.md`, `in-groups.jsonl`: what they said in conversations of groups, with time and place
- `files/`: what they attached, and what was made for them
- `workspace/`: the files of their workspace
- `memory/`: what is remembered for them: `MEMORY.md`, `HISTORY.md`, and each fact with where it is known from
  (`facts.jsonl`); in `in-groups.jsonl` what they said that is remembered for a group
- `skills/`: the skills that they have installed
- `tables/`: the rest, a table for each kind: who they are, accounts, tokens by name (no secret), that a key or
  credential is kept and since when (`vault.csv`, no secret), what was spent, jobs, grants, snapshots
- `left-out.txt`: what lies in the workspace and is no file, if there is such

How much it is:

{counts}
"""


class ExportStore(Belongings, Archive, Log, Audit, Memory, Protocol):
    """What it asks of the store."""


class PersonExport:
    def __init__(self, store: ExportStore, sessions: Sessions, folders: HomeFolders, files: Files) -> None:
        self._store = store
        self._sessions = sessions
        self._folders = folders
        self._files = files

    async def files(self, person: Person, now: float) -> AsyncIterator[HomeFile]:
        """One after the other: each is read to its end before the next is asked for. Raises StoreError."""
        await self._store.note(line_of("person.exported", person.id))
        counts = Counter[str]()
        async for file in self._all_of(person.principals, counts):
            counts[_FOLDERS.get(file.path.partition("/")[0], "")] += 1
            yield file
        kept = await self._store.belongings(person.principals)
        counts.update({what: kept[what] for what in _TOLD if what in kept})
        yield HomeFile("README.md", _once(_readme(person, {k: n for k, n in counts.items() if k}, now)))

    async def _all_of(self, people: Sequence[str], counts: Counter[str]) -> AsyncIterator[HomeFile]:
        """All but the README, which tells how much it is."""
        names, media = _Names(), dict[str, Media]()
        for each in await self._conversations(people):
            counts.update({"conversations": 1, "messages": each.messages})
            path = f"conversations/{names.free(f'{stamp(each.created)[:10]} {each.title}'[:60], each.id[:8])}"
            yield HomeFile(f"{path}.md", self._markdown(each, media))
            yield HomeFile(f"{path}.jsonl", self._lines(each))
        said = [each async for each in self._said_elsewhere(people, media)]
        if said:
            counts["messages in groups"] = len(said)
            yield HomeFile("in-groups.md", _once("\n\n".join(map(_told_in_group, said)) + "\n"))
            yield HomeFile("in-groups.jsonl", _once("".join(f"{_json(each)}\n" for each in said)))
        async for file in self._attached(people, media):
            yield file
        left_out = list[str]()
        for one in people:
            for folder, lying in (("workspace", self._folders.workspace(one)), ("skills", self._folders.skills(one))):
                async for found in lying:
                    if found.pieces is None:
                        left_out.append(f"{found.path!r}: {found.left_out}")
                    else:
                        yield HomeFile(f"{folder}/{'/'.join(map(safe_name, found.path.split('/')))}", found.pieces)
        if left_out:
            yield HomeFile("left-out.txt", _once("\n".join(left_out) + "\n"))
        async for file in self._remembered(people):
            yield file
        for table, columns in self._store.exported().items():
            if await self._store.rows_of(table, people, 0, 1):
                yield HomeFile(f"tables/{table}.csv", self._table(table, columns, people))

    async def _remembered(self, people: Sequence[str]) -> AsyncIterator[HomeFile]:
        names = _Names()
        for one in people:
            for name in DOCUMENTS:
                if body := (await self._store.document(one, name)).body:
                    yield HomeFile(f"memory/{names.free(name, safe_name(one))}", _once(body))
            if await self._store.facts(one, ended=True, limit=1):
                yield HomeFile(f"memory/{names.free('facts.jsonl', safe_name(one))}", self._facts(one))
        if said := await self._store.facts_said(people):
            facts = [fact for owner, id in said for fact in await self._store.facts(owner, ids=[id], ended=True)]
            yield HomeFile("memory/in-groups.jsonl", _once("".join(f"{_json(fact)}\n" for fact in facts)))

    async def _facts(self, owner: str) -> AsyncIterator[bytes]:
        skip = 0
        while page := await self._store.facts(owner, ended=True, limit=PAGE, skip=skip):
            yield "".join(f"{_json(fact)}\n" for fact in page).encode(errors="replace")
            skip += len(page)

    async def _conversations(self, people: Sequence[str]) -> list[Conversation]:
        """Theirs, and those of two that belong to whose bot it is."""
        found = [each for one in people for each in await self._store.conversations(one, archived=True)]
        for row in await self._store.threads_naming(people):
            if is_of_theirs_alone(row.session, await self._store.history(row.id), people):
                found += await self._store.conversations(row.owner, id=row.id, archived=True)
        return found

    async def _history(self, thread: str) -> AsyncIterator[Written]:
        after = 0
        while page := await self._store.history(thread, after, PAGE):
            for written in page:
                yield written
            after = page[-1].seq

    async def _markdown(self, conversation: Conversation, media: dict[str, Media]) -> AsyncIterator[bytes]:
        yield f"# {conversation.title or 'A conversation'}\n\n{conversation.session}\n".encode(errors="replace")
        async for written in self._history(conversation.id):
            if told := spoken(written.entry):
                media.update((each.file, each) for each in told.files)
                yield f"\n## {_WHO[told.who]}, {stamp(written.at)}\n\n{_text(told)}\n".encode(errors="replace")

    async def _lines(self, conversation: Conversation) -> AsyncIterator[bytes]:
        async for line in self._sessions.export(conversation):
            yield f"{line}\n".encode()

    async def _said_elsewhere(self, people: Sequence[str], media: dict[str, Media]) -> AsyncIterator[dict[str, Any]]:
        for row in await self._store.threads_naming(people):
            history = await self._store.history(row.id)
            for written in history if not is_of_theirs_alone(row.session, history, people) else ():
                told = spoken(written.entry)
                if author_of(written.entry) in people and told is not None:
                    media.update((each.file, each) for each in told.files)
                    yield {"at": stamp(written.at), "place": row.session, "text": _text(told)}

    async def _attached(self, people: Sequence[str], media: dict[str, Media]) -> AsyncIterator[HomeFile]:
        """What lies in their folder, under the name that was said; then what they have said in a group's."""
        names = _Names()
        for one in people:
            async for found in self._folders.kept(one):
                if found.pieces is not None:
                    yield HomeFile(f"files/{names.free(*_named(found, media))}", found.pieces)
        for ref, each in media.items():
            if each.owner and each.owner not in people:
                try:
                    data = await self._files.get(each.owner, ref)
                except (OSError, ValueError):  # it is gone, or was never kept
                    continue
                yield HomeFile(f"files/{names.free(each.name, ref[5:13])}", _once(data))

    async def _table(self, table: str, columns: Sequence[str], people: Sequence[str]) -> AsyncIterator[bytes]:
        yield _csv([columns])
        skip = 0
        while rows := await self._store.rows_of(table, people, skip, PAGE):
            yield _csv([[cell(*each) for each in zip(columns, row, strict=True)] for row in rows])
            skip += len(rows)


class _Names:
    """Names of which none comes twice, on systems, too, that do not tell large letters from small ones."""

    def __init__(self) -> None:
        self._taken = set[str]()

    def free(self, name: str, otherwise: str) -> str:
        """`otherwise` tells it from others of this name."""
        name = safe_name(name.strip() or otherwise)
        if name.casefold() in self._taken:
            stem, dot, kind = name.rpartition(".")
            name = f"{stem} {otherwise}.{kind}" if dot and stem else f"{name} {otherwise}"
        self._taken.add(name.casefold())
        return name


def _named(found: HomeFile, media: dict[str, Media]) -> tuple[str, str]:
    digits = found.path.removeprefix("file:")
    known = next((each for ref, each in media.items() if digits.startswith(ref.removeprefix("file:"))), None)
    return (known.name if known else "") or f"{digits[:12]}", digits[:8]


def _readme(person: Person, counts: dict[str, int], now: float) -> str:
    when = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M UTC")
    lines = "\n".join(f"- {what}: {count}" for what, count in counts.items())
    return README.format(name=f"{person.name} ({person.id})", when=when, counts=lines)


def _text(told: Utterance) -> str:
    files = "".join(f"\n[{each.name or each.file}]" for each in told.files)
    return f"{told.with_calls('called ')}{files}".strip()


def _told_in_group(said: dict[str, Any]) -> str:
    return f"## {said['place']}, {said['at']}\n\n{said['text']}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def cell(column: str, value: Any) -> Any:
    """As people read it: times as dates, money in dollars."""
    if column == "money" and value is not None:
        return value / BILLION
    if column in _TIMES and 0 <= value < _LATEST:
        return stamp(value) if value else ""
    # A program that calculates takes what begins so for a formula (CSV injection).
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _csv(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode(errors="replace")


async def _once(text: str | bytes) -> AsyncIterator[bytes]:
    yield text if isinstance(text, bytes) else text.encode(errors="replace")
