"""`everloop config`: the settings at a terminal. A change is checked as a whole before a byte is written, and comments
stay."""

import argparse
import os
import sys
from collections.abc import Collection, Coroutine, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from ..app.channel_packages import secret_fields
from ..app.channels import is_secret, references_in, table_of
from ..app.model_check import check_models
from ..app.owner_settings import SettingsWritten, write_settings
from ..errors import SettingsError, SettingsMoved
from ..readings.visible import in_one_line
from ..settings import home_of
from ..settings.check import read_text
from ..settings.edit import Path as SettingPath
from ..settings.edit import SettingChange, key_of, path_of
from ..settings.editor import KEYS_IN_VAULT, Edition, SettingsDraft, SettingsEditor
from ..settings.naming import CHANNELS, hint_of, path_named
from ..settings.rows import SettingsRow, named_table
from ..settings.shape import notes_of, shown_value, snake
from . import config_edit
from .keys import typed_unseen
from .table import table, to_json
from .terminal import Terminal

MORE = (
    "KEY is as agents.defaults.model; camelCase is understood. A list is written with commas or as JSON, a table as "
    "JSON. The file is config.toml in the home, or config.json; what the environment sets lies over it. Keys of model "
    "providers belong in the vault: everloop models key set NAME. Channels: everloop channels add NAME."
)
HIDDEN = "…"
AT_ONCE = "What runs takes it up with its next turn."
AT_START = "What runs has to be started again for {keys}."
NOT_HERE = (
    "channels are set up with `everloop channels add {name}`, and taken out with `everloop channels remove {name}`; "
    "here channels.{name}.enabled can be set, which switches one off and on"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    listing = words.add_parser("list", help="what is set, and where (the default)")
    listing.add_argument("pattern", metavar="PATTERN", nargs="?", default="", help="only these: a table, or gateway.*")
    listing.add_argument("--all", action="store_true", help="also what is as it comes, and what could be added")
    get = words.add_parser("get", help="print a setting, or the settings of a table")
    change = words.add_parser("set", help="set one; without VALUE it is asked for, or read from stdin")
    unset = words.add_parser("unset", help="take it out of the file: it is as it comes again")
    edit = words.add_parser("edit", help="open the file in your editor; what is wrong is never put in place")
    path = words.add_parser("path", help="where the file is")
    for word in (get, change, unset):
        word.add_argument("key", metavar="KEY", help="as agents.defaults.model")
    change.add_argument("value", metavar="VALUE", nargs="?", help="what it is from now on; secrets are better typed")
    for word in (listing, get, change, unset, edit, path):
        word.add_argument("--json", action="store_true", help="print one JSON object instead")


def run(arguments: argparse.Namespace) -> Coroutine[Any, Any, int]:
    """Not itself async: what is asked is asked, and the editor opened, before the event loop runs."""
    terminal, home = Terminal(sys.stdout, sys.stderr), home_of(os.environ)
    book = SettingsEditor(home, os.environ)
    match arguments.word:
        case "set":
            return _write(book, home, _set(arguments, book), arguments, terminal)
        case "unset":
            return _write(book, home, _unset(arguments.key, book), arguments, terminal)
        case "edit":
            edited = config_edit.edit(book, home, terminal)
            return _put_in_place(edited, book, home, arguments, terminal) if edited else _nothing(arguments, terminal)
        case "path":
            return _path(book, arguments, terminal)
        case "get":
            return _get(book, arguments, terminal)
        case _:
            return _list(book, arguments, terminal)


def _set(arguments: argparse.Namespace, book: SettingsEditor) -> SettingChange:
    path = _changeable(arguments.key)
    if path[0] == CHANNELS:
        return _switched(path, arguments.value, book)
    hint = hint_of(path)
    if hint is None:
        raise SettingsError(f"{key_of(path)} is a table of settings; name the one that is to be changed")
    text = arguments.value if arguments.value is not None else _asked(key_of(path), bool(notes_of(hint).get("secret")))
    if path[0] == "providers" and path[-1] == "api_key" and "${" not in text:
        raise SettingsError(f"{key_of(path)}: {KEYS_IN_VAULT.format(name=path[1])}")
    return SettingChange(path, read_text(text, hint))


def _switched(path: SettingPath, text: str | None, book: SettingsEditor) -> SettingChange:
    """A channel that is set up, on or off."""
    if path[1] not in (book.read().settings.channels or {}):
        raise SettingsError(f"the channel {path[1]} is not set up: everloop channels add {path[1]}")
    if (text or "").lower() not in ("true", "false"):
        raise SettingsError(f"{key_of(path)} is true or false")
    return SettingChange(path, (text or "").lower() == "true")


def _asked(key: str, secret: bool) -> str:
    if secret or not sys.stdin.isatty():
        return typed_unseen(f"{key}: ").rstrip("\r\n")
    return input(f"{key}: ")


def _unset(key: str, book: SettingsEditor) -> SettingChange:
    path = _changeable(key)
    named = named_table(path)
    if hint_of(path) is None and not (named and len(path) == len(named) + 1):
        raise SettingsError(f"{key_of(path)} is a table of settings; name the one that is to be taken out")
    change = SettingChange(path, None)
    draft = book.draft_by_owner([change])
    if draft.edition.version == draft.base:
        raise SettingsError(f"{key_of(path)} is not set in {draft.edition.file}")
    return change


def _changeable(key: str) -> SettingPath:
    path = path_named(key)
    if path[0] == CHANNELS and path[2:] != ("enabled",):
        raise SettingsError(NOT_HERE.format(name=path[1] if path[1:] else "NAME"))
    return path


async def _write(
    book: SettingsEditor, home: Path, change: SettingChange, arguments: argparse.Namespace, terminal: Terminal
) -> int:
    """Where somebody else changes another setting at the same moment, theirs stays, and this one comes after it."""
    while True:
        draft = book.draft_by_owner([change])
        doubts = check_models(home, draft.edition.settings, draft.paths)
        try:
            written = await write_settings(book, draft, home)
            break
        except SettingsMoved:
            continue
    _tell(draft, written, arguments.json, terminal)
    for doubt in doubts:
        terminal.note(doubt)
    return 0


async def _put_in_place(
    edited: config_edit.Edited, book: SettingsEditor, home: Path, arguments: argparse.Namespace, terminal: Terminal
) -> int:
    try:
        written = await write_settings(book, edited.draft, home)
    except SettingsError as error:
        raise SettingsError(f"{error}. What you wrote is in {edited.copy}") from error
    edited.copy.unlink(missing_ok=True)
    _tell(edited.draft, written, arguments.json, terminal)
    return 0


async def _nothing(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.json:
        terminal.answer(to_json({"changed": [], "at_next_start": []}))
    terminal.note("Nothing was changed.")
    return 0


def _tell(draft: SettingsDraft, written: SettingsWritten, as_json: bool, terminal: Terminal) -> None:
    rows = {row.key: row for row in draft.edition.rows}
    if as_json:
        told = {"file": str(draft.edition.file), "changed": written.changed, "at_next_start": written.waiting}
        terminal.answer(to_json(told))
    else:
        for path in draft.paths:
            row = rows.get(key_of(path))
            gone = f"{key_of(path)} is {'changed' if path[0] == CHANNELS else 'taken out'}."
            terminal.answer(f"{key_of(path)} = {shown(row)}" if row else gone)
        if not draft.paths:
            terminal.answer(f"{draft.edition.file} is in place. Changed: {', '.join(written.changed) or 'no value'}.")
    if [key for key in written.changed if key not in written.waiting]:
        terminal.note(AT_ONCE)
    if written.waiting:
        terminal.note(AT_START.format(keys="it" if draft.paths else ", ".join(written.waiting)))
    if written.unnoted:
        terminal.note(f"The audit does not have it: {written.unnoted}")


async def _path(book: SettingsEditor, arguments: argparse.Namespace, terminal: Terminal) -> int:
    file, _ = book.read_file()
    terminal.answer(to_json({"file": str(file), "exists": file.exists()}) if arguments.json else str(file))
    if not arguments.json and not file.exists():
        terminal.note("It is not there yet: `everloop config set` and `everloop onboard` write it.")
    return 0


async def _get(book: SettingsEditor, arguments: argparse.Namespace, terminal: Terminal) -> int:
    path, edition = path_named(arguments.key), book.read()
    if path[0] == CHANNELS:
        terminal.answer(to_json(_channels(edition, path)))
        return 0
    rows = _under(edition.rows, path)
    if not rows:
        raise SettingsError(f"{key_of(path)} is not set")
    if arguments.json:
        terminal.answer(to_json(rows[0] if hint_of(path) is not None else {"settings": rows}))
    elif hint_of(path) is not None:
        terminal.answer(shown(rows[0]))
    else:
        terminal.answer("\n".join(in_one_line(f"{row.key} = {shown(row)}") for row in rows))
    return 0


def _channels(edition: Edition, path: SettingPath) -> Any:
    """What is set of them, or of one, without what is secret."""
    names = [path[1]] if path[1:] else [*(edition.settings.channels or {})]
    told: Any = {name: _open(name, table_of(edition.settings, name)) for name in names}
    for part in path[1:]:
        told = told.get(part, told.get(snake(part))) if isinstance(told, dict) else None
    if told is None:
        raise SettingsError(f"{key_of(path)} is not set. See: everloop channels list")
    return told


def _open(name: str, values: Any) -> Any:
    if not isinstance(values, Mapping):
        return values
    secret = secret_fields(name)
    return {snake(str(key)): _shown_of(snake(str(key)), value, secret) for key, value in values.items()}


def _shown_of(key: str, value: Any, secret: Collection[str]) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _shown_of(str(name), each, secret) for name, each in value.items()}
    if (key in secret or is_secret(key)) and not references_in(value):
        return HIDDEN if value else ""
    return shown_value(value)


async def _list(book: SettingsEditor, arguments: argparse.Namespace, terminal: Terminal) -> int:
    edition = book.read()
    rows = [row for row in edition.rows if arguments.all or (row.is_set and not row.is_pattern)]
    if arguments.pattern:
        rows = [row for row in rows if _fits(row.key, arguments.pattern)]
    if arguments.json:
        terminal.answer(to_json({"file": str(edition.file), "settings": rows}))
    elif not rows:
        terminal.answer("Nothing is set; all is as it comes. See: everloop config list --all")
    else:
        terminal.answer(
            table(("KEY", "VALUE", "FROM"), [(row.key, shown(row), row.place or "default") for row in rows])
        )
    return 0


def _fits(key: str, pattern: str) -> bool:
    return fnmatchcase(key, pattern) if "*" in pattern else key == pattern or key.startswith(f"{pattern}.")


def _under(rows: Sequence[SettingsRow], path: SettingPath) -> list[SettingsRow]:
    return [row for row in rows if not row.is_pattern and path_of(row.key)[: len(path)] == path]


def shown(row: SettingsRow) -> str:
    """A value as it is typed; of a secret, whether there is one."""
    if row.secret:
        return HIDDEN if row.is_set else ""
    if isinstance(row.value, str) or row.value is None:
        return row.value or ""
    return msgspec.json.encode(row.value).decode()
