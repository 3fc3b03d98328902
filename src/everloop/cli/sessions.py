"""`everloop sessions`: the conversations there are, what was said in them, and going on from there."""

import argparse
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from ..app.records import Records, open_records
from ..errors import HomeError, MailRefused
from ..ports.audit import line_of
from ..ports.conversation import ArchiveThread, Branch, Conversation, Deed, Rename, SearchHit
from ..readings.visible import checked_name, in_one_line, visible
from .session_deletion import delete
from .session_key import session_key, way_into
from .table import how_many, table, to_json
from .terminal import Terminal
from .times import clock
from .whose import whose

MORE = (
    "An ID may be shortened as long as it is the only one that begins so; a session's key stands for the conversation "
    "that it is at. Only `delete` deletes anything."
)
HEADS = ("ID", "SESSION", "LAST", " MESSAGES", "TITLE")
FOUND = ("ID", " ENTRY", "WHEN", "WHO", "TEXT")
SNAPSHOTS = ("NAME", "ID", " ENTRY", "MADE")
OWNER = "owner"
THEIRS = "of somebody else: an id (as web:anna, of a user of your program), an account or a name"
OPEN = {
    "waiting": "A call waits for your permission there. The file says so; an import of it runs nothing.",
    "running": "A turn runs there. The file has what was said so far; an import of it runs nothing.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    listed = words.add_parser("list", help="show conversations, the latest first (the default)")
    listed.add_argument("--all", action="store_true", help="with those that are archived")
    searched = words.add_parser("search", help="show where something was said")
    searched.add_argument("words", metavar="WORDS", nargs="+", help="what to look for")
    shown = words.add_parser("show", help="show what was said in a conversation")
    resumed = words.add_parser("resume", help="let its session go on with this conversation")
    renamed = words.add_parser("rename", help="give it a title")
    archived = words.add_parser("archive", help="take it out of the list; it can still be found")
    unarchived = words.add_parser("unarchive", help="take it into the list again")
    deleted = words.add_parser("delete", help="delete it for good; asked twice")
    exported = words.add_parser("export", help="write it as lines of JSON")
    imported = words.add_parser("import", help="read such lines as a new conversation")
    forked = words.add_parser("fork", help="let its session go on in a copy, from the end or after an entry")
    marked = words.add_parser("snapshot", help="give the end of a conversation a name to come back to")
    marks = words.add_parser("snapshots", help="show these names")
    restored = words.add_parser("restore", help="let a session go on in a copy from there")
    for word in (shown, resumed, renamed, archived, unarchived, exported, forked, marked):
        word.add_argument("id", metavar="ID", help="the conversation's id, how that begins, or its session")
    deleted.add_argument("ids", metavar="ID", nargs="+", help="a conversation's id, how that begins, or its session")
    deleted.add_argument("--yes", action="store_true", help="do not ask")
    renamed.add_argument("title", metavar="TITLE", nargs="+", help="the new title")
    exported.add_argument("file", metavar="FILE", nargs="?", default="-", help="a new file (default: stdout)")
    imported.add_argument("file", metavar="FILE", help="the file ('-': stdin)")
    forked.add_argument("--at", metavar="SEQ", type=int, help="the last entry of the copy, as `show` numbers them")
    for word in (marked, restored):
        word.add_argument("name", metavar="NAME", help="the snapshot's name")
    for word in (resumed, imported, forked, restored):
        word.add_argument("-s", "--session", metavar="KEY", help="in this session (default: that of the conversation)")
    for word in (listed, searched, shown, exported, deleted):
        word.add_argument("--user", metavar="WHO", default=OWNER, help=THEIRS)
    for word in (listed, searched, shown, marks):
        word.add_argument("--json", action="store_true", help="print one JSON object instead")
    for word in (listed, searched):
        word.add_argument("-n", "--limit", metavar="N", type=how_many, default=20, help="at most N (default 20)")


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    async with open_records() as records:
        if hasattr(arguments, "user"):
            arguments.user = await whose(records, arguments.user)
        match arguments.word:
            case "list":
                found = await records.store.conversations(arguments.user, archived=arguments.all, limit=arguments.limit)
                terminal.answer(_list(found, arguments.json))
            case "search":
                hits = await records.store.search(arguments.user, " ".join(arguments.words), limit=arguments.limit)
                terminal.answer(_hits(hits, arguments.json))
            case "snapshots":
                await _snapshots(records, terminal, arguments.json)
            case "delete":
                return await _delete(records, terminal, arguments)
            case "import":
                await _import(records, terminal, arguments)
            case "restore":
                branch = await records.sessions.restore(arguments.name, OWNER, _key(arguments.session), OWNER)
                parent = await records.sessions.find(branch.parent, OWNER)
                await _go(records, terminal, parent, _key(arguments.session) or parent.session, branch)
            case word:
                one = await _find(records, arguments.id, getattr(arguments, "user", OWNER))
                await _with(records, terminal, word, one, arguments)
    return 0


async def _delete(records: Records, terminal: Terminal, arguments: argparse.Namespace) -> int:
    found = [await _find(records, name, arguments.user) for name in arguments.ids]
    each_once = list({each.id: each for each in found}.values())
    return await delete(records, terminal, each_once, arguments.user, arguments.yes)


async def _find(records: Records, name: str, user: str) -> Conversation:
    """By its id, or as the one that a session is at. Raises MailRefused."""
    if ":" not in name:
        return await records.sessions.find(name, user)
    if found := await records.sessions.current(_key(name), user):
        return found
    raise MailRefused(f"nothing has been said in the session {name!r}; see: everloop sessions")


async def _with(
    records: Records, terminal: Terminal, word: str, found: Conversation, arguments: argparse.Namespace
) -> None:
    sessions = records.sessions
    match word:
        case "show":
            await _show(records, terminal, found, arguments.json)
        case "export":
            await records.store.note(line_of("conversation.exported", found.id, {"owner": OWNER}))
            await _export(records, terminal, found, arguments.file)
        case "resume":
            session = _key(arguments.session) or found.session
            await _go(records, terminal, found, session, await sessions.go_to(found, session, OWNER))
        case "fork":
            session = _key(arguments.session) or found.session
            await _go(records, terminal, found, session, await sessions.fork(found, session, OWNER, arguments.at))
        case "rename":
            title = checked_name(" ".join(arguments.title), "a title")
            await records.store.perform(OWNER, found.session, Rename(found.id, title))
            terminal.answer(f"{found.id[:8]} is called “{title}” now.")
        case "archive" | "unarchive":
            await records.store.perform(OWNER, found.session, ArchiveThread(found.id, word == "archive"))
            terminal.answer(f"{found.id[:8]} is {'archived' if word == 'archive' else 'in the list again'}.")
        case "snapshot":
            await records.store.perform(OWNER, found.session, sessions.snapshot(found, arguments.name))
            terminal.answer(f"Come back to this place with: everloop sessions restore {arguments.name!r}")


async def _go(records: Records, terminal: Terminal, found: Conversation, session: str, deed: Deed) -> None:
    if not await records.store.perform(OWNER, session, deed):
        raise MailRefused(
            f"a turn runs or waits in {found.id[:8]}, or in what {session} is at now; end it with /stop there first"
        )
    id = deed.id if isinstance(deed, Branch) else found.id
    terminal.answer(f"{session} goes on with {id[:8]} “{found.title}”.")
    for each in await records.sessions.said_last(await records.sessions.find(id, OWNER)):
        terminal.answer(f"\n[{each.seq}] {each.who}, {clock(each.at)}\n{visible(each.text)}")
    terminal.note(f"\nTo go on: {way_into(session)}")


async def _show(records: Records, terminal: Terminal, found: Conversation, as_json: bool) -> None:
    spoken = await records.sessions.said(found)
    if as_json:
        terminal.answer(to_json({**_described(found), "said": spoken}))
        return
    session = in_one_line(found.session)
    terminal.answer(f"{in_one_line(found.title)}\n{found.id}, session {session}, {found.messages} messages")
    for each in spoken:
        terminal.answer(f"\n[{each.seq}] {each.who}, {clock(each.at)}\n{visible(each.text)}")


async def _export(records: Records, terminal: Terminal, found: Conversation, file: str) -> None:
    if file == "-":
        async for line in records.sessions.export(found):
            terminal.answer(line)
        return
    lines = [line async for line in records.sessions.export(found)]
    _write(file, lines)
    terminal.answer(f"{found.id[:8]} “{found.title}” is in {file} ({found.messages} messages).")
    if found.state != "resting":
        terminal.note(OPEN[found.state])


async def _import(records: Records, terminal: Terminal, arguments: argparse.Namespace) -> None:
    branch, session = records.sessions.bring_in(_read(arguments.file), _key(arguments.session))
    if not await records.store.perform(OWNER, session, branch):
        raise MailRefused(f"the session {session} is not yours")
    (made,) = await records.store.conversations(OWNER, id=branch.id)
    terminal.answer(f"“{made.title}” is {made.id[:8]} now ({made.messages} messages).")
    terminal.note(f"Go on with it: everloop sessions resume {made.id[:8]}; {way_into(session)}")


async def _snapshots(records: Records, terminal: Terminal, as_json: bool) -> None:
    found = await records.store.snapshots(OWNER)
    rows = [(each.name, each.thread[:8], str(each.seq), clock(each.at)) for each in found]
    if as_json:
        terminal.answer(to_json({"snapshots": found}))
    else:
        terminal.answer(table(SNAPSHOTS, rows) if rows else "There is no snapshot.")


def _write(file: str, lines: list[str]) -> None:
    """Into a new file that is for its owner's eyes."""
    try:
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as to:
            to.writelines(f"{line}\n" for line in lines)
    except FileExistsError as error:
        raise MailRefused(f"there is a file {file} already; name another, or remove it") from error
    except OSError as error:
        raise HomeError(f"{file} cannot be written ({error.strerror})") from error


def _read(file: str) -> list[bytes]:
    try:
        return (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).split(b"\n")
    except OSError as error:
        raise MailRefused(f"{file} cannot be read ({error.strerror})") from error


def _list(found: Iterable[Conversation], as_json: bool) -> str:
    if as_json:
        return to_json({"conversations": [_described(each) for each in found]})
    rows = [
        (each.id[:8], each.session, clock(each.active), str(each.messages), f"{_mark(each)}{each.title}")
        for each in found
    ]
    return table(HEADS, rows) if rows else "There is no conversation yet."


def _mark(each: Conversation) -> str:
    return "[archived] " if each.archived else "* " if each.current else ""


def _hits(found: list[SearchHit], as_json: bool) -> str:
    if as_json:
        return to_json({"found": found})
    rows = [(each.thread[:8], str(each.seq), clock(each.at), each.who, each.text) for each in found]
    return table(FOUND, rows) if rows else "Nobody has said that."


def _described(found: Conversation) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(found)
    return told


def _key(session: str | None) -> str:
    return session_key(session) if session else ""
