"""Where settings come from, and in which order: the file in the home, the environment, and what a programmer gives.

A layer knows where each of its keys stands, so that an error can name the line, the variable or the argument.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from msgspec import Struct

from ..errors import SettingsError
from .nanobot import is_nanobots, translated
from .shape import Settings, nearest

FILES = ("config.toml", "config.json")


class Layer(Struct):
    """One source of settings. `place` tells, for a path of keys as they are written there, where that is."""

    values: Mapping[str, Any]
    place: Callable[[tuple[str, ...]], str]
    environ: Mapping[str, str] | None = None  # where ${…} in a value is looked up, if it means anything

    def refuse(self, path: tuple[str, ...], sentence: str) -> NoReturn:
        place = self.place(path)
        raise SettingsError(f"{place}: {sentence}" if place else sentence)


class Typed(str):
    """Text from the environment: to be read as whatever the setting's type is."""

    __slots__ = ()


def layers(
    home: Path, environ: Mapping[str, str], overrides: Mapping[str, Any], tree: dict[str, Any]
) -> Iterator[Layer]:
    if path := file_of(home):
        yield read_layer(path, read_bytes(path), environ)
    yield from later_layers(environ, overrides, tree)


def file_of(home: Path) -> Path | None:
    """The settings file of a home, if it has one. Raises SettingsError when there are two, or nobody may look."""
    try:
        found = [path for path in map(home.joinpath, FILES) if path.exists() or path.is_symlink()]
    except OSError as error:
        raise SettingsError(f"the home {home} cannot be read ({error.strerror}): see whose it is") from error
    if len(found) == 2:
        raise SettingsError(f"There are two settings files, {found[0]} and {found[1]}; keep one and remove the other.")
    return found[0] if found else None


def later_layers(environ: Mapping[str, str], overrides: Mapping[str, Any], tree: dict[str, Any]) -> Iterator[Layer]:
    """What lies over the file, of which `tree` holds what it says."""
    names = tree.get("providers", {}).get("accounts", {})
    yield _read_environment(environ, {name.casefold().replace("-", "_"): name for name in names})
    yield Layer(overrides, lambda path: f"The settings given to open(), {'.'.join(path) or 'all of them'}", environ)


def read_bytes(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for without end
            raise SettingsError(f"{path} is no file: put the settings file in its place")
        return path.read_bytes()
    except OSError as error:
        if path.is_symlink() and not path.exists():
            raise SettingsError(f"{path} is a link to {path.readlink()}, which is not there") from error
        raise SettingsError(f"{path}: the settings file cannot be read ({error.strerror})") from error


def read_layer(path: Path, data: bytes, environ: Mapping[str, str]) -> Layer:
    """What a file says whose content is this."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{path}, line {line}: the file is not UTF-8 text; save it as UTF-8") from error
    values = _parse_toml(path, text) if path.suffix == ".toml" else _parse_json(path, text)
    if is_nanobots(values):
        ours = translated(values)
        values = {**ours.values, "foreign": list(ours.told)}

    def place(keys: tuple[str, ...]) -> str:
        lines = _lines_of_toml(text) if path.suffix == ".toml" else _lines_of_json(text)
        known = next((keys[:n] for n in range(len(keys), 0, -1) if keys[:n] in lines), None)
        return f"{path}, line {lines[known]}" if known else str(path)

    return Layer(values, place, environ)


def _parse_toml(path: Path, text: str) -> dict[str, Any]:
    import tomllib  # takes longer to load than a small file to parse, and a home may have no file

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error), re.DOTALL)
        problem, line = (where[1], where[2]) if where else (str(error), None)
        number = int(line) if line else text.count("\n") + 1
        if said := _said_twice(problem, text.split("\n")[number - 1]):
            raise SettingsError(f"{path}, line {number}: {said}") from error
        raise SettingsError(f"{path}, line {number}: this is not valid TOML ({_without_quotes(problem)})") from error
    except RecursionError as error:
        raise SettingsError(f"{path}: the values are nested too deeply") from error


def _said_twice(problem: str, line: str) -> str:
    """Names a table, and never a key, on whose line a value stands."""
    if problem.startswith("Cannot declare"):
        table = re.match(r"\s*(\[[\w. -]{1,80}\])", line)
        return f"the table {table[1] if table else 'of this line'} stands in the file twice: put both into one"
    return "this setting stands in the file twice: remove one of them" if problem == "Cannot overwrite a value" else ""


def _parse_json(path: Path, text: str) -> dict[str, Any]:
    try:
        values = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        where = re.fullmatch(r"(.*) \(byte (\d+)\)", str(error))
        problem, byte = (where[1], int(where[2])) if where else ("it ends too early", len(text.encode()))
        line = text.encode().count(b"\n", 0, byte) + 1
        problem = problem.removeprefix("JSON is malformed: ")
        raise SettingsError(f"{path}, line {line}: this is not valid JSON ({problem})") from error
    except RecursionError as error:
        raise SettingsError(f"{path}: the values are nested too deeply") from error
    if not isinstance(values, dict):
        raise SettingsError(f"{path}, line 1: the file must be one JSON object, {{…}}")
    return values


def _without_quotes(problem: str) -> str:
    """The parser may quote what it could not read, which may be half of a key."""
    return re.sub(r"(['\"]).{5,}\1", "…", problem)


def _lines_of_toml(text: str) -> dict[tuple[str, ...], int]:
    """Where each key stands, as far as a look at every line tells (a key inside {…} is not found)."""
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    rows: dict[tuple[str, ...], int] = {}
    key = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
    keys = rf"{key}(?:\s*\.\s*{key})*"
    for number, line in enumerate(text.split("\n"), 1):
        if header := re.match(rf"\s*\[(\[?)\s*({keys})\s*\]", line):
            path = table = tuple(part.strip("\"'") for part in re.findall(key, header[2]))
            if header[1]:  # one of several, which are counted
                rows[table] = rows.get(table, 0) + 1
                path = table = (*table, str(rows[table]))
        elif assigned := re.match(rf"\s*({keys})\s*=", line):
            path = (*table, *(part.strip("\"'") for part in re.findall(key, assigned[1])))
        else:
            continue
        for depth in range(1, len(path) + 1):
            lines.setdefault(path[:depth], number)
        lines[path] = number
    return lines


def _lines_of_json(text: str) -> dict[tuple[str, ...], int]:
    lines: dict[tuple[str, ...], int] = {}
    open_keys: list[str] = []
    key = last = ""
    for token in re.finditer(r'"(?:\\.|[^"\\])*"|[{}\[\]:]', text):
        match token[0]:
            case ":":
                key = last
                lines[*open_keys[1:], key] = text.count("\n", 0, token.start()) + 1
            case "{" | "[":
                open_keys.append(key)
                key = ""
            case "}" | "]":
                open_keys.pop()
            case string:
                last = msgspec.json.decode(string)
    return lines


_PREFIX = "EVERLOOP_"
_NOT_SETTINGS = {"EVERLOOP_HOME"}


def _read_environment(environ: Mapping[str, str], names: Mapping[str, str]) -> Layer:
    """`names` are the providers of the file, by the form that a variable can spell."""
    values: dict[str, Any] = {}
    variables: dict[tuple[str, ...], str] = {}
    for variable in sorted(environ):
        keys = tuple(variable.removeprefix(_PREFIX).lower().split("__"))
        if not variable.startswith(_PREFIX) or variable in _NOT_SETTINGS or not _means_a_setting(keys):
            continue
        if keys[0] == "providers" and len(keys) > 1:
            keys = (keys[0], names.get(keys[1], keys[1]), *keys[2:])
        into = values
        for depth, key in enumerate(keys[:-1], 1):
            variables.setdefault(keys[:depth], variable)
            into = into.setdefault(key, {})
            if isinstance(into, str):
                raise SettingsError(f"{variable}: {variables[keys[:depth]]} is set too; keep one of them")
        into[keys[-1]] = Typed(environ[variable])
        variables[keys] = variable

    def place(path: tuple[str, ...]) -> str:
        return next(variables[path[:n]] for n in range(len(path), 0, -1) if path[:n] in variables)

    return Layer(values, place)


def _means_a_setting(keys: tuple[str, ...]) -> bool:
    """EVERLOOP_X without `__` may belong to someone else, unless it is or nearly is a key of the file."""
    return len(keys) > 1 or keys[0] in Settings.__struct_fields__ or bool(nearest(keys[0], Settings, 0.8))
