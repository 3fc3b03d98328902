"""The tools as this model is shown them: few parameters, none of which can be left out, and names in the user's words.

Each is carried out by one of the house's own tools, so that what these promise (limits, approvals, undoing, a second
run after a crash) holds. A call is translated when it is made, and spelled back when the model is shown it again.
"""

import ast
import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ...core.tool import ToolCall, ToolSpec, problems_of
from .pure import shown_value

Args = Mapping[str, Any]
Contents = Mapping[str, str]
"""What files hold that have been read in whole, by their paths."""


Translate = Callable[[Args, Contents], dict[str, Any]]


class LittleTool(Struct, frozen=True):
    """`needs` is the house's tool, `translate` makes its arguments of ours."""

    name: str
    params: tuple[str, ...]
    about: str
    needs: str
    translate: Translate
    changes: bool = False


def _move(args: Args, contents: Contents) -> dict[str, Any]:
    return {"patch": f"*** Begin Patch\n*** Update File: {args['path']}\n*** Move to: {args['to']}\n*** End Patch"}


def _delete(args: Args, contents: Contents) -> dict[str, Any]:
    return {"patch": f"*** Begin Patch\n*** Delete File: {args['path']}\n*** End Patch"}


def _copy(args: Args, contents: Contents) -> dict[str, Any]:
    return {"path": args["to"], "content": contents[args["path"]]}


def _copy_any(args: Args, contents: Contents) -> dict[str, Any]:
    return {"code": f"import shutil\nshutil.copyfile({args['path']!r}, {args['to']!r})\nprint('copied')"}


def _make_folder(args: Args, contents: Contents) -> dict[str, Any]:
    return {"code": f"import os\nos.makedirs({args['path']!r}, exist_ok=True)\nprint('made')"}


def _run(args: Args, contents: Contents) -> dict[str, Any]:
    path = args["path"]
    if path.endswith(".sh"):
        return {"code": f"import subprocess\nsubprocess.run(['bash', {path!r}])"}
    beside = path.rpartition("/")[0] or "."
    ready = f"import runpy, sys\nsys.dont_write_bytecode = True\nsys.path.insert(0, {beside!r})\nsys.argv = [{path!r}]"
    return {"code": f"{ready}\nrunpy.run_path({path!r}, run_name='__main__')"}


def _python(args: Args, contents: Contents) -> dict[str, Any]:
    return {"code": shown_value(args["code"])}


def _write(args: Args, contents: Contents) -> dict[str, Any]:
    content = args["content"]
    return {"path": args["path"], "content": content if content.endswith("\n") else f"{content}\n"}


def _add_line(args: Args, contents: Contents) -> dict[str, Any]:
    """As whole new content, by which a second run changes nothing; and only if the file is still as it was read."""
    before = contents[args["path"]]
    text = _like_the_others(args["text"].strip("\n"), before)
    after = f"{before}{'' if before.endswith(chr(10)) or not before else chr(10)}{text}\n"
    return {"path": args["path"], "content": after, "expected_sha": _sha(before)}


def _add_first(args: Args, contents: Contents) -> dict[str, Any]:
    before = contents[args["path"]]
    return {"path": args["path"], "content": f"{args['text'].rstrip()}\n{before}", "expected_sha": _sha(before)}


def _add_any(args: Args, contents: Contents) -> dict[str, Any]:
    text = args["text"].strip("\n") + "\n"
    return {"code": f"with open({args['path']!r}, 'a') as file:\n    file.write({text!r})\nprint('added')"}


def _edit(args: Args, contents: Contents) -> dict[str, Any]:
    return {"path": args["path"], "old_text": args["old"], "new_text": args["new"]}


def _edit_line(args: Args, contents: Contents) -> dict[str, Any]:
    before = contents[args["path"]]
    lines = before.splitlines(keepends=True)
    at = next(place for place, line in enumerate(lines) if line.strip() == args["line"].strip())
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    ending = lines[at][len(lines[at].rstrip("\r\n")) :]
    new = (
        "\n".join(
            indent + part if part.strip() and not part.startswith(indent or "\0") else part
            for part in args["new"].strip("\n").split("\n")
        )
        if indent
        else args["new"].strip("\n")
    )
    new = _as_it_ended(lines[at].rstrip(), new.rstrip())
    after = "".join([*lines[:at], new + ending, *lines[at + 1 :]])
    return {"path": args["path"], "content": after, "expected_sha": _sha(before)}


def _remove_line(args: Args, contents: Contents) -> dict[str, Any]:
    before = contents[args["path"]]
    lines = before.splitlines(keepends=True)
    at = next(place for place, line in enumerate(lines) if line.strip() == args["line"].strip())
    return {"path": args["path"], "content": "".join(lines[:at] + lines[at + 1 :]), "expected_sha": _sha(before)}


def _replace(args: Args, contents: Contents) -> dict[str, Any]:
    before = contents[args["path"]]
    return {"path": args["path"], "content": before.replace(args["old"], args["new"]), "expected_sha": _sha(before)}


def _sort(args: Args, contents: Contents) -> dict[str, Any]:
    before = contents[args["path"]]
    after = "".join(f"{line}\n" for line in sorted(before.splitlines(), key=str.lower))
    return {"path": args["path"], "content": after, "expected_sha": _sha(before)}


def _search(args: Args, contents: Contents) -> dict[str, Any]:
    return {"pattern": re.escape(args["text"]).replace(r"\ ", " "), "ignore_case": True}


def _find(args: Args, contents: Contents) -> dict[str, Any]:
    return {"pattern": args["name"]}


def _same(args: Args, contents: Contents) -> dict[str, Any]:
    return dict(args)


def _changing(name: str, params: tuple[str, ...], about: str, needs: str, translate: Translate) -> LittleTool:
    return LittleTool(name, params, about, needs, translate, changes=True)


# Those without a sentence are not described to the model: they are offered only where a rule asks for them.
_READING = (
    LittleTool("list_dir", ("path",), "Show the names in a folder; . is the workspace.", "list_dir", _same),
    LittleTool("read_file", ("path",), "Show a file and how many lines it has.", "read_file", _same),
    LittleTool("search", ("text",), "Find the files that have this text.", "grep", _search),
    LittleTool("find_file", ("name",), "", "find_files", _find),
    LittleTool("python", ("code",), "Calculate; shows the value.", "run_python", _python),
)
_CHANGING = (
    _changing("run_file", ("path",), "Run a script and show what it prints.", "run_python", _run),
    _changing("write_file", ("path", "content"), "Make a new file, or replace a whole one.", "write_file", _write),
    _changing("add_line", ("path", "text"), "Add text to the end of a file.", "write_file", _add_line),
    _changing("add_first", ("path", "text"), "", "write_file", _add_first),
    _changing("add_any", ("path", "text"), "", "run_python", _add_any),
    _changing("edit_line", ("path", "line", "new"), "Put a new line in the place of one.", "write_file", _edit_line),
    _changing("remove_line", ("path", "line"), "", "write_file", _remove_line),
    _changing("replace", ("path", "old", "new"), "Replace words in a file.", "write_file", _replace),
    _changing("sort_lines", ("path",), "", "write_file", _sort),
    _changing("edit_file", ("path", "old", "new"), "", "edit_file", _edit),
    _changing("copy_file", ("path", "to"), "", "write_file", _copy),
    _changing("copy_any", ("path", "to"), "", "run_python", _copy_any),
    _changing("rename_file", ("path", "to"), "", "apply_patch", _move),
    _changing("delete_file", ("path",), "", "apply_patch", _delete),
    _changing("make_folder", ("path",), "", "run_python", _make_folder),
    _changing("remember", ("text",), "", "remember", _same),
)
LITTLE = (*_READING, *_CHANGING)
BY_NAME = {tool.name: tool for tool in LITTLE}
_SAMPLE = dict.fromkeys(("path", "to", "text", "name", "content", "line", "old", "new", "code"), "a") | {"new": "b"}


def usable(offered: Mapping[str, ToolSpec]) -> dict[str, LittleTool]:
    """Those that the offered tools can carry out; a program may have brought others of the same name."""
    return {tool.name: tool for tool in LITTLE if tool.needs in offered and _fits(tool, offered[tool.needs])}


def translated(tool: LittleTool, args: Args, contents: Contents, id: str) -> ToolCall:
    return ToolCall(id, tool.needs, msgspec.json.encode(tool.translate(args, contents)).decode())


def _fits(tool: LittleTool, spec: ToolSpec) -> bool:
    return not problems_of(translated(tool, {name: _SAMPLE[name] for name in tool.params}, {"a": "a\n"}, ""), spec)


_RUN = re.compile(r"runpy\.run_path\((.+), run_name=|subprocess\.run\(\['bash', (.+)\]\)")
_COPIED = re.compile(r"import shutil\nshutil\.copyfile\((.+), (.+)\)\n")
_MADE = re.compile(r"import os\nos\.makedirs\((.+), exist_ok=True\)\n")
_ADDED = re.compile(r"with open\((.+), 'a'\) as file:\n    file\.write\((.+)\)\nprint")
_MOVED = re.compile(r"\*\*\* Update File: (.+)\n\*\*\* Move to: (.+)\n\*\*\* End")
_DELETED = re.compile(r"\*\*\* Delete File: (.+)\n\*\*\* End")


def in_little(call: ToolCall) -> tuple[str, Args]:
    """The name and the arguments by which the model knows a call."""
    args = msgspec.json.decode(call.args or "{}")
    match call.name:
        case "run_python":
            return _program_in_little(str(args.get("code", "")))
        case "grep":
            return "search", {"text": re.sub(r"\\(.)", r"\1", str(args.get("pattern", "")))}
        case "find_files":
            return "find_file", {"name": args.get("pattern", "")}
        case "apply_patch":
            patch = str(args.get("patch", ""))
            if found := _MOVED.search(patch):
                return "rename_file", {"path": found[1], "to": found[2]}
            if found := _DELETED.search(patch):
                return "delete_file", {"path": found[1]}
        case "edit_file":
            named = {"path": "path", "old_text": "old", "new_text": "new"}
            return call.name, {named[name]: value for name, value in args.items() if name in named}
        case "write_file":
            return call.name, {name: value for name, value in args.items() if name != "expected_sha"}
    return call.name, args


def _program_in_little(code: str) -> tuple[str, Args]:
    if found := _RUN.search(code):
        return "run_file", {"path": ast.literal_eval(found[1] or found[2])}
    if found := _COPIED.match(code):
        return "copy_any", {"path": ast.literal_eval(found[1]), "to": ast.literal_eval(found[2])}
    if found := _MADE.match(code):
        return "make_folder", {"path": ast.literal_eval(found[1])}
    if found := _ADDED.match(code):
        return "add_any", {"path": ast.literal_eval(found[1]), "text": ast.literal_eval(found[2])}
    return "python", {"code": code}


_ITEM = re.compile(r"\s*(?:[-*+•]|(\d+)[.)])\s+(?:\[[ xX]\]\s+)?")


def _like_the_others(text: str, before: str) -> str:
    """A line for a list, with the mark that the line before it has."""
    lines = [line for line in before.splitlines() if line.strip()]
    mark = _ITEM.match(lines[-1]) if lines else None
    if not mark or _ITEM.match(text):
        return text
    shown = mark[0].replace("[x]", "[ ]").replace("[X]", "[ ]")
    return (shown.replace(mark[1], str(int(mark[1]) + 1), 1) if mark[1] else shown) + text.strip()


def _as_it_ended(old: str, new: str) -> str:
    """With the comma or colon that the line had."""
    for end in (",", ":", ";"):
        if old.endswith(end) and not new.endswith(end):
            return new + end
    return new[:-1] if new.endswith(",") and not old.endswith(",") else new


def _sha(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()[:16]
