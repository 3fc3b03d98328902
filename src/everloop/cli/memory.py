"""`everloop memory`: what is remembered for somebody, how it came to be, and the ways back."""

import argparse
import asyncio
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from ..app.records import Records, open_records
from ..core.people import OWNER
from ..errors import MailRefused
from ..ports.memory import MEMORY, Fact
from ..ports.remembering import document_named
from ..readings.visible import in_one_line, visible
from .table import table, to_json
from .terminal import Terminal, WrongUse, show_prompt
from .times import clock
from .whose import whose

MORE = (
    "Every change is a version, and `restore` makes an earlier one the last again. What is forgotten is gone from all "
    "versions, from search and from recall; the conversation in which it was said stays until it is deleted."
)
NOBODY_ASKED = "forgetting is asked at a terminal, for there is no way back; in a script say --yes"
EMPTY = "Nothing is remembered yet. Tell the agent something to remember, or write it into {}/MEMORY.md."
GROUPS = "Groups have memories of their own, which `--who` shows: {}."
VERSIONS = (" VERSION", "WHEN", "BY", "WHAT", "WHY")
FACTS = ("ID", "SAID", "TOPIC", "FACT", "FROM")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    told = words.add_parser("status", help="what is known, in numbers, and where the files lie (the default)")
    log = words.add_parser("log", help="who has changed it when, the last first")
    log.add_argument("--limit", metavar="N", type=_number, default=50, help="so many (default 50)")
    show = words.add_parser("show", help="MEMORY or HISTORY, now or at a version")
    diff = words.add_parser("diff", help="what the last change did, or what differs between two versions")
    diff.add_argument(
        "versions", metavar="VERSION", type=_number, nargs="*", help="from this one, to that one or to now"
    )
    restore = words.add_parser("restore", help="have it as it was at a version, as a new one; facts follow")
    restore.add_argument("version", metavar="VERSION", type=_number)
    search = words.add_parser("search", help="facts that hold these words, or mean them")
    search.add_argument("words", metavar="WORDS", nargs="+")
    search.add_argument("--limit", metavar="N", type=_number, default=20, help="so many (default 20)")
    facts = words.add_parser("facts", help="the facts, the newest first")
    facts.add_argument("--ended", action="store_true", help="also those that are true no longer")
    facts.add_argument("--limit", metavar="N", type=_number, default=100, help="so many (default 100)")
    forget = words.add_parser("forget", help="forget facts, named by their ids or by words, once you have confirmed it")
    forget.add_argument("what", metavar="WORDS|ID", nargs="+")
    forget.add_argument("--yes", action="store_true", help="do not ask")
    edit = words.add_parser("edit", help="change MEMORY or HISTORY in $EDITOR")
    for each in (show, diff, restore, edit):
        each.add_argument("--document", metavar="NAME", default=MEMORY, help="MEMORY (the default) or HISTORY")
    show.add_argument("--version", metavar="N", type=_number, default=0, help="as it was then")
    for each in (told, log, show, diff, restore, search, facts, forget, edit):
        each.add_argument("--who", metavar="WHO", default=OWNER, help="of somebody else: an id, an account or a name")
        each.add_argument("--json", action="store_true", help="print one JSON object instead of text")


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    async with open_records() as records:
        arguments.who = await whose(records, arguments.who)
        told, words = await _WORDS[arguments.word](records, arguments)
    terminal.answer(to_json(told) if arguments.json else words)
    return 0


async def _status(records: Records, asked: argparse.Namespace) -> tuple[Any, str]:
    found = await records.memory.overview(asked.who)
    groups = await records.store.remembering_groups() if asked.who == OWNER else []
    told = msgspec.to_builtins(found) | {"groups": groups}
    beside = [GROUPS.format(", ".join(groups))] if groups else []
    if not found.version:
        return told, "\n".join([EMPTY.format(found.folder), *found.problems, *beside])
    lines = [
        f"Facts: {found.facts} true, {found.ended} no longer; {found.marked} of them from strangers' words.",
        f"The files lie in {found.folder}: MEMORY.md ({found.lines} lines), HISTORY.md. You may edit them.",
        found.recall,
    ]
    if found.left_out:
        lines.append(
            f"{found.left_out} lines of MEMORY.md, those that matter least, do not fit into prompts; the tool recall "
            "finds them."
        )
    if found.changed:
        lines.append(f"Version {found.version}, {clock(found.changed.at)}: {found.changed.why}.")
    return told, "\n".join([*lines, *found.problems, *beside])


async def _log(records: Records, asked: argparse.Namespace) -> tuple[Any, str]:
    found = await records.memory.versions(asked.who, limit=asked.limit)
    rows = [
        (str(each.version), clock(each.at), each.author or "everloop", ", ".join(each.documents) or "facts", each.why)
        for each in found
    ]
    return {"versions": msgspec.to_builtins(found)}, table(VERSIONS, rows) if rows else "Nothing is remembered yet."


async def _show(records: Records, asked: argparse.Namespace) -> tuple[Any, str]:
    name = document_named(asked.document)
    text = await records.memory.text(asked.who, name, asked.version)
    return {"name": name, "version": asked.version, "text": text}, visible(text.rstrip("\n")) or f"{name} is empty."


async def _diff(records: Records, asked: argparse.Namespace) -> tuple[Any, str]:
    if len(asked.versions) > 2:
        raise MailRefused("name one version, or two")
    name, (old, new) = document_named(asked.document), (*asked.versions, 0, 0)[:2]
    text = await records.memory.difference(asked.who, name, old, new)
    return {"name": name, "difference": text}, visible(text) or "Nothing differs."


async def _restore(records: Records, asked: argparse.Namespace) -> tuple[Any, str]:
    name = document_named(asked.document)
    made = await records.memory.restore(asked.who, OWNER, asked.version, name)
    told = f"{name} is again as in version {asked.version}; this is version {made}." if made else "It is so already."
    return {"version": made}, told


async def _search(records: Records, asked: argparse.Namespace) -> tuple[Any, str]:
    found = [hit.fact for hit in await records.memory.search(asked.who, " ".join(asked.words), asked.limit)]
    return await _listed(records, asked.who, found, "Nothing like that is remembered.")


async def _facts(records: Records, asked: argparse.Namespace) -> tuple[Any, str]:
    found = await records.memory.facts(asked.who, ended=asked.ended, limit=asked.limit)
    return await _listed(records, asked.who, found, "Nothing is remembered yet.")


async def _forget(records: Records, asked: argparse.Namespace) -> tuple[Any, str]:
    found = await records.memory.meant(asked.who, " ".join(asked.what))
    if found and not asked.yes:
        _, shown = await _listed(records, asked.who, found, "")
        if not _is_sure(shown, len(found)):
            return {"forgotten": 0}, "Nothing was forgotten."
    forgotten = await records.memory.forget(asked.who, OWNER, [fact.id for fact in found])
    said_in = msgspec.to_builtins(forgotten.said_in)
    return {"forgotten": len(forgotten.facts), "said_in": said_in}, forgotten.told()


async def _edit(records: Records, asked: argparse.Namespace) -> tuple[Any, str]:
    name = document_named(asked.document)
    before = await records.memory.text(asked.who, name)
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise MailRefused("no editor is set: set EDITOR, or edit the file that `everloop memory` names")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_text(before, encoding="utf-8")
        ended = await (await asyncio.create_subprocess_exec(*shlex.split(editor), str(file))).wait()
        after = file.read_text(encoding="utf-8", errors="replace").replace("\0", "")
    if ended or after == before:
        return {"version": 0}, "Nothing was changed."
    version = await records.memory.edit(asked.who, OWNER, name, after, before)
    return {"version": version}, f"{name} is changed; this is version {version}."


async def _listed(records: Records, who: str, found: list[Fact], nothing: str) -> tuple[Any, str]:
    told, rows = [], []
    for fact in found:
        session = await records.store.session_of(fact.source.thread, who) if fact.source.thread else ""
        deleted = bool(fact.source.thread and not session)
        told.append(msgspec.to_builtins(fact) | {"session": session, "deleted": deleted})
        place = "a deleted conversation" if deleted else f"{session} {fact.source.thread[:8]}" if session else "by hand"
        marked = " (strangers' words)" if fact.marked else ""
        text = f"{in_one_line(fact.text)}{marked}{f' (until {clock(fact.until)})' if fact.until else ''}"
        rows.append((fact.id[:8], clock(fact.source.at or fact.at), fact.topic, text, place))
    return {"facts": told}, table(FACTS, rows) if rows else nothing


def _is_sure(shown: str, many: int) -> bool:
    if not sys.stdin.isatty():
        raise WrongUse(NOBODY_ASKED)
    show_prompt(f"{shown}\nForget {'it' if many == 1 else f'all {many}'} for good? [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:10]) <= 10**9:
        raise argparse.ArgumentTypeError("it must be a number from 1 on")
    return int(text)


_WORDS = {
    "status": _status,
    "log": _log,
    "show": _show,
    "diff": _diff,
    "restore": _restore,
    "search": _search,
    "facts": _facts,
    "forget": _forget,
    "edit": _edit,
}
