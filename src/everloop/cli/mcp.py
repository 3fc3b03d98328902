"""`everloop mcp`: servers whose tools the agent uses; and everloop as one."""

import argparse
import sys
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec

from ..app.mcp_desk import McpDesk
from ..app.mcp_opening import open_mcp_answers, open_mcp_desk
from ..core.people import OWNER
from ..core.tool import Effect
from ..errors import EverloopError
from ..ports.mcp_rows import McpRow, McpShown, McpToolRow
from ..ports.tools import Shown
from ..readings.visible import in_one_line, visible
from . import mcp_add
from .mcp_serve import serve
from .mcp_words import EFFECTS, STATES, is_sure, tool_lines
from .table import table, to_json
from .terminal import Terminal, WrongUse

MORE = (
    "`add` looks at a server before anything is written, shows its tools and asks; secrets go to the vault. What was "
    "allowed is kept byte by byte: a tool that has become another is not offered until `allow` has shown you the "
    "difference. A command runs in the sandbox, without a network unless you name hosts. In a script say --yes."
)
HEADS = ("NAME", "STATE", " ALLOWED", " CHANGED", " NEW", "FOR", "WHERE")
NONE_SET = "No MCP server is set up. `everloop mcp add NAME -- COMMAND` or `everloop mcp add NAME URL` sets one up."
NOTHING_TO_ALLOW = "All that {name} offers is allowed already."
NOTHING_ALLOWED = "Nothing was allowed."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    words.add_parser("serve", help="be a server: for a client that starts this and speaks by stdin and stdout")
    listing = words.add_parser("list", help="all that are set up, and how each stands (the default)")
    add = words.add_parser("add", help="look at a server, show its tools, ask, and set it up")
    show = words.add_parser("show", help="one of them: its tools, their effects, and what has changed")
    allow = words.add_parser("allow", help="show what has changed or is new, and allow it")
    deny = words.add_parser("deny", help="allow tools no longer")
    test = words.add_parser("test", help="call a tool, to try it; without one, see whether the server answers")
    login = words.add_parser("login", help="log in to a server that wants it, in a browser")
    logout = words.add_parser("logout", help="forget that login")
    install = words.add_parser("install", help="fetch the package that an npx or uvx command of the settings runs")
    remove = words.add_parser("remove", help="take one out of the settings, with all that is its own")
    answer = words.add_parser("answer", help="answer what a server asks you in the middle of a call, or decline")
    answer.add_argument("id", metavar="ID", nargs="?", default="", help="of the question; without: what is asked")
    answer.add_argument("answer", metavar="ANSWER", nargs="*", help="as the question says; or: decline")
    mcp_add.add_arguments(add)
    mcp_add.add_import_arguments(words.add_parser("import", help="set up servers of another client's JSON file"))
    for word in (show, allow, deny, test, login, logout, install, remove):
        word.add_argument("name", metavar="NAME", help="as `everloop mcp list` has it")
    for word in (listing, show):
        word.add_argument("--json", action="store_true", help="print one JSON object instead")
        word.add_argument("--offline", action="store_true", help="ask no server: tell what is known without that")
    for word in (allow, deny):
        word.add_argument("tools", metavar="TOOL", nargs="*", help="only these; without any, all")
    allow.add_argument("--effect", choices=EFFECTS, help="your word on what they do; without one: unsafe")
    test.add_argument("tool", metavar="TOOL", nargs="?", default="", help="as the server calls it")
    test.add_argument("args", metavar="JSON", nargs="?", default="{}", help="its arguments, one JSON object")
    login.add_argument("--paste", action="store_true", help="the browser is on another machine: paste its address")
    for word in (allow, deny, install, remove):
        word.add_argument("--yes", action="store_true", help="do not ask")


def run(arguments: argparse.Namespace) -> Coroutine[Any, Any, int]:
    terminal = Terminal(sys.stdout, sys.stderr)
    match arguments.word:
        case "serve":
            return serve(terminal)
        case "add":
            return mcp_add.add(arguments, mcp_add.table_of(arguments), terminal)
        case "import":
            return mcp_add.add_from(arguments, mcp_add.servers_of(arguments), terminal)
        case "list":
            return _list(arguments, terminal)
        case "test":
            return _test(arguments.name, arguments.tool, _object(arguments.args), terminal)
        case "answer":
            return _answer(arguments.id, " ".join(arguments.answer), terminal)
        case "login":
            return mcp_add.log_in(arguments.name, arguments.paste, terminal)
        case word:
            return _do(word, arguments, terminal)


async def _do(word: str, given: argparse.Namespace, terminal: Terminal) -> int:
    async with open_mcp_desk() as desk:
        match word:
            case "show":
                shown = await (desk.show(given.name) if given.offline else desk.look(given.name))
                terminal.answer(to_json(shown) if given.json else _shown_text(shown))
                return 0
            case "allow":
                return await _allow(desk, given, terminal)
            case "deny":
                return await _deny(desk, given, terminal)
            case "logout":
                was = await desk.log_out(given.name)
                terminal.answer(
                    f"The login to {given.name} is forgotten." if was else f"There is no login to {given.name}."
                )
                return 0
            case "install":
                return await _install(desk, given, terminal)
            case _:
                return await _remove(desk, given, terminal)


async def _list(given: argparse.Namespace, terminal: Terminal) -> int:
    async with open_mcp_desk() as desk:
        if not given.offline:
            terminal.status("asking the servers …")
        rows = await (desk.rows() if given.offline else desk.check())
    if given.json:
        terminal.answer(to_json({"servers": rows}))
    elif not rows:
        terminal.answer(NONE_SET)
    else:
        terminal.answer(table(HEADS, [_row(each) for each in rows]))
        for each in rows:
            if told := " ".join(_as_sentence(part) for part in (each.why, each.todo) if part):
                terminal.tell(visible(f"{each.name}: {told}"))
    return 0


def _as_sentence(text: str) -> str:
    return text if text[-1] in ".?!" else f"{text}."


def _row(each: McpRow) -> tuple[str, ...]:
    counts = (str(each.allowed), str(each.changed), str(each.new) if each.is_known else "?")
    return each.name, _state(each), *counts, each.permission, each.where


def _state(row: McpRow) -> str:
    return f"{STATES[row.state]}, logged in" if row.login == ("kept",) else STATES[row.state]


def _shown_text(shown: McpShown) -> str:
    row = shown.server
    confined = "" if row.sandbox else ", WITHOUT A SANDBOX"
    reach = f", reaching {', '.join(row.network)}" if row.network else ""
    seen = ", with your workspace" if row.workspace else ""
    lines = [
        f"{row.name}: {_state(row)}, for {row.permission}s",
        f"{row.transport}: {row.where}{reach}{seen}{confined}",
    ]
    lines += (
        [f"It calls itself {in_one_line(shown.title)} {in_one_line(shown.version)}".rstrip()] if shown.title else []
    )
    lines += [_as_sentence(each) for each in (row.why, row.todo) if each]
    for tool in shown.tools:
        lines += ["", *tool_lines(tool)]
    return visible("\n".join(lines))


async def _allow(desk: McpDesk, given: argparse.Namespace, terminal: Terminal) -> int:
    shown = await desk.look(given.name)
    wanted = _wanted(shown, given.tools, given.effect)
    if not wanted:
        terminal.answer(NOTHING_TO_ALLOW.format(name=given.name))
        return 0
    for each in wanted:
        terminal.note("\n".join(tool_lines(each)) + "\n")
    if not is_sure(f"Allow {', '.join(in_one_line(each.tool) for each in wanted)}? [y/N] ", given.yes):
        terminal.answer(NOTHING_ALLOWED)
        return 1
    effect = Effect(given.effect) if given.effect else None
    await desk.allow(given.name, {each.tool: each.digest for each in wanted}, effect)
    terminal.answer(f"Allowed of {given.name}: {', '.join(in_one_line(each.tool) for each in wanted)}")
    return 0


def _wanted(shown: McpShown, named: Sequence[str], effect: str | None) -> list[McpToolRow]:
    """What is to be looked at; with an effect, also what is allowed already with another. Raises EverloopError."""
    rows = {each.tool: each for each in shown.tools}
    if missing := [name for name in named if name not in rows]:
        raise EverloopError(
            f"{shown.server.name} has no tool {missing[0][:100]!r}; it has: {', '.join(rows) or 'none'}"
        )
    if named:
        return [rows[name] for name in named if rows[name].state != "allowed" or effect]
    waiting = ("changed", "setup", "new")
    return [each for each in rows.values() if each.state in waiting or _is_given_another(each, effect)]


def _is_given_another(tool: McpToolRow, effect: str | None) -> bool:
    return bool(effect and tool.state == "allowed" and tool.name and tool.effect.value != effect)


async def _deny(desk: McpDesk, given: argparse.Namespace, terminal: Terminal) -> int:
    if not given.tools and not is_sure(f"Allow nothing of {given.name} any more? [y/N] ", given.yes):
        terminal.answer("All stays as it was.")
        return 1
    await desk.deny(given.name, given.tools or None)
    what = ", ".join(map(in_one_line, given.tools)) or "anything"
    terminal.answer(f"Not allowed any more of {given.name}: {what}")
    return 0


async def _test(name: str, tool: str, args: dict[str, Any], terminal: Terminal) -> int:
    async with open_mcp_desk() as desk:
        if not tool:
            shown = await desk.look(name)
            tools = ", ".join(in_one_line(each.tool) for each in shown.tools if each.is_tool)
            terminal.answer(f"{name} answers. Its tools: {tools or 'none'}")
            return 0
        result = await desk.test(name, tool, args)
    told = result if isinstance(result, Shown) else Shown(result)
    terminal.answer(visible(told.text))
    for picture in told.pictures:
        terminal.note(f"[{picture.mime}, {len(picture.data):,} bytes]")
    return 0


async def _answer(id: str, line: str, terminal: Terminal) -> int:
    async with open_mcp_answers() as answers:
        told = await (answers.answer(id, line, OWNER) if id else answers.listed(OWNER))
    terminal.answer(visible(told))
    return 0


async def _install(desk: McpDesk, given: argparse.Namespace, terminal: Terminal) -> int:
    question = await desk.setup.question_again(given.name)
    if question and not is_sure(f"{question} [y/N] ", given.yes):
        terminal.answer("Nothing was installed.")
        return 1
    terminal.status("installing …")
    await desk.setup.install_again(given.name)
    terminal.answer(f"What {given.name} runs is installed. See: everloop mcp show {given.name}")
    return 0


async def _remove(desk: McpDesk, given: argparse.Namespace, terminal: Terminal) -> int:
    await desk.show(given.name)
    if not is_sure(f"Take {given.name} out of the settings, with all that is its own? [y/N] ", given.yes):
        terminal.answer("Nothing was removed.")
        return 1
    left = await desk.setup.remove(given.name)
    terminal.answer(f"{given.name} is removed, with its tools, its login and its folder.")
    for each in left:
        terminal.note(f"The secret {each} is not its own alone, and stays: everloop secrets forget {each}")
    return 0


def _object(text: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise WrongUse(f'the arguments are no JSON ({error}); write one object, as \'{{"path": "a"}}\'') from error
    if not isinstance(found, dict):
        raise WrongUse('the arguments must be one JSON object, as \'{"path": "a"}\'')
    return found
