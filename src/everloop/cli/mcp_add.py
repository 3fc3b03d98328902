"""`everloop mcp add`, `import` and `login`: what is given, what is asked, and what is shown before anything is kept."""

import argparse
import getpass
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ..app.mcp_desk import McpDesk
from ..app.mcp_opening import log_in_here, open_mcp_desk
from ..errors import EverloopError, SettingsError
from ..ports.mcp_rows import McpReview
from ..readings.visible import in_one_line, visible
from ..settings.mcp_forms import servers_in
from ..settings.unused import is_off
from .mcp_words import EFFECTS, is_sure, tools_table
from .parser import Parser
from .terminal import Terminal, WrongUse, show_prompt

PASTED = "http://127.0.0.1:8976/callback"
LOGS_IN = "{name} wants a login before it tells what it offers: it is set up, and then: everloop mcp login {name}"
LEFT_OFF = "{name}: it is switched off there, and left; to take it over all the same: everloop mcp import {file} {name}"
WISHES = "{name} is, as {file} has it, to {wishes}."
REPLACED = "It takes the place of the {name} that is set up, with what was allowed of that, and said of its effects."
NOT_SET = "Nothing was set up."
LONGEST_FILE = 1_000_000  # bytes


def add_arguments(word: argparse.ArgumentParser) -> None:
    assert isinstance(word, Parser)
    word.others = "; what a command is given stands behind --: NAME -- COMMAND"
    word.add_argument("name", metavar="NAME", help="what you call it; its tools are called mcp_NAME_…")
    word.add_argument("what", metavar="URL | -- COMMAND …", nargs="+", help="its address, or what runs it")
    word.add_argument(
        "--env", metavar="KEY[=VALUE]", action="append", default=[], help="a variable for a command; asked unseen alone"
    )
    word.add_argument(
        "--header", metavar="NAME[: VALUE]", action="append", default=[], help="a header for an address; as above"
    )
    word.add_argument("--transport", choices=("auto", "stdio", "http", "sse"), help="http is meant for an address")
    word.add_argument("--network", metavar="HOST", action="append", default=[], help="a host that a command may reach")
    word.add_argument("--workspace", action="store_true", help="let a command see your workspace")
    word.add_argument("--no-sandbox", action="store_true", help="run a command with all that you may do yourself")
    word.add_argument("--timeout", metavar="SECONDS", type=float, help="the most that one call may take")
    word.add_argument("--tools", metavar="PATTERN", action="append", default=[], help="offer only these of its tools")
    word.add_argument(
        "--permission", choices=("guest", "user", "admin", "owner"), help="the lowest role that may use it; else owner"
    )
    word.add_argument(
        "--effect", metavar="TOOL=EFFECT", action="append", default=[], help=f"what tools do: {', '.join(EFFECTS)}"
    )
    word.add_argument("--sampling", action="store_true", help="let it have a model asked")
    word.add_argument("--client-id", metavar="ID", help="who everloop is where one logs in; else it registers itself")
    word.add_argument("--scope", metavar="SCOPE", action="append", default=[], help="what is asked for at a login")
    word.add_argument("--yes", action="store_true", help="do not ask")


def add_import_arguments(word: argparse.ArgumentParser) -> None:
    word.add_argument("file", metavar="FILE", help='a JSON file with "mcpServers"; - is stdin')
    word.add_argument("names", metavar="NAME", nargs="*", help="only these of them")
    word.add_argument("--yes", action="store_true", help="do not ask")


def table_of(given: argparse.Namespace) -> dict[str, Any]:
    """The settings of a server, as they were typed. Raises WrongUse."""
    url = given.what[0] if len(given.what) == 1 and "://" in given.what[0] else ""
    if url and (given.env or given.workspace or given.no_sandbox or given.network):
        raise WrongUse("--env, --network, --workspace and --no-sandbox are for a command, and this is an address")
    if not url and given.header:
        raise WrongUse("--header is for an address, and this is a command; it is given --env")
    table: dict[str, Any] = {"url": url} if url else {"command": given.what[0], "args": given.what[1:]}
    login = {"client_id": given.client_id, "scopes": given.scope}
    more = {
        "env": dict(_pair(each, "=") for each in given.env),
        "headers": dict(_pair(each, ":") for each in given.header),
        "transport": given.transport,
        "network": given.network,
        "workspace": given.workspace,
        "sandbox": False if given.no_sandbox else None,
        "timeout": given.timeout,
        "tools": given.tools,
        "permission": given.permission,
        "effects": dict(_effect(each) for each in given.effect),
        "sampling": given.sampling,
        "oauth": {key: value for key, value in login.items() if value},
    }
    return table | {key: value for key, value in more.items() if value or (value is False and key == "sandbox")}


def _pair(text: str, mark: str) -> tuple[str, str]:
    """What stands behind the mark may be a secret, and is never quoted; where nothing stands, it is asked for."""
    name, found, value = text.partition(mark)
    if not found and mark == ":":
        name, found, value = text.partition("=")
    if not name.strip():
        raise WrongUse("a variable is given as KEY=VALUE, a header as NAME: VALUE")
    return name.strip(), value.strip() if found else _unseen(name.strip())


def _unseen(name: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().strip()
    try:
        return getpass.getpass(f"{visible(name)}: ").strip()
    except EOFError:
        return ""


def _effect(text: str) -> tuple[str, str]:
    tool, found, effect = text.rpartition("=")
    if not found or not tool or effect not in EFFECTS:
        raise WrongUse(f"an effect is given as TOOL=EFFECT, where EFFECT is {' or '.join(EFFECTS)}")
    return tool, effect


def servers_of(given: argparse.Namespace) -> dict[str, Any]:
    """The servers of another client's file. Raises EverloopError."""
    try:
        data = sys.stdin.buffer.read() if given.file == "-" else Path(given.file).read_bytes()
        if len(data) > LONGEST_FILE:
            raise EverloopError(f"{given.file} is too large for a file of MCP servers")
        found = servers_in(msgspec.json.decode(data))
    except OSError as error:
        raise EverloopError(f"{given.file} cannot be read ({error.strerror})") from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise EverloopError(f"{given.file} is no JSON ({error}); comments have to be taken out") from error
    except SettingsError as error:
        raise EverloopError(f"{given.file}: {error}") from error
    if not found:
        raise EverloopError(f"{given.file} names no MCP server")
    if missing := [name for name in given.names if name not in found]:
        raise EverloopError(f"{given.file} has no server {missing[0]!r}; it has: {', '.join(found)}")
    return {name: found[name] for name in given.names or found}


async def add(given: argparse.Namespace, table: Mapping[str, Any], terminal: Terminal) -> int:
    async with open_mcp_desk() as desk:
        return await _set_up(desk, given.name, table, given.yes, terminal)


async def add_from(given: argparse.Namespace, servers: Mapping[str, Any], terminal: Terminal) -> int:
    """One that cannot be set up keeps no other from it."""
    failed = 0
    async with open_mcp_desk() as desk:
        for name, table in servers.items():
            if not given.names and isinstance(table, Mapping) and is_off(dict(table)):
                terminal.note(LEFT_OFF.format(name=in_one_line(name), file=in_one_line(given.file)))
                continue
            try:
                failed += await _take_over(desk, name, table if isinstance(table, Mapping) else {}, given, terminal)
            except WrongUse:
                raise
            except EverloopError as error:
                terminal.tell(visible(f"{name}: {error}"))
                failed += 1
    return 1 if failed else 0


async def _take_over(
    desk: McpDesk, name: str, table: Mapping[str, Any], given: argparse.Namespace, terminal: Terminal
) -> int:
    """Who wrote the file may be a stranger: what it wants of this machine is agreed to before the server is begun."""
    if wishes := desk.setup.wishes(name, table):
        file, wanted = in_one_line(given.file), in_one_line("; to ".join(wishes))
        terminal.tell(WISHES.format(name=name, file=file, wishes=wanted))
        if not is_sure(f"Look at {name} with that? [y/N] ", given.yes):
            terminal.answer(NOT_SET)
            return 1
    return await _set_up(desk, name, table, given.yes, terminal)


async def _set_up(desk: McpDesk, name: str, table: Mapping[str, Any], yes: bool, terminal: Terminal) -> int:
    try:
        if (question := desk.setup.question(name, table)) and not is_sure(f"{question} [y/N] ", yes):
            terminal.answer(NOT_SET)
            return 1
        terminal.status(f"looking at {in_one_line(name)} …")
        table = await desk.setup.install(name, table)
        review = await desk.setup.review(name, table)
        _show(review, terminal)
        if await desk.is_there(name):
            terminal.note(REPLACED.format(name=name))
        if not is_sure(f"Set up {in_one_line(name)}{_and_allow(review)}? [y/N] ", yes):
            terminal.answer(NOT_SET)
            return 1
        shown = await desk.add(name, table, review.pin)
    finally:
        await desk.setup.discard(name)
    told = f" {_allowed(shown.server.allowed)}" if shown.tools else ""
    terminal.answer(f"{name} is set up.{told}")
    return 0


def _show(review: McpReview, terminal: Terminal) -> None:
    called = f", which calls itself {in_one_line(review.title)} {in_one_line(review.version)}" if review.title else ""
    terminal.note(f"{review.name}: {in_one_line(review.where)}{called}")
    for secret in review.secrets:
        terminal.note(f"Kept in the vault: {secret}")
    terminal.note(tools_table(review.tools) if review.tools else LOGS_IN.format(name=review.name))


def _and_allow(review: McpReview) -> str:
    fresh = [each.is_tool for each in review.tools if each.state == "new"]
    tools = {0: "", 1: "this tool"}.get(sum(fresh), f"these {sum(fresh)} tools")
    wanted = " and ".join(filter(None, (tools, "" if all(fresh) else "what it has to read")))
    return f" and allow {wanted}" if wanted else ""


def _allowed(number: int) -> str:
    return f"{number} of its tools {'is' if number == 1 else 'are'} allowed."


async def log_in(name: str, paste: bool, terminal: Terminal) -> int:
    async def show(url: str) -> None:
        terminal.tell(f"Open this in a browser, and log in there:\n{in_one_line(url)}")

    async def pasted() -> str:
        if not sys.stdin.isatty():
            raise WrongUse("the address is pasted at a terminal")
        show_prompt("Then paste the address that the browser shows: ")
        return sys.stdin.readline().strip()

    async with open_mcp_desk() as desk:
        shown = await (desk.log_in(name, PASTED, show, pasted) if paste else log_in_here(desk, name, show))
    terminal.answer(f"You are logged in to {name}. {_allowed(shown.server.allowed)}")
    return 0
