"""What a tool has answered, told so that a small model can use it: what it counts by itself it counts wrong, so that is
counted for it, and stands after the content, where it is not overlooked."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ...core.tool import ToolCall
from .little import in_little
from .world import World

SHOWN = 1500  # characters of a file
_REST = 900  # of any other result
_PART = re.compile(r"\n?\[(?:lines \d+-\d+ of (\d+); continue|line \d+ goes on; continue)[^\n]*\]$")
_ENTRY = re.compile(r"(.+?)(?:  \d+|@)?$")
_FOUND = re.compile(r"(.+?):(\d+):(.*)")
_DEFINITION = re.compile(r"^\s*(?:def|class|function|fn|func|const|let|var|#+)\b|^\s*\w+\s*=(?!=)|^#")
_EXIT = re.compile(r"\[(?:exit code (\d+)[^\]]*|ended [^\]]*)\]\n?")


def is_error(result: str) -> bool:
    code = _EXIT.match(result)
    return result.startswith("Error") or bool(code and code[1] != "0")


def whole_file(result: str) -> str | None:
    """What a file holds, if the result of reading it is all of it."""
    if result.startswith("Error") or _PART.search(result) or "\n… [" in result:
        return None
    return "" if result == "[the file is empty]" else result


def retold(call: ToolCall, result: str, asked: str, world: World) -> str:
    """The result as the model is shown it; `asked` is what the user said."""
    name, args = in_little(call)
    if result.startswith("Error"):
        return _error(result, str(args.get("path", "")), world)
    match name:
        case "read_file":
            return _file(str(args.get("path", "")), result, asked)
        case "list_dir":
            return _folder(str(args.get("path", ".")), result, asked)
        case "search":
            return _search(str(args.get("text", "")), result, world)
        case "find_file":
            return _names(str(args.get("name", "")), result, world)
        case "python" | "run_file":
            return _output(result)
        case "copy_file" | "copy_any" | "rename_file" | "delete_file" | "make_folder" | "write_file":
            return capped(_done(name, args, result), _REST)
    return capped(result, _REST)


def capped(text: str, room: int) -> str:
    """Both ends of a long text."""
    if len(text) <= room:
        return text
    head, tail = text[: room * 2 // 3], text[-room // 4 :]
    return f"{head}\n[… {len(text) - len(head) - len(tail)} characters left out …]\n{tail}"


def _error(result: str, path: str, world: World) -> str:
    if path and "there is no" in result and world.whole:
        near = world.near(path)
        return f"Error: there is no {path}. " + (f"Did you mean {near}?" if near else _all_files(world))
    return capped(result, _REST)


def _all_files(world: World) -> str:
    return f"The files are: {capped(', '.join(world.files), 400)}." if world.files else "There are no files."


def _file(path: str, result: str, asked: str) -> str:
    whole = whole_file(result)
    if whole is None:
        part = _PART.search(result)
        notes = (
            f"({path} has {part[1]} lines; this is its beginning.)"
            if part and part[1]
            else f"(the beginning of {path})"
        )
        return f"{capped(_PART.sub('', result), SHOWN)}\n{notes}"
    if not whole.strip():
        return f"({path} is empty)"
    return f"{capped(whole.rstrip(chr(10)), SHOWN)}\n({path}: {'; '.join(_notes(path, whole, asked))})"


def _notes(path: str, text: str, asked: str) -> Iterable[str]:
    rows = _table(path, text)
    lines = text.rstrip("\n").split("\n")
    if rows:
        yield f"{len(rows) - 1} rows under the header, {len(lines)} lines"
        yield from _columns(rows)
        return
    filled = [line for line in lines if line.strip()]
    empty = f", {len(lines) - len(filled)} of them empty" if len(filled) < len(lines) else ""
    yield f"{len(lines)} lines{empty}, {len(text.split())} words"
    items = [line for line in lines if re.match(r"\s*(?:[-*+•]|\d+[.)])\s", line)]
    if len(items) > 1:
        yield f"{len(items)} list items"
    numbers = [float(line) for line in filled if re.fullmatch(r"\s*-?\d+(?:\.\d+)?\s*", line)]
    if len(numbers) > 1 and len(numbers) == len(filled):
        yield _figures(numbers)
    yield from faults_of(path, text)
    yield from (f"line {at + 1} is: {lines[at].strip()}" for at in _places(asked, len(lines)))


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_NTH = re.compile(
    r"\blines? (?:number |no\.? )?(\d+)|\b(\d+)(?:st|nd|rd|th) line|"
    rf"\b({'|'.join(_ORDINALS)}|last|final)(?: \w+)? lines?\b",
    re.IGNORECASE,
)


def _places(asked: str, count: int) -> Iterable[int]:
    """Which lines are asked for by their number, counted from 0."""
    for found in _NTH.finditer(asked):
        word = (found[3] or "").lower()
        if word in ("last", "final"):
            yield count - 1
        number = int(found[1] or found[2] or 0) or (_ORDINALS.index(word) + 1 if word in _ORDINALS else 0)
        if 0 < number <= count:
            yield number - 1


def faults_of(path: str, text: str) -> Iterable[str]:
    try:
        if path.endswith(".json"):
            json.loads(text)
        elif path.endswith(".py"):
            compile(text, path, "exec")
    except (ValueError, SyntaxError) as error:
        yield f"it is not valid: {error}"


def _table(path: str, text: str) -> list[list[str]]:
    """The rows of a CSV with its header; nothing for what is none."""
    if not path.endswith((".csv", ".tsv")):
        return []
    head = text.split("\n", 1)[0]
    mark = max(",;\t|", key=head.count)
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=mark) if row]
    return rows if len(rows) > 1 and len(rows[0]) > 1 else []


def _columns(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    header, body = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    for place, title in enumerate(header):
        values = [row[place].strip() for row in body]
        if numbers := _numbers(values):
            yield f"{title}: {_figures(numbers, [f' for {row[0]}' for row in body] if place else [])}"
        elif 1 < len(counts := Counter(values)) < len(values) and len(counts) <= 8:
            yield f"{title}: " + ", ".join(f"{value} {count} times" for value, count in counts.most_common())
    yield from _product(header, body)


def _product(header: Sequence[str], body: Sequence[Sequence[str]]) -> Iterable[str]:
    """Two columns of numbers are mostly a quantity and a price."""
    columns = {title: _numbers([row[place].strip() for row in body]) for place, title in enumerate(header)}
    numbers = {title: values for title, values in columns.items() if values}
    if len(numbers) == 2:
        (one, ones), (two, twos) = numbers.items()
        yield f"{one} times {two}: total {_plain(sum(a * b for a, b in zip(ones, twos, strict=True)))}"


def _figures(numbers: Sequence[float], whose: Sequence[str] = ()) -> str:
    """What is asked of a column; the highest and the lowest with the name in their row."""
    most, least = max(numbers), min(numbers)
    of = [whose[numbers.index(one)] if whose else "" for one in (most, least)]
    total, mean = sum(numbers), sum(numbers) / len(numbers)
    return (
        f"total {_plain(total)}, average {_plain(mean)}, highest {_plain(most)}{of[0]}, lowest {_plain(least)}{of[1]}"
    )


def _numbers(values: Sequence[str]) -> list[float]:
    found = [re.sub(r"^[$€£]\s*|\s*[$€£%]$|(?<=\d),(?=\d{3}\b)", "", value) for value in values]
    return (
        [float(one) for one in found] if found and all(re.fullmatch(r"-?\d+(?:\.\d+)?", one) for one in found) else []
    )


def _plain(number: float) -> str:
    return f"{round(number, 4):.12g}"


_SIZE = re.compile(r"\b(?:big|bigg|large|larg|small|size|bytes|long|short|heav)\w*", re.IGNORECASE)


def _folder(path: str, result: str, asked: str) -> str:
    where = path if path not in (".", "") else "the workspace"
    if result.startswith("[the folder is empty]"):
        return f"({where} is empty)"
    entries = [found[1] for line in result.split("\n") if (found := _ENTRY.match(line)) and not line.startswith("[")]
    folders = [entry for entry in entries if entry.endswith("/")]
    files = [entry for entry in entries if not entry.endswith("/")]
    sizes = dict(re.findall(r"^(.+?)  (\d+)$", result, re.MULTILINE)) if _SIZE.search(asked) else {}
    files = [f"{name} ({sizes[name]} bytes)" for name in sorted(sizes, key=lambda name: -int(sizes[name]))] or files
    names = capped(", ".join([*folders, *files]), _REST)
    return f"{names}\n({where}: {_count(len(files), 'file')}, {_count(len(folders), 'folder')})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _search(text: str, result: str, world: World) -> str:
    found = [match.groups() for line in result.split("\n") if (match := _FOUND.match(line))]
    named = [path for path in world.files if text.lower() in path.lower()]
    if not found:
        also = f"Files with that name: {', '.join(named)}." if named else _all_files(world)
        return f"No file has the text '{text}'. {also}"
    found.sort(key=lambda one: not _DEFINITION.search(one[2]))
    lines = [f"{path} line {number}: {line.strip()[:160]}" for path, number, line in found[:12]]
    files = len({path for path, _, _ in found})
    more = f"\n({len(found) - 12} more)" if len(found) > 12 else ""
    return "\n".join(lines) + f"{more}\n('{text}': {_count(len(found), 'line')} in {_count(files, 'file')})"


def _names(name: str, result: str, world: World) -> str:
    if "*" in name:
        found = [line for line in result.split("\n") if not line.startswith("[")]
        return f"{capped(', '.join(found), _REST) or 'None.'}\n({_count(len(found), 'file')} {name})"
    if result.startswith("["):
        near = world.near(name)
        return f"There is no file {name}. " + (f"There is {near}. " if near else "") + _all_files(world)
    return f"Yes, there is: {result}"


def _output(result: str) -> str:
    """Only what was printed; of a failure its end."""
    code = _EXIT.match(result)
    printed = result[code.end() :].strip("\n") if code else result
    if code and code[1] != "0":
        return f"Error: {printed[-400:] or 'it failed'}"
    return capped(printed, _REST) or "(it printed nothing)"


def _done(name: str, args: object, result: str) -> str:
    assert isinstance(args, dict)
    match name:
        case "copy_file" | "copy_any":
            return f"Done: {args['path']} was copied to {args['to']}."
        case "rename_file":
            return f"Done: {args['path']} is now {args['to']}."
        case "delete_file":
            return f"Done: {args['path']} was deleted."
        case "make_folder":
            return f"Done: there is a folder {args['path']}."
        case _ if "nothing was changed" in result:
            return result
        case _:
            fault = next(iter(faults_of(str(args.get("path", "")), str(args.get("content", "")))), "")
            return f"Done: {args.get('path')} was written." + (f" But {fault}. Correct that." if fault else "")
