"""What the model may answer next: which tools, with which arguments, and whether it may already reply.

Whatever the request and the files decide is decided here and not left to a small model: a named file is read before it
is spoken of, a sum is calculated, an order is carried out before it is reported, and for a question nothing is changed.
Where only one call is left, the model is not even asked.
"""

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from . import words
from .intent import quoted, spans_of
from .little import LittleTool
from .turn import TurnSoFar
from .world import stem_of

_MOST_LINES = 120
_MOST_STEPS = 7
_SCRIPTS = (".py", ".sh")
_SETTINGS = (".json", ".ini", ".toml", ".yaml", ".yml", ".cfg", ".conf", ".env", ".properties")
_SHORT_PROGRAM = 60  # lines that are written anew as a whole, which goes better than to point at the wrong one


class PossibleCall(Struct, frozen=True):
    """A call that may be made. An argument without options may be any text."""

    tool: LittleTool
    options: Mapping[str, tuple[str, ...]] = {}

    @property
    def is_settled(self) -> bool:
        return all(len(self.options.get(name, ())) == 1 for name in self.tool.params)

    @property
    def args(self) -> dict[str, str]:
        return {name: self.options[name][0] for name in self.tool.params}


class AllowedAnswer(Struct, frozen=True):
    """`free` says that nothing is decided: tools that others have brought may be called too."""

    reply: bool = True
    choices: tuple[PossibleCall, ...] = ()
    free: bool = False

    @property
    def settled(self) -> PossibleCall | None:
        """The one call that is left."""
        only = self.choices[0] if len(self.choices) == 1 and not self.reply and not self.free else None
        return only if only and only.is_settled else None


REPLY_ONLY = AllowedAnswer()


def allowed(turn: TurnSoFar) -> AllowedAnswer:
    if turn.circles or len(turn.steps) >= _MOST_STEPS or turn.failures > 2:
        return REPLY_ONLY
    if what := turn.wish.to_remember:
        return _remember(turn, what)
    if turn.wish.foreign:
        return _anything(turn)
    for deed in ("copy", "rename", "delete", "write", "add", "remove", "edit", "run"):
        if deed in turn.wish.deeds and (found := _DEEDS[deed](turn)):
            return found
    if turn.wish.changes and any(
        step.ok and turn.tools[step.name].changes for step in turn.steps if step.name in turn.tools
    ):
        return REPLY_ONLY
    return _look(turn)


def _call(turn: TurnSoFar, name: str, /, **options: Iterable[str] | str) -> PossibleCall | None:
    """A choice of this tool, if there is such a tool here. Options that are empty leave the argument open."""
    if name not in turn.tools:
        return None
    given = {key: (value,) if isinstance(value, str) else tuple(value) for key, value in options.items()}
    return PossibleCall(turn.tools[name], {key: value for key, value in given.items() if value})


def _must(*choices: PossibleCall | None) -> AllowedAnswer | None:
    left = tuple(choice for choice in choices if choice)
    return AllowedAnswer(reply=False, choices=left) if left else None


def _may(*choices: PossibleCall | None, free: bool = False) -> AllowedAnswer:
    return AllowedAnswer(choices=tuple(choice for choice in choices if choice), free=free)


def _read(turn: TurnSoFar, path: str) -> AllowedAnswer | None:
    """Reading it first, unless that was tried."""
    return None if turn.tried("read_file", path=path) else _must(_call(turn, "read_file", path=path))


def _target(turn: TurnSoFar) -> str:
    return next(iter(turn.targets), "")


def _places(turn: TurnSoFar, source: str, *, keeps_folder: bool) -> tuple[str, ...]:
    """Where something is to go."""
    wish, last = turn.wish, source.rpartition("/")[2]
    folder = next((path for path in (*wish.folders, wish.new_folder) if path and not source.startswith(f"{path}/")), "")
    if wish.missing:
        name = wish.missing[-1]
        above = source.rpartition("/")[0] if keeps_folder else ""
        above = folder or above
        return (name if "/" in name or not above else f"{above}/{name}",)
    if folder:
        return (f"{folder}/{last}",)
    said = words.DESTINATION.search(wish.text)
    if said and said[1].lower() not in words.NO_NAMES:  # a name without its ending
        above = source.rpartition("/")[0]
        return (f"{above}/{said[1]}{_ending(source)}" if above and keeps_folder else f"{said[1]}{_ending(source)}",)
    return wish.files[1:2]


def _ending(path: str) -> str:
    last = path.rpartition("/")[2]
    return f".{last.rpartition('.')[2]}" if "." in last else ""


def _remember(turn: TurnSoFar, what: str) -> AllowedAnswer:
    return (None if turn.tried("remember") else _must(_call(turn, "remember", text=what))) or REPLY_ONLY


def _copy(turn: TurnSoFar) -> AllowedAnswer | None:
    source = next(iter(turn.wish.files or turn.by_stem), "")
    if not source or turn.did("copy_any") or (turn.steps and turn.did("write_file")):
        return None
    to = _places(turn, source, keeps_folder=False) or (f"{stem_of(source)}-copy{_ending(source)}",)
    if source in turn.contents:
        return _must(_call(turn, "copy_file", path=source, to=to))
    return _read(turn, source) or _must(_call(turn, "copy_any", path=source, to=to))


def _rename(turn: TurnSoFar) -> AllowedAnswer | None:
    source = _target(turn)
    to = _places(turn, source, keeps_folder=True) if source else ()
    return _must(_call(turn, "rename_file", path=source, to=to)) if to and not turn.did("rename_file") else None


def _delete(turn: TurnSoFar) -> AllowedAnswer | None:
    named = turn.wish.files or (turn.targets if words.DELETE_IT.search(turn.wish.text) else ())
    left = [path for path in named if not turn.tried("delete_file", path=path)]
    return _must(_call(turn, "delete_file", path=left[0])) if left else None


def _write(turn: TurnSoFar) -> AllowedAnswer | None:
    wish = turn.wish
    if unread := [path for path in wish.files if wish.missing and not turn.tried("read_file", path=path)]:
        return _read(turn, unread[0])
    paths = [path for path in _new_paths(turn) if not turn.did_write(path)]
    if paths:
        return _must(_call(turn, "write_file", path=paths[0]))
    if wish.missing or turn.did("write_file", "make_folder"):
        return None
    if wish.new_folder:
        return _must(_call(turn, "make_folder", path=wish.new_folder))
    if wish.files:
        return _must(_call(turn, "write_file", path=wish.files)) if words.OVERWRITTEN.search(wish.text) else _add(turn)
    return _may(_call(turn, "write_file")) if wish.about_things else None


def _new_paths(turn: TurnSoFar) -> list[str]:
    """The files that are to be made, in the folder that is named for them."""
    wish = turn.wish
    folder = wish.new_folder or next(iter(wish.folders), "")
    return [path if "/" in path or not folder else f"{folder}/{path}" for path in wish.missing]


def _add(turn: TurnSoFar) -> AllowedAnswer | None:
    path = _target(turn)
    if not path or turn.did("write_file", "add_any"):
        return None
    if path not in turn.contents:
        return _read(turn, path) or _must(_call(turn, "add_any", path=path, text=_said(turn)))
    if path.endswith(".json"):
        return _edit(turn)
    return _must(
        _call(turn, "add_first" if words.AT_THE_TOP.search(turn.wish.text) else "add_line", path=path, text=_said(turn))
    )


def _said(turn: TurnSoFar) -> tuple[str, ...]:
    """What stands in quotes and is no name of a file."""
    names = {*turn.wish.files, *turn.wish.missing, *turn.wish.folders}
    return tuple(text for text in quoted(turn.wish.text) if text not in names)[:1]


def _lines(turn: TurnSoFar, path: str) -> tuple[str, ...]:
    """The lines of a file that was read, as they can be pointed at."""
    lines = dict.fromkeys(line.strip() for line in turn.contents[path].splitlines() if line.strip())
    return tuple(lines) if len(lines) <= _MOST_LINES else ()


def _remove(turn: TurnSoFar) -> AllowedAnswer | None:
    path = _target(turn)
    if not path or turn.did("write_file", "edit_file"):
        return None
    if path not in turn.contents or not (lines := _lines(turn, path)):
        return _read(turn, path) or _must(_call(turn, "edit_file", path=path))
    said = {word.lower() for word in spans_of(turn.wish.text, 1)}
    scores = {line: sum(word in line.lower() for word in said) for line in lines}
    best = max(scores.values())
    return _must(_call(turn, "remove_line", path=path, line=[line for line in lines if scores[line] == best]))


def _edit(turn: TurnSoFar) -> AllowedAnswer | None:
    path = _target(turn)
    if not path or (turn.did("write_file", "edit_file") and turn.steps[-1].ok):
        return None
    if path not in turn.contents or not (lines := _lines(turn, path)):
        return _read(turn, path) or _must(_call(turn, "edit_file", path=path))
    if words.SORTED.search(turn.wish.text):
        return _must(_call(turn, "sort_lines", path=path))
    program = path.endswith(".py") and words.MENDED.search(turn.wish.text) and len(lines) < _SHORT_PROGRAM
    if bool(program) == (turn.failures % 2 == 0):  # what failed in one way is tried in the other
        return _must(_call(turn, "write_file", path=path))
    if swap := _swap(turn, path):
        return _must(_call(turn, "replace", path=path, old=swap[0], new=swap[1]))
    return _must(_call(turn, "edit_line", path=path, line=_meant(turn, path, lines)))


def _meant(turn: TurnSoFar, path: str, lines: tuple[str, ...]) -> tuple[str, ...]:
    """In a file of settings, the lines that have most words of the request."""
    if not path.endswith(_SETTINGS):
        return lines
    lines = tuple(line for line in lines if not line.startswith("["))  # heads of sections
    said = {word.lower() for word in spans_of(turn.wish.text, 1)}
    scores = {line: len(said & {word.lower() for word in re.findall(r"\w+", line)}) for line in lines}
    return tuple(line for line in lines if scores[line] == max(scores.values()))


def _swap(turn: TurnSoFar, path: str) -> tuple[str, str] | None:
    """The words that take the place of others, where the request tells both and the file has the old ones."""
    for pattern in words.SWAPPED:
        for found in pattern.finditer(turn.wish.text):
            old, new = (_bare(found[name]) for name in ("old", "new"))
            is_key = re.search(rf"{re.escape(old)}[\"']?\s*[:=]", turn.contents[path]) and not found["verb"].startswith(
                "r"
            )
            if old and new and old in turn.contents[path] and not is_key:
                return old, new
    return None


def _bare(text: str) -> str:
    """Without what is said around a word, and its quotes."""
    text = words.AROUND.sub("", text.strip()).strip(" .,!?")
    return next(iter(quoted(text)), text)


def _run(turn: TurnSoFar) -> AllowedAnswer | None:
    if turn.tried("run_file"):
        return None
    pointed = turn.targets if turn.wish.points else ()
    scripts = [path for path in turn.wish.files or _by_word(turn) or pointed if path.endswith(_SCRIPTS)]
    if not scripts:
        made = [str(step.args["path"]) for step in turn.steps if step.ok and step.name == "write_file"]
        scripts = [path for path in made if path.endswith(_SCRIPTS)]
    return _must(_call(turn, "run_file", path=scripts[0])) if scripts else None


def _by_word(turn: TurnSoFar) -> tuple[str, ...]:
    """The one script that is called by the name of its file, as in "run the setup script"."""
    said = {word.lower() for word in re.findall(r"[\w-]+", turn.wish.text)}
    found = [path for path in turn.world.files if path.endswith(_SCRIPTS) and stem_of(path).lower() in said]
    return tuple(found) if len(found) == 1 else ()


_DEEDS = {
    "copy": _copy, "rename": _rename, "delete": _delete, "write": _write, "add": _add, "remove": _remove, "edit": _edit,
    "run": _run,
}  # fmt: skip


def _look(turn: TurnSoFar) -> AllowedAnswer:
    """Nothing is changed: it may look, calculate and reply."""
    if not turn.steps:
        return _first_look(turn) or _free(turn)
    last = turn.steps[-1]
    match last.name:
        case "python":
            return (_must(_call(turn, "python")) if turn.failures == 1 else None) or REPLY_ONLY
        case "list_dir" if last.ok:
            return _may(
                _call(turn, "read_file", path=turn.world.files), _call(turn, "search", text=spans_of(turn.wish.text))
            )
        case "search" if last.ok:
            return _may(_call(turn, "read_file", path=turn.world.files))
        case "read_file" if last.ok:
            return _next_read(turn) or (_may(_call(turn, "python")) if turn.wish.calculates else REPLY_ONLY)
        case "find_file" | "run_file":
            return REPLY_ONLY
    return _free(turn)


def _next_read(turn: TurnSoFar) -> AllowedAnswer | None:
    unread = [path for path in turn.wish.files[:3] if not turn.tried("read_file", path=path)]
    return _read(turn, unread[0]) if unread else None


def _first_look(turn: TurnSoFar) -> AllowedAnswer | None:
    wish = turn.wish
    if wish.files:
        return _next_read(turn)
    if wish.missing:
        return _must(_call(turn, "find_file", name=wish.missing[0]))
    spans = [span for span in spans_of(wish.text) if span.strip("/") not in wish.folders]
    if spans and turn.world.files and _is_search(turn):
        return _must(_call(turn, "search", text=spans))
    if wish.kind and not wish.folders and wish.lists:
        return _must(_call(turn, "find_file", name=f"*.{wish.kind}"))
    if wish.folders:
        return _must(_call(turn, "list_dir", path=wish.folders[0]))
    if wish.lists:
        return _must(_call(turn, "list_dir", path="."))
    if wish.calculates or (wish.calculates_on and turn.counted):
        return _must(_call(turn, "python"))
    if turn.by_stem:
        return _read(turn, turn.by_stem[0])
    if wish.points and turn.focus in turn.world.files and not turn.is_read:
        return _read(turn, turn.focus)
    if told := _told_in(turn):
        return _read(turn, told)
    return None


def _told_in(turn: TurnSoFar) -> str:
    """The one file with a line that has the words of the question: what is asked may stand there."""
    said = {_root(word) for word in spans_of(turn.wish.text, 1) if len(word) > 2}
    best: dict[str, int] = {}
    for path, line in turn.world.lines:
        roots = {_root(word) for word in re.findall(r"\w+", line)}
        best[path] = max(best.get(path, 0), len(said & roots))
    enough = [path for path, score in best.items() if said and score >= min(2, len(said))]
    top = [path for path in enough if best[path] == max(best[other] for other in enough)]
    return top[0] if len(top) == 1 else ""


def _root(word: str) -> str:
    return word.lower().rstrip("s")[:7]


def _is_search(turn: TurnSoFar) -> bool:
    wish = turn.wish
    if words.SURELY_SEARCHED.search(wish.text):
        return True
    return wish.searches and (wish.about_things or bool(wish.folders)) and not wish.lists


def _free(turn: TurnSoFar) -> AllowedAnswer:
    python = _call(turn, "python") if words.COUNTED.search(turn.wish.text) else None
    if not turn.wish.is_at_home or (turn.world.whole and not turn.world.files):
        return _may(python, free=True)
    folders = (".", *turn.world.folders) if turn.world.whole else ()
    return _may(
        _call(turn, "list_dir", path=folders),
        _call(turn, "read_file", path=turn.world.files if turn.world.whole else ()),
        _call(turn, "search", text=spans_of(turn.wish.text)),
        python,
        free=True,
    )


def _anything(turn: TurnSoFar) -> AllowedAnswer:
    """A request in another language that names files: what to do with these is the model's to say."""
    files, missing = turn.wish.files, turn.wish.missing
    if first := _next_read(turn):
        return first
    if turn.did("write_file", "rename_file", "run_file", "delete_file"):
        return REPLY_ONLY
    choices = [_call(turn, "write_file", path=missing)] if missing else []
    if files and files[0] in turn.contents:
        lines = _lines(turn, files[0])
        choices += [_call(turn, "edit_line", path=files[0], line=lines), _call(turn, "add_line", path=files[0])]
        choices += [_call(turn, "run_file", path=files[0])] if files[0].endswith(_SCRIPTS) else []
    if files and missing:
        choices += [
            _call(turn, "copy_file", path=files[0], to=missing),
            _call(turn, "rename_file", path=files[0], to=missing),
        ]
    return _may(*choices)
