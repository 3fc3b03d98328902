"""What `everloop onboard` finds, tries and keeps. Each function goes into the home and leaves it again, so that whoever
asks questions in between holds nothing open; and each writes all that it says or nothing."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..core.people import OWNER, Role
from ..errors import EverloopError, HomeError, HostFailed
from ..gateway.access.credentials import set_password
from ..providers.choose import EMBEDDED
from ..providers.keys import Keys, checked_key, key_setting, keyed_host, notes_on
from ..providers.offered import OfferedProvider, offered
from ..runtime.budgets import BudgetControl
from ..settings import home_of, load, workspace_of
from ..settings.edit import SettingChange, path_of
from ..settings.editor import SettingsDraft, SettingsEditor, version_of
from ..settings.rows import SettingsRow
from ..settings.template import begun_file
from ..tools.bootstrap import FILES, make_workspace
from .connecting import USUAL, LookedAt, ProviderProbe, check_address
from .destinations import check_destinations
from .models import keys_of, open_models
from .opening import opened_home
from .owner_settings import write_settings
from .presets import Presets
from .records import open_library, open_records
from .survey import HostRow, find_hosts, find_uses
from .trial import Show, TriedOut, trials_of
from .workspaces import check_workspace

AUTO = "auto"

__all__ = [
    "AUTO",
    "EMBEDDED",
    "HomeSetup",
    "ModelPick",
    "OfferedProvider",
    "PickKept",
    "Surroundings",
    "check_address",
    "embedded_is_here",
    "found_address",
    "give_password",
    "keep_pick",
    "list_models",
    "look_around",
    "look_at_home",
    "name_owner",
    "provider_called",
    "try_pick",
    "whole_address",
    "write_starting_files",
]


class ModelPick(Struct, frozen=True):
    """Who shall answer. `key` is one that was just given; without it the one that is kept is used, where it goes."""

    provider: str
    model: str
    address: str = ""
    key: str = ""

    @property
    def is_local(self) -> bool:
        return self.provider in (EMBEDDED, AUTO)


class Surroundings(Struct, frozen=True):
    """What there is: the model as it is set and where, what `auto` comes to, who can be asked already, and everybody
    who could be."""

    model: SettingsRow
    answers: str
    why: str  # nobody answers, if so
    found: list[HostRow]
    offers: list[OfferedProvider]
    embedded: str  # why not, "" where it can be had


class HomeSetup(Struct, frozen=True):
    """What of a home is set up beside the model."""

    file: Path
    owner: str
    has_password: bool
    workspace: Path
    missing: tuple[str, ...]  # starting files


async def look_around() -> Surroundings:
    """Raises SettingsError, StoreError."""
    home = home_of(os.environ)
    rows = {row.key: row for row in SettingsEditor(home, os.environ).read().rows}
    async with open_library() as library:
        uses = await find_uses(library)
        hosts = await find_hosts(library, uses, everything=False)
        offers = offered(library.keys, frozenset(library.logins))
    without = "" if find_spec("xllamacpp") else "install everloop with the extra [local] for it"
    return Surroundings(rows[USUAL], uses[0].model, uses[0].why, hosts, offers, without)


def provider_called(word: str, offers: Sequence[OfferedProvider]) -> OfferedProvider | None:
    """The one that somebody means who types its name or a word of its title, as Claude or Grok."""
    word = word.lower()
    called = {part: each for each in reversed(offers) for part in re.findall(r"[\w.]+", each.title.lower())}
    titled = {each.title.lower(): each for each in offers}
    return {**called, **titled, **{each.name: each for each in offers}}.get(word)


def whole_address(typed: str) -> str:
    """What people type for a server of this machine has no scheme."""
    return f"http://{typed}" if re.match(r"(localhost|127\.[\d.]+|\[::1\])(:|/|$)", typed) else typed


async def list_models(provider: str, address: str = "", key: str = "") -> LookedAt:
    """What a provider has; nothing is kept. Raises EverloopError with a way out."""
    async with open_library() as library:
        return await ProviderProbe(library).look(provider, address, key)


async def found_address(provider: str, address: str, key: str) -> str:
    """Where a server is asked that somebody has named, also one that lists no models. Raises EverloopError."""
    try:
        return (await list_models(provider, address, key)).address
    except HostFailed:
        return address


def embedded_is_here() -> bool:
    """Whether the embedded model has been fetched already."""
    from ..providers.embedded import WEIGHTS
    from ..providers.embedded.download import Download

    home = home_of(os.environ)
    given = load(home, os.environ).providers.embedded.path
    return Download(WEIGHTS[EMBEDDED], home / "models", given=Path(given) if given else None).is_here


async def try_pick(pick: ModelPick, show: Show, told: Callable[[TriedOut], None]) -> tuple[str, bool]:
    """Ask it for an answer and a tool call, with nothing kept. The model's name, and whether all went well. Raises
    EverloopError."""
    given = _nested(await _changes(pick))
    if pick.key:
        name = given["agents"]["defaults"]["model"].partition("/")[0]
        escaped = checked_key(pick.key).replace("${", "$${")
        given.setdefault("providers", {}).setdefault(name, {})["api_key"] = escaped
    async with opened_home(given=given) as opened, AsyncExitStack() as stack:
        library = await open_models(opened.home, opened.settings, opened.vault, stack)
        presets, budgets = Presets(library.settings, library.models), BudgetControl(opened.store)
        trials = await trials_of("", presets, library.models, budgets)
        well = True
        for run in trials.run:
            tried = await run(show)
            told(tried)
            well = well and tried.ok
            if not tried.ok:
                break
        return trials.model, well


class PickKept(Struct, frozen=True):
    """What the model is called, and what is to be known about its key. `barred` says which other key is used in its
    place, and how to end that; "" where none is."""

    model: str
    notes: Sequence[str] = ()
    barred: str = ""


async def keep_pick(pick: ModelPick) -> PickKept:
    """The key goes into the vault, the rest into the settings file. Raises EverloopError; then all is as before."""
    changes, home = await _changes(pick), home_of(os.environ)
    if pick.key:
        return await _with_key(pick, changes, home)
    await _write(changes, home)
    return PickKept(changes[USUAL])


async def _with_key(pick: ModelPick, changes: Mapping[str, Any], home: Path) -> PickKept:
    """The key first: settings that lead to a host without one would be worse than one that nobody refers to."""
    name, key = changes[USUAL].partition("/")[0], checked_key(pick.key)
    async with open_records() as records:
        before = await records.vault.get(f"key:{name}")
        await records.vault.set(f"key:{name}", key)
        try:
            await _write(changes, home)
        except EverloopError:
            await (records.vault.set(f"key:{name}", before) if before else records.vault.forget(f"key:{name}"))
            raise
    accounts = load(home, os.environ).providers.accounts
    host, keys = keyed_host(name, accounts), Keys(accounts, os.environ, {name: key}, home)
    found = keys.find(host)
    if found and found != key:
        return PickKept(changes[USUAL], barred=_other_key(name, found.where))
    return PickKept(changes[USUAL], notes_on(host, key, keys))


def _other_key(name: str, where: str) -> str:
    if setting := key_setting(name, where):
        return f"another key comes before the one in the vault: everloop config unset {setting}"
    return f"{where} comes before the key in the vault: unset {where}, also where each login sets it"


async def _changes(pick: ModelPick) -> dict[str, Any]:
    """The settings that this pick changes. Raises EverloopError, also where a key that is kept would be sent to an
    address that somebody has just written."""
    if pick.is_local:
        return {USUAL: pick.provider}
    async with open_library() as library:
        changes = ProviderProbe(library).changes(pick.provider, pick.address, pick.model)
        home = home_of(os.environ)
        wanted = load(home, os.environ, _nested(changes))
        keys = await keys_of(home, wanted, library.vault)
        if pick.key:  # takes the place of what the vault has
            keys = Keys(wanted.providers.accounts, os.environ, {}, home)
        check_destinations(library.settings, wanted, keys, os.environ)
    return changes


def _nested(changes: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in changes.items():
        node = tree
        *tables, last = path_of(key)
        for part in tables:
            node = node.setdefault(part, {})
        node[last] = value
    return tree


async def _write(changes: Mapping[str, Any], home: Path) -> None:
    book = SettingsEditor(home, os.environ)
    if draft := _draft(book, [SettingChange(path_of(key), value) for key, value in changes.items()]):
        await write_settings(book, draft, home)


def _draft(book: SettingsEditor, changes: list[SettingChange]) -> SettingsDraft | None:
    """A new file has comments; one that is there is changed where it has to be, and else left alone."""
    draft = book.draft_by_owner(changes)
    _, data = book.read_file()
    if not data and draft.edition.file.suffix == ".toml":
        return book.draft_text(begun_file(changes), version_of(data), [change.path for change in changes])
    return None if draft.edition.version == draft.base else draft


async def look_at_home() -> HomeSetup:
    """Raises SettingsError, StoreError."""
    home = home_of(os.environ)
    async with open_records() as records:
        owner = (await records.members.find(OWNER)).name
        password = await records.store.login(OWNER, "password")
        workspace = workspace_of(records.settings, home)
    file, _ = SettingsEditor(home, os.environ).read_file()
    return HomeSetup(file, owner, bool(password), workspace, _missing_in(workspace))


def _missing_in(workspace: Path) -> tuple[str, ...]:
    return tuple(name for name in FILES if not os.path.lexists(workspace / name))


async def name_owner(name: str) -> None:
    """Raises MailRefused."""
    async with open_records() as records:
        await records.members.change(OWNER, Role.OWNER, name=name)


async def give_password(password: str) -> None:
    """Raises EverloopError."""
    async with open_records() as records:
        await set_password(records.store, OWNER, password)


def write_starting_files(setup: HomeSetup) -> None:
    """Those that are missing; one that is there is not touched. Raises HomeError."""
    check_workspace(setup.workspace, home_of(os.environ))
    try:
        make_workspace(setup.workspace)
        for name in setup.missing:
            if not os.path.lexists(setup.workspace / name):
                (setup.workspace / name).write_text(FILES[name], encoding="utf-8")
    except OSError as error:
        raise HomeError(f"the workspace {setup.workspace} cannot be written ({error.strerror})") from error
