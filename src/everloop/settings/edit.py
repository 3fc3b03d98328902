"""A settings file with something changed and all else as its owner left it: comments, order, empty lines.

TOML is changed line by line. A look at lines can be mistaken, so what comes out is parsed again, and has to say exactly
what was wanted; where it does not, nothing is changed and the owner is told to do it by hand.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from ..errors import SettingsError
from .shape import snake

Path = tuple[str, ...]


class SettingChange(NamedTuple):
    """What stands under a path of keys from now on; None takes it out."""

    path: Path
    value: Any


def edited_json(text: str, changes: Iterable[SettingChange]) -> str:
    tree = msgspec.json.decode(text) if text.strip() else {}
    for change in changes:
        _apply(tree, SettingChange(spelled(tree, change.path), change.value))
    indent = re.search(r"\n([ \t]+)\S", text)
    return json.dumps(tree, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n"


def edited_toml(text: str, changes: Iterable[SettingChange]) -> str:
    """Raises SettingsError where the file is written in a way that cannot be changed safely."""
    import tomllib

    ends = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    wanted: dict[str, Any] = tomllib.loads(text)
    for change in changes:
        path = spelled(wanted, change.path)
        _apply(wanted, SettingChange(path, change.value))
        text = _without(text, path) if change.value is None else _with(text, path, change.value)
        if not _says(text, wanted):
            raise _by_hand(change.path)
    return text.replace("\n", ends)


def _by_hand(path: Path) -> SettingsError:
    key = key_of(path)
    return SettingsError(f"{key} cannot be changed here, for the way the file is written; change it in the file")


def key_of(path: Path) -> str:
    """A path as it is written in TOML: `prices."gpt-4.1".input`."""
    return ".".join(part if re.fullmatch(r"[\w-]+", part, re.ASCII) else f'"{_escaped(part)}"' for part in path)


def path_of(key: str) -> Path:
    """The other way round. Raises SettingsError."""
    try:
        if re.fullmatch(_KEYS, key):
            return _parts(key)
    except ValueError:  # an escape that TOML does not know
        pass
    raise SettingsError(f"{key[:100]!r} is not the name of a setting")


def spelled(tree: Mapping[str, Any], path: Path) -> Path:
    """The path as this file writes it, which may be in capitals: maxTokens for max_tokens."""
    found: list[str] = []
    node: Any = tree
    for part in path:
        keys = node if isinstance(node, Mapping) else ()
        found.append(part if part in keys else next((key for key in keys if snake(key) == part), part))
        node = node.get(found[-1]) if isinstance(node, Mapping) else None
    return tuple(found)


def _apply(tree: dict[str, Any], change: SettingChange) -> None:
    node: Any = tree
    for part in change.path[:-1]:
        node = node.setdefault(part, {}) if change.value is not None else node.get(part, {})
        if not isinstance(node, dict) and change.value is not None:
            raise _by_hand(change.path)
        if not isinstance(node, dict):
            return
    if change.value is None:
        node.pop(change.path[-1], None)
    else:
        node[change.path[-1]] = change.value


def _says(text: str, wanted: Mapping[str, Any]) -> bool:
    import tomllib

    try:
        return bool(_full(tomllib.loads(text)) == _full(wanted))
    except tomllib.TOMLDecodeError:
        return False


def _full(tree: Any) -> Any:
    """Without the tables that hold nothing, which a file may leave behind."""
    if not isinstance(tree, Mapping):
        return tree
    full = {key: _full(value) for key, value in tree.items()}
    return {key: value for key, value in full.items() if value != {}}


_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""
_KEYS = rf"{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*"
_HEADER = re.compile(rf"[ \t]*\[(\[?)[ \t]*({_KEYS})[ \t]*\]\]?[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_ASSIGNED = re.compile(rf"[ \t]*({_KEYS})[ \t]*=[ \t]*")
_LINE = re.compile(r"[^\n]*(?:\n|\Z)")
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*|[\[{]|[\]}]|\n|[^\"'\#\[\]{}\n]+|.",
    re.DOTALL,
)


class _Statement(NamedTuple):
    """A header, or a key with its value; `start` and `end` are those of its lines."""

    path: Path
    table: Path
    is_header: bool
    start: int
    end: int
    value: tuple[int, int] = (0, 0)

    def within(self, path: Path) -> bool:
        return self.path[: len(path)] == path


def _statements(text: str) -> Iterator[_Statement]:
    at = 0
    table: Path = ()
    while at < len(text):
        if header := _HEADER.match(text, at):
            table = _parts(header[2])
            yield _Statement(table, table, True, at, header.end())
            at = header.end()
        elif assigned := _ASSIGNED.match(text, at):
            value = _end_of_value(text, assigned.end())
            line = _LINE.match(text, value)
            end = line.end() if line else len(text)
            yield _Statement((*table, *_parts(assigned[1])), table, False, at, end, (assigned.end(), value))
            at = end
        else:
            line = _LINE.match(text, at)
            at = max(line.end() if line else 0, at + 1)


def _end_of_value(text: str, at: int) -> int:
    depth, end = 0, at
    for token in _TOKEN.finditer(text, at):
        if token[0] in ("[", "{"):
            depth += 1
        elif token[0] in ("]", "}"):
            depth -= 1
        elif depth <= 0 and (token[0] == "\n" or token[0].startswith("#")):
            break
        if token[0].strip():
            end = token.start() + len(token[0].rstrip())
    return end


def _parts(keys: str) -> Path:
    import tomllib

    def plain(part: str) -> str:
        return part if part[0] not in "\"'" else str(tomllib.loads(f"k = {part}")["k"])

    return tuple(plain(part) for part in re.findall(_KEY, keys))


def _with(text: str, path: Path, value: Any) -> str:
    known = [*_statements(text)]
    for each in known:
        if not each.is_header and path[: len(each.path)] == each.path:
            start, end = each.value
            within = path[len(each.path) :]
            written = value_text(value if not within else _changed(text[start:end], within, value))
            return f"{text[:start]}{written}{text[end:]}"
    return _added(_without(text, path), path, value)


def _changed(inline: str, path: Path, value: Any) -> Any:
    """The table that is written in one line, with something in it changed."""
    import tomllib

    table = tomllib.loads(f"t = {inline}")["t"]
    if isinstance(table, dict):
        _apply(table, SettingChange(path, value))
    return table


def _added(text: str, path: Path, value: Any) -> str:
    if text and not text.endswith("\n"):
        text += "\n"
    known = [*_statements(text)]
    table = path[:-1]
    if table and not any(each.table == table for each in known):
        dotted = (each for each in known if not each.is_header and len(each.table) < len(table))
        beside = [each for each in dotted if each.within(table)]  # agents.defaults.x = …
        if not beside:
            space = "\n" if text.strip() else ""
            return f"{text}{space}[{key_of(table)}]\n{key_of(path[-1:])} = {value_text(value)}\n"
        table = beside[-1].table
    inside = [each for each in known if each.table == table]
    line = f"{key_of(path[len(table) :])} = {value_text(value)}\n"
    if inside:
        return f"{text[: inside[-1].end]}{line}{text[inside[-1].end :]}"
    return f"{line}\n{text}" if text else line


def _without(text: str, path: Path) -> str:
    known = [*_statements(text)]
    for each in known:
        if not each.is_header and len(each.path) < len(path) and path[: len(each.path)] == each.path:
            start, end = each.value
            return f"{text[:start]}{value_text(_changed(text[start:end], path[len(each.path) :], None))}{text[end:]}"
    for place in range(len(known) - 1, -1, -1):
        each = known[place]
        if not each.within(path):
            continue
        following = known[place + 1] if place + 1 < len(known) else None
        # What is written between two keys of a table that goes, goes with it.
        with_it = each.table[: len(path)] == path and following and not following.is_header
        text = text[: each.start] + text[following.start if with_it and following else each.end :]
    return text


def value_text(value: Any) -> str:
    """As TOML writes it. Raises SettingsError."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return repr(value)
        case str():
            return _text(value)
        case Mapping():
            pairs = ", ".join(
                f"{key_of((key,))} = {value_text(each)}" for key, each in value.items() if each is not None
            )
            return f"{{ {pairs} }}" if pairs else "{}"
        case list() | tuple():
            return f"[{', '.join(map(value_text, value))}]"
    raise SettingsError("a value is of a kind that the settings file cannot hold")


def _text(text: str) -> str:
    if "\n" in text and "\r" not in text:
        return '"""\n' + "\n".join(_escaped(line) for line in text.split("\n")) + '"""'
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1].replace("\x7f", "\\u007f")
