"""The settings of a home as they can be edited: read with the origin of every value, and changed.

A change is worked out and checked as a whole before a byte is written. It goes into the file of the home; what the
environment or the start of the program says lies over the file, so that is not to be changed here.
"""

import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path as File
from typing import Any, cast

import msgspec
from msgspec import Struct

from ..errors import HomeError, SettingsError, SettingsMoved
from .check import built, checked_section, is_section, kind_of_sections, lay_over, unknown
from .edit import Path, SettingChange, edited_json, edited_toml, key_of, path_of, spelled
from .rows import NAMED, Leaf, Origin, SettingsRow, Source, leaves_of, named_table, rows_of
from .shape import AccountSection, EmbeddedSection, Providers, Settings, notes_of
from .sources import Layer, file_of, later_layers, read_bytes, read_layer

KEYS_IN_VAULT = "keys are kept in the vault: everloop models key set {name}, or PUT /api/keys/{name}"


class Edition(Struct, frozen=True):
    """The settings as they are, or would be. `version` names the content of the file."""

    file: File
    data: bytes
    settings: Settings
    origins: Mapping[Path, Origin]

    @property
    def version(self) -> str:
        return version_of(self.data)

    @property
    def rows(self) -> list[SettingsRow]:
        return rows_of(self.settings, self.origins)


class SettingsDraft(Struct, frozen=True):
    """What the settings would be; `base` is the version that it was made from, `paths` are those that differ."""

    edition: Edition
    base: str
    paths: tuple[Path, ...]


class SettingsEditor:
    def __init__(self, home: File, environ: Mapping[str, str], overrides: Mapping[str, Any] = {}) -> None:
        self._home = home
        self._environ = environ
        self._overrides = overrides

    def read(self) -> Edition:
        """Raises SettingsError."""
        return self._edition(*self.read_file())

    def draft(self, asked: Mapping[str, Any], version: str = "") -> SettingsDraft:
        """The settings after these changes. Nothing is written yet.

        `asked` has settings by their keys, nested or with dots; null takes one out of the file. Raises SettingsError,
        which names the key, and SettingsMoved when the file is not of the `version` that was seen.
        """
        now = self.read()
        if version and version != now.version:
            raise _moved(now.file)
        changes = [*changes_of(asked)]
        for change in changes:
            _check_free(change, now.origins)
        self._check_values(changes)
        return self._drafted(now, changes)

    def draft_changes(self, changes: Sequence[SettingChange]) -> SettingsDraft:
        """The settings after changes of what nobody checks here, such as the tables of channels. Raises SettingsError;
        whoever asks sees to it that they are in force, and nothing lies over them."""
        return self._drafted(self.read(), changes)

    def draft_by_owner(self, changes: Sequence[SettingChange]) -> SettingsDraft:
        """The settings after changes that the owner of the machine makes, who may also edit the file: what is to be
        changed by hand may be, and a ${NAME} be written. Raises SettingsError, which names the key."""
        now = self.read()
        for change in changes:
            _check_free(change, now.origins)
        self._check_values([change for change in changes if not _refers(change.value)])
        return self._drafted(now, changes)

    def draft_text(self, text: str, base: str, paths: Sequence[Path] = ()) -> SettingsDraft:
        """A file that somebody has written in the place of the one of version `base`. Raises SettingsError, with the
        line."""
        return SettingsDraft(self._edition(self.read_file()[0], text.encode()), base, tuple(paths))

    def read_file(self) -> tuple[File, bytes]:
        """The file, or where it would be, and what it holds, right or wrong. Raises SettingsError where there are two,
        or it cannot be read."""
        file = file_of(self._home)
        return file or self._home / "config.toml", read_bytes(file) if file else b""

    def _drafted(self, now: Edition, changes: Sequence[SettingChange]) -> SettingsDraft:
        edit = edited_toml if now.file.suffix == ".toml" else edited_json
        mark = b"\xef\xbb\xbf" if now.data.startswith(b"\xef\xbb\xbf") else b""
        text = edit(now.data.removeprefix(mark).decode(), changes)
        edition = self._edition(now.file, mark + text.encode())
        return SettingsDraft(edition, now.version, tuple(change.path for change in changes))

    def write(self, draft: SettingsDraft) -> None:
        """Put a draft in the place of what it was made from. Raises SettingsMoved, HomeError."""
        file = draft.edition.file
        place = File(os.path.realpath(file))
        try:
            with _alone(place.parent):
                held = place.read_bytes() if place.exists() else b""
                if version_of(held) != draft.base:
                    raise _moved(file)
                _replace(place, draft.edition.data)
        except OSError as error:
            raise HomeError(f"{file} cannot be written ({error.strerror})") from error

    def _edition(self, file: File, data: bytes) -> Edition:
        tree: dict[str, Any] = {}
        origins: dict[Path, Origin] = {}
        if data:
            self._lay("file", read_layer(file, data, self._environ), tree, origins)
        over = later_layers(self._environ, self._overrides, tree)
        sources: tuple[Source, ...] = ("environment", "start")
        for source, layer in zip(sources, over, strict=True):
            self._lay(source, layer, tree, origins)
        return Edition(file, data, cast(Settings, built(Settings, tree)), origins)

    def _lay(self, source: Source, layer: Layer, tree: dict[str, Any], origins: dict[Path, Origin]) -> None:
        said = checked_section(layer, Settings, layer.values, ())
        lay_over(tree, said)
        for path in _paths(said):
            origins[path] = Origin(source, _place(source, layer, path))

    def _check_values(self, changes: list[SettingChange]) -> None:
        values: dict[str, Any] = {}
        for change in changes:
            if change.value is not None:
                lay_over(values, _nested(change))
        checked_section(Layer(values, lambda path: ""), Settings, values, ())


def changes_of(asked: Mapping[str, Any]) -> Iterator[SettingChange]:
    """What is asked for, setting by setting. Raises SettingsError for what is no setting."""
    for key, value in asked.items():
        path = path_of(key)
        yield from _changes(path, shape_at(path), value)


def _changes(path: Path, shape: Any, value: Any) -> Iterator[SettingChange]:
    kind = shape if is_section(shape) else kind_of_sections(shape)
    if why := notes_of(shape).get("by_hand"):
        raise SettingsError(f"{key_of(path)} {why}, and is only changed by hand: edit config.toml in the home")
    if kind is None:
        yield SettingChange(path, _checked_text(path, value))
    elif value is None and not _is_fixed(path):
        yield SettingChange(path, None)
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _changes((*path, name), shape_at((*path, name)), each)
    else:
        raise SettingsError(f"{key_of(path)} is a table of settings; name those that are to be changed")


def shape_at(path: Path) -> Any:
    """The type of what stands at a path. Raises SettingsError where nothing can."""
    hint: Any = Settings
    for depth, part in enumerate(path):
        kind = kind_of_sections(hint)
        if hint is Providers:
            hint = EmbeddedSection if part == "embedded" else AccountSection
        elif kind:
            hint = kind
        elif is_section(hint) and part in hint.__struct_fields__:
            hint = next(field.type for field in msgspec.structs.fields(hint) if field.name == part)
        elif is_section(hint):
            raise SettingsError(unknown(path[: depth + 1], hint))
        else:
            raise SettingsError(f"there is no setting {key_of(path)}; {key_of(path[:depth])} is one by itself")
    if notes_of(hint).get("kept"):
        raise SettingsError(f"{key_of(path)} is changed in the settings file itself, and not here")
    return hint


def _is_fixed(path: Path) -> bool:
    """Whether a table belongs to the shape, and not to the owner, who may give names and take them away."""
    table = named_table(path)
    return not table or len(path) != len(table) + 1


def _checked_text(path: Path, value: Any) -> Any:
    """A ${NAME} would fetch anything out of the environment, also for those who may only look at the settings."""
    if "${" in str(value):
        raise SettingsError(f"{key_of(path)} has a ${{…}} in it, which can only be written in the file itself")
    if path[0] == "providers" and path[-1] == "api_key" and value is not None:
        raise SettingsError(f"{key_of(path)}: {KEYS_IN_VAULT.format(name=path[1])}")
    return value


def _check_free(change: SettingChange, origins: Mapping[Path, Origin]) -> None:
    """Raises SettingsError for what lies over the file: a change there would do nothing."""
    for path, origin in origins.items():
        if path[: len(change.path)] != change.path:
            continue
        if origin.source == "environment":
            raise SettingsError(f"{key_of(path)} is set by the environment variable {origin.place}; change it there")
        if origin.source == "start":
            raise SettingsError(f"{key_of(path)} was given when the program was started; start it without that first")


def _paths(said: Mapping[str, Any]) -> Iterator[Path]:
    """The paths of the file under which a layer says something."""
    names: dict[Path, tuple[str, ...]] = {}
    for table in NAMED:
        held: Any = said
        for part in (*table, "accounts") if table == ("providers",) else table:
            held = held.get(part) or {}
        names[table] = tuple(held)
    return (leaf.path for leaf in leaves_of(names=names) if _is_said(leaf, said))


def _is_said(leaf: Leaf, said: Mapping[str, Any]) -> bool:
    path = leaf.path
    if path[0] == "providers" and path[1] != "embedded":
        path = ("providers", "accounts", *path[1:])
    node: Any = said
    for part in path:
        if not isinstance(node, Mapping) or part not in node:
            return False
        node = node[part]
    return True


def _place(source: Source, layer: Layer, path: Path) -> str:
    if source == "start":
        return "given at the start"
    place = layer.place(spelled(layer.values, path))
    return place if source == "environment" else File(place).name


def _nested(change: SettingChange) -> dict[str, Any]:
    tree: Any = change.value
    for part in reversed(change.path):
        tree = {part: tree}
    return cast(dict[str, Any], tree)


def _refers(value: Any) -> bool:
    """Whether it is read from the environment, so that only then it is known what it is."""
    return isinstance(value, str) and "${" in value


def version_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _moved(file: File) -> SettingsMoved:
    return SettingsMoved(f"{file.name} has been changed meanwhile; look at it again, and then change what you meant to")


@contextmanager
def _alone(folder: File) -> Iterator[None]:
    """Nobody else who writes settings does so now."""
    folder.mkdir(parents=True, exist_ok=True)
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _replace(place: File, data: bytes) -> None:
    """Whole or not at all, also when the power fails; as private as it was, and a new one for its owner only."""
    name = place.with_name(f".{place.name}.{secrets.token_hex(8)}")
    made = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(made, "wb") as file:
            file.write(data)
            if place.exists():
                os.fchmod(file.fileno(), place.stat().st_mode & 0o777)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, place)
    except BaseException:
        name.unlink(missing_ok=True)
        raise
