"""`everloop personas`: who the agent is at which place."""

import argparse
import sys
from pathlib import Path
from typing import Any

from msgspec import structs

from ..app.persona_desk import FILES, PersonaDesk, open_personas
from ..errors import MailRefused
from ..readings.personas import Persona
from ..readings.visible import visible
from .table import table, to_json
from .terminal import Terminal, WrongUse

MORE = (
    "The most specific place decides who answers: the conversation itself (/persona), thread:CHANNEL:CHAT:THREAD, "
    "chat:CHANNEL:CHAT, server:CHANNEL/ID, channel:NAME, default. `everloop context -s KEY` shows who it is, and by "
    "which rule. A gateway that runs knows of a change with the next turn."
)
HEADS = ("NAME", "TOOLS", "MODEL", "MAX TOKENS", "OPEN TO", "PLACES")
ROLES = ("user", "admin", "owner")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    listing = words.add_parser("list", help="all personas, and where each answers (the default)")
    showing = words.add_parser("show", help="one persona, with its words and files")
    add = words.add_parser("add", help="make a persona")
    edit = words.add_parser("edit", help="change a persona; what is not given stays as it is")
    remove = words.add_parser("remove", help="remove a persona and its files")
    use = words.add_parser("use", help="have a persona answer at a place; with none as its name, none does")
    for word in (listing, showing):
        word.add_argument("--json", action="store_true", help="print one JSON object instead")
    for word in (showing, add, edit, remove, use):
        word.add_argument("name", metavar="NAME")
    use.add_argument("place", metavar="PLACE", help="default, channel:…, server:…, chat:… or thread:…")
    for word in (add, edit):
        _add_fields(word)


def _add_fields(word: argparse.ArgumentParser) -> None:
    prompt = word.add_mutually_exclusive_group()
    prompt.add_argument("--prompt", metavar="TEXT", help="who the agent is: told after its own words")
    prompt.add_argument("--prompt-file", metavar="FILE", type=Path, help="the same, from a file")
    word.add_argument("--tools", metavar="NAMES", help="those that it may use, as web_search,web_*; all; none")
    word.add_argument("--model", metavar="NAME", help="provider/model or a preset; '' is the usual")
    word.add_argument("--max-tokens", metavar="N", type=int, help="that an answer may have; 0: as many as always")
    word.add_argument("--open-to", choices=ROLES, help="the lowest role that may choose it with /persona (admin)")
    word.add_argument("--at", metavar="PLACE", action="append", help="where it answers; may be given more than once")
    word.add_argument(
        "--file", metavar="NAME=FILE", action="append", default=[], help=f"a file of its own: {', '.join(FILES)}"
    )


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    async with open_personas() as desk:
        match arguments.word:
            case "list":
                named = list((await desk.all()).named.values())
                terminal.answer(
                    to_json({"personas": [_plain(each) for each in named]}) if arguments.json else _listed(named)
                )
            case "show":
                persona, files = await desk.find(arguments.name), desk.files(arguments.name)
                shown = (
                    to_json({"persona": _plain(persona), "files": files}) if arguments.json else _shown(persona, files)
                )
                terminal.answer(shown)
            case "remove":
                terminal.answer(await desk.remove(arguments.name))
            case "use":
                terminal.answer(await desk.use(arguments.name, arguments.place))
            case word:
                terminal.answer(await _save(desk, word, arguments))
    return 0


async def _save(desk: PersonaDesk, word: str, given: argparse.Namespace) -> str:
    fields, files = _fields(given), _files(given.file)
    if word == "add":
        persona = await desk.add(given.name, fields, files)
        where = f"answers at {', '.join(persona.places)}" if persona.places else "answers nowhere yet"
        return f"{persona.name} {where}; `everloop personas use {persona.name} PLACE` has it answer at a place."
    if not fields and not files:
        raise WrongUse("say what is to be changed: see everloop personas edit --help")
    await desk.edit(given.name, fields, files)
    return f"{given.name} is changed, from the next turn on."


def _fields(given: argparse.Namespace) -> dict[str, Any]:
    """Those that were given, as the settings have them."""
    fields: dict[str, Any] = {}
    if given.prompt is not None or given.prompt_file is not None:
        fields["prompt"] = given.prompt if given.prompt is not None else _text_of(given.prompt_file)
    if given.tools is not None:
        named = [each.strip() for each in given.tools.split(",") if each.strip()]
        fields["tools"] = {"all": None, "none": []}.get(given.tools.strip().lower(), named)
    if given.model is not None:
        fields["model"] = given.model
    if given.max_tokens is not None:
        fields["max_tokens"] = given.max_tokens or None
    if given.open_to is not None:
        fields["open_to"] = given.open_to
    if given.at is not None:
        fields["places"] = list(dict.fromkeys(given.at))
    return fields


def _files(pairs: list[str]) -> dict[str, str]:
    """NAME=FILE, as it is typed; NAME= alone takes that file away."""
    files = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not equals:
            raise WrongUse(f"--file is given as SOUL.md=FILE, not {pair!r}")
        files[name] = _text_of(Path(path)) if path else ""
    return files


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MailRefused(f"{path} cannot be read ({getattr(error, 'strerror', 'it is no text')})") from error


def _listed(personas: list[Persona]) -> str:
    if not personas:
        return "There are no personas: the agent answers as itself. `everloop personas add NAME` makes one."
    return table(HEADS, [_row(each) for each in personas])


def _row(each: Persona) -> tuple[str, ...]:
    most = f"{each.max_tokens:,}" if each.max_tokens else "as always"
    return each.name, _tools(each), each.model or "the usual", most, each.open_to.name.lower(), ", ".join(each.places)


def _plain(each: Persona) -> dict[str, Any]:
    return {**structs.asdict(each), "open_to": each.open_to.name.lower()}


def _tools(each: Persona) -> str:
    return "all" if each.tools is None else ", ".join(each.tools) or "none"


def _shown(persona: Persona, files: dict[str, str]) -> str:
    parts = [_listed([persona]), persona.prompt or "It has no words of its own."]
    parts += [f"{name}:\n{text}" for name, text in files.items()]
    return visible("\n\n".join(parts))
