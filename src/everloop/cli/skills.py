"""`everloop skills`: what the agent knows how to do, and what it was taught besides."""

import argparse
import sys
from collections.abc import Sequence

from msgspec import structs

from ..app.skill_desk import SkillDesk, open_skills
from ..core.people import OWNER, Role
from ..errors import MailRefused
from ..ports.skills import SkillReview, SkillRow, SkillShown
from ..readings.visible import in_one_line, visible
from .table import table, to_json
from .terminal import Terminal, WrongUse, show_prompt

MORE = (
    "A SOURCE is a folder, an archive (zip, tar, tar.gz, …) or a repository: https://…, ssh://… or file:///…, with "
    "@COMMIT behind it to have that commit and no other. Of an archive --sha256 says the same. What one asks for is "
    "shown before it is installed, nothing of it is run, and what was installed is known by its hash from then on. "
    "Skills of your workspace lie in skills/NAME/SKILL.md there. New conversations know of a change."
)
HEADS = ("NAME", "STATE", "FROM", "WHAT IT IS FOR")
NOBODY_ASKED = "what a skill asks for is shown, and you are asked, at a terminal; in a script say --yes"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    listing = words.add_parser("list", help="all skills, where each is from and whether it can be used (the default)")
    showing = words.add_parser("show", help="one skill: its text, its files, what it asks for")
    install = words.add_parser("install", help="install a skill, once you have seen what it asks for")
    review = words.add_parser("review", help="show what a skill asks for: an installed one, or one at a SOURCE")
    remove = words.add_parser("remove", help="remove an installed skill")
    accept = words.add_parser("accept", help="accept a change of a skill in the workspace that is held back")
    refuse = words.add_parser("refuse", help="put back what was accepted of it")
    for word in (listing, showing, review):
        word.add_argument("--json", action="store_true", help="print one JSON object instead")
    for word in (showing, remove, accept, refuse):
        word.add_argument("name", metavar="NAME")
    install.add_argument("source", metavar="SOURCE")
    review.add_argument("source", metavar="NAME|SOURCE")
    for word in (install, review):
        word.add_argument("--path", metavar="FOLDER", default="", help="the skill's folder in it, if there are several")
        word.add_argument("--sha256", metavar="HASH", default="", help="of the archive; another is refused")
    install.add_argument("--yes", action="store_true", help="do not ask")
    install.add_argument("--replace", action="store_true", help="put it in the place of another version")
    for word in (listing, showing, install, review, remove, accept, refuse):
        word.add_argument("--for", dest="who", metavar="ID", default=OWNER, help="a person's, by id (default: yours)")


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    async with open_skills() as hand:
        desk, who = hand.desk, await hand.person(arguments.who)
        match arguments.word:
            case "list":
                rows = await desk.rows(who.id, who.role)
                plain = {"skills": [structs.asdict(row) for row in rows]}
                terminal.answer(to_json(plain) if arguments.json else _listed(rows))
            case "show":
                shown = await desk.show(who.id, who.role, arguments.name)
                terminal.answer(to_json(structs.asdict(shown)) if arguments.json else _shown(shown))
            case "review":
                review = await _reviewed(desk, who.id, who.role, arguments)
                terminal.answer(to_json(structs.asdict(review)) if arguments.json else _reviewed_text(review))
            case "remove":
                terminal.answer(await desk.remove(who.id, arguments.name))
            case "accept" | "refuse":
                terminal.answer(await desk.accept(who.id, arguments.name, arguments.word == "accept"))
            case _:
                return await _install(desk, who.id, arguments, terminal)
    return 0


async def _install(desk: SkillDesk, who: str, given: argparse.Namespace, terminal: Terminal) -> int:
    if not given.yes and not sys.stdin.isatty():
        raise WrongUse(NOBODY_ASKED)
    fetched = await desk.fetch(given.source, given.path, given.sha256)
    review = await desk.review_fetched(who, fetched)
    terminal.note(_reviewed_text(review))
    if not given.yes and _typed(f"Install {review.name}? [y/N] ") not in ("y", "yes"):
        terminal.note("Nothing was installed.")
        return 1
    terminal.answer(await desk.put(who, fetched, replace=given.replace))
    return 0


def _typed(prompt: str) -> str:
    show_prompt(prompt)
    return sys.stdin.readline().strip().lower()


async def _reviewed(desk: SkillDesk, who: str, role: Role, given: argparse.Namespace) -> SkillReview:
    """Of what lies at a source, or of a skill that there is."""
    try:
        return await desk.review_fetched(who, await desk.fetch(given.source, given.path, given.sha256))
    except MailRefused:
        if "/" in given.source or "." in given.source or given.path:
            raise
    shown = await desk.show(who, role, given.source)
    row = shown.row
    return SkillReview(
        name=row.name,
        description=row.description,
        pin=row.pin or row.source,
        files=len(shown.files),
        size=len(shown.text.encode()),
        asks=shown.asks,
        warnings=shown.warnings,
        installed=row.source == "installed",
    )


def _listed(rows: Sequence[SkillRow]) -> str:
    lines = [(row.name, _state(row), _from(row), in_one_line(row.description)[:100]) for row in rows]
    notes = [f"{row.name}: {in_one_line(row.why)}." for row in rows if row.why]
    return "\n".join([table(HEADS, lines), *([""] if notes else []), *notes])


def _state(row: SkillRow) -> str:
    return f"{row.state}, always told" if row.always and row.state == "available" else row.state


def _from(row: SkillRow) -> str:
    return f"{row.source} (in place of {row.hides})" if row.hides else row.source


def _shown(shown: SkillShown) -> str:
    row = shown.row
    lines = [f"{row.name}: {row.description}", f"{_state(row)}, {_from(row)}"]
    lines += [f"{row.why}."] if row.why else []
    lines += [f"known by {row.pin}, from {row.origin}"] if row.pin else []
    lines += [f"files: {', '.join(shown.files)}", *_asks(shown.asks, shown.warnings)]
    if shown.change:
        lines += ["", "Held back; accept it with `everloop skills accept`:", shown.change]
    return visible("\n".join([*lines, "", shown.text]))


def _reviewed_text(review: SkillReview) -> str:
    lines = [f"{review.name}: {review.description}", f"{review.files} file(s), {review.size:,} bytes, {review.pin}"]
    lines += _asks(review.asks, review.warnings)
    lines += [f"differs from what is installed: {', '.join(review.changes)}"] if review.changes else []
    return visible("\n".join(lines))


def _asks(asks: Sequence[str], warnings: Sequence[str]) -> list[str]:
    looked = [f"LOOK AT {each}" for each in warnings]
    return [*looked, "It asks for:", *(f"  {each}" for each in asks)]
