"""Whatever a user can type, set or see is in the documentation, and what stands there is so."""

import argparse
import ast
import inspect
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Struct

import everloop
from everloop.app.tools import build_tools
from everloop.bus.local import LocalBus
from everloop.cli import build_parser
from everloop.core import log
from everloop.core.people import Role
from everloop.core.thread import Thread
from everloop.core.tool import Effect, Risk, ToolSpec
from everloop.core.turn import Finished
from everloop.files.folder import Folder
from everloop.gateway.access.scopes import SCOPES
from everloop.gateway.ws import frames
from everloop.ports.audit import DEEDS
from everloop.ports.events import Event, TurnEnded
from everloop.ports.tools import Tool
from everloop.providers.catalog import HOSTS
from everloop.readings.commands import COMMANDS
from everloop.settings import (
    AccountSection,
    PersonaSection,
    PolicyRuleSection,
    Preset,
    PriceSection,
    ProfileSection,
    Settings,
    Stance,
    Tools,
    load,
)
from everloop.settings.mcp import McpServerSection
from everloop.tools.decorator import tool

NAMED = {
    "accounts": AccountSection,
    "mcp_servers": McpServerSection,
    "models": Preset,
    "personas": PersonaSection,
    "prices": PriceSection,
    "profiles": ProfileSection,
}
ROOT = Path(__file__).parents[1]
REFERENCE = (ROOT / "docs" / "reference.md").read_text()
TOOLS = (ROOT / "docs" / "tools.md").read_text()
LOG = (ROOT / "docs" / "log.md").read_text()
WEBSOCKET = (ROOT / "docs" / "websocket.md").read_text()
GATEWAY = (ROOT / "docs" / "gateway.md").read_text()

NEVER_ASKED: Any = object()  # a store that only has to be there


def missing(names: Iterable[str], text: str) -> list[str]:
    """Those of the names that do not stand in the text as code."""
    words = {word for code in re.findall(r"`([^`\n]+)`", text) for word in (code, *code.split())}
    return [name for name in names if name not in words]


def test_a_name_that_is_not_documented_is_missing():
    assert missing(["-m", "--json", "--jso", "plain"], "`-m` TEXT, `--json`, plain") == ["--jso", "plain"]


def specs(folder: Path) -> dict[str, ToolSpec]:
    """Every tool that a house can have."""
    chosen = load(folder, {}, {"tools": {"web": {"search": {"url": "http://search.example"}}}})
    files = Folder(folder / "files")
    never = dict.fromkeys(("store", "keeper", "credentials", "facts", "clerk", "specs"), NEVER_ASKED)
    made = build_tools(folder, folder / "ws", chosen, files, LocalBus(), 8000, **never)
    return {tool.spec.name: tool.spec for tool in (*made.tools, *made.personal)}


def test_every_tool_is_documented_with_its_effect_and_its_permission(tmp_path):
    table = re.findall(r"^\| `(\w+)` \| (.+) \| (\w+) \| (\w+) \| ([^|]+) \|$", TOOLS, re.MULTILINE)
    assert {name: (effect, role) for name, _, effect, role, _ in table} == {
        name: (spec.effect.value, spec.permission.name.lower()) for name, spec in specs(tmp_path).items()
    }
    assert missing(specs(tmp_path), _section("Tools")) == []


def test_every_parameter_of_a_tool_is_documented_where_the_tool_is(tmp_path):
    for name, spec in specs(tmp_path).items():
        (row,) = re.findall(rf"^\| `{name}` \|.*$", TOOLS, re.MULTILINE)
        assert missing(spec.schema["properties"], row) == []


def test_every_effect_role_and_stance_is_documented():
    assert missing(Effect, TOOLS) == missing((role.name.lower() for role in Role), TOOLS) == []
    assert missing(PolicyRuleSection.__struct_fields__, REFERENCE) == missing(get_args(Stance), REFERENCE) == []


def test_every_option_of_the_decorator_is_documented():
    options = inspect.signature(tool).parameters.keys() - {"effect", "local"}  # `local` is for what is built in
    assert missing(options, TOOLS.split("## A tool of your own")[1]) == []


def test_the_settings_of_tools_are_in_the_example(tmp_path):
    (example,) = re.findall(r"```toml\n(\[tools\]\n.*?)```", TOOLS, re.DOTALL)
    (tmp_path / "config.toml").write_text(example)
    chosen = load(tmp_path, {"MY_BRAVE_KEY": "any"}).tools
    assert chosen.policy == (PolicyRuleSection("exec*", "high", "ask"),)
    names = [name for name, _ in settings(Tools) if name != "restrict_to_workspace"]
    names = [name for name in names if not name.startswith("mcp_servers")]
    written = set(re.findall(r"^(?:\[+)?([\w.]+)", example, re.MULTILINE))
    assert [name for name in names if not {name.rpartition(".")[2], f"tools.{name}"} & written] == ["web.search.url"]


def test_the_example_of_a_plugin_is_shown_as_it_is():
    folder = ROOT / "examples" / "weather_tool"
    assert (folder / "weather_tool.py").read_text() in TOOLS
    points = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["entry-points"]
    (shown,) = [code for code in re.findall(r"```toml\n(.*?)```", TOOLS, re.DOTALL) if "entry-points" in code]
    assert tomllib.loads(shown) == {"project": {"entry-points": points}}


def test_the_tools_of_ones_own_are_what_is_said_of_them():
    (code,) = [code for code in re.findall(r"```python\n(.*?)```", TOOLS, re.DOTALL) if "everloop.open" in code]
    made: dict[str, Any] = {}
    exec(code, made)
    found = {name: each.spec for name, each in made.items() if isinstance(each, Tool)}
    assert {name: (spec.effect, spec.permission, spec.guarded) for name, spec in found.items()} == {
        "stock": (Effect.READ, Role.USER, False),
        "order": (Effect.KEYED, Role.ADMIN, True),
        "send": (Effect.UNSAFE, Role.OWNER, False),
    }
    risks = [found["send"].risk({"to": to}, Thread()) for to in ("all", "ann")]
    assert risks == [Risk("high", leaves=True, why="it goes to everyone"), Risk("low")]


def options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield name
                yield from options(command)


def test_every_command_and_option_is_documented():
    assert missing(options(build_parser()), REFERENCE) == []


def test_every_deed_of_the_audit_is_documented():
    text = (ROOT / "docs" / "audit.md").read_text()
    assert [deed for deed in DEEDS if f"`{deed}`" not in text] == []


def settings(shape: type[Struct], path: str = "") -> Iterator[tuple[str, Any]]:
    """Each setting as people write it, with its default."""
    for field in msgspec.structs.fields(shape):
        if field.name == "wrong":  # is noted by whoever reads a server's table
            continue
        if isinstance(field.type, type) and issubclass(field.type, Struct):
            yield from settings(field.type, f"{path}{field.name}.")
        elif field.name in NAMED:
            yield from settings(
                NAMED[field.name], f"{path}<name>." if field.name == "accounts" else f"{path}{field.name}.<name>."
            )
        else:
            default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
            yield f"{path}{field.name}", default


def test_every_setting_is_documented_with_its_default():
    rows = [f"| `{name}` | `{msgspec.json.encode(default).decode()}` |" for name, default in settings(Settings)]
    assert [row for row in rows if row not in REFERENCE] == []


def test_every_documented_setting_exists():
    documented = re.findall(r"^\| `([\w.<>]+)` \| `[^`]*` \|", _section("Settings").split("###")[0], re.MULTILINE)
    assert sorted(documented) == sorted(name for name, _ in settings(Settings))


def _section(title: str) -> str:
    return REFERENCE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_every_slash_command_is_documented():
    assert missing(COMMANDS, REFERENCE) == []


def test_every_host_is_documented():
    assert missing(HOSTS, REFERENCE) == []
    assert missing([host.key_variable for host in HOSTS.values() if host.key_variable and host.model], REFERENCE) == []


def test_every_public_name_is_documented():
    assert missing(everloop.__all__, REFERENCE) == []


def test_the_map_names_every_room_and_nothing_else():
    package = Path(everloop.__file__).parent
    rooms = {path.parent.name for path in package.glob("*/__init__.py")}
    mapped = re.findall(r"^  (\w+)/ ", (ROOT / "AGENTS.md").read_text(), re.MULTILINE)
    assert sorted(mapped) == sorted(rooms)


@pytest.mark.parametrize("event", get_args(Event), ids=lambda event: event.name)
def test_every_event_is_documented_with_what_it_tells(event):
    (row,) = re.findall(rf"^\| `{event.name}` \| (.*?) \|", _section("Events"), re.MULTILINE)
    told = TurnEnded("t", 1, Finished(1, 1, "", "", ())).data if event is TurnEnded else event.__struct_encode_fields__
    assert re.findall(r"`(\w+)`", row) == [name for name in told if name not in ("thread", "seq", "n")]


KINDS = {kind.__struct_config__.tag: kind for kind in get_args(log.Entry)}


def test_the_stored_kinds_are_documented_and_no_others():
    assert re.findall(r"^### `(\w+)`$", LOG, re.MULTILINE) == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_kind_is_documented_with_its_fields_and_a_true_example(kind):
    section = LOG.split(f"\n### `{kind}`\n")[1].split("\n### ")[0]
    assert missing(KINDS[kind].__struct_fields__, section.split("```")[0]) == []
    (example,) = re.findall(r"```json\n(.*)\n```", section)
    entry = log.decode(example)
    assert isinstance(entry, KINDS[kind])
    assert log.encode(entry).decode() == example


def test_every_frame_that_a_client_may_send_is_documented_with_its_fields_and_scope():
    for kind in get_args(frames.Frame):
        name = kind.__struct_config__.tag
        assert missing([name, *kind.__struct_fields__], WEBSOCKET) == []
        assert f"| `{name}` | `{frames.NEEDS[kind]}` |" in WEBSOCKET
    assert missing(frames.File.__struct_fields__, WEBSOCKET) == []


def test_every_frame_that_a_client_is_sent_is_documented_with_its_fields():
    """As the source makes them: `frame("…", where, id=…)`."""
    for name, fields in sent_frames().items():
        (row,) = re.findall(rf"^\| `{name}` \| (.*?) \| .*$", WEBSOCKET, re.MULTILINE)
        assert missing(fields, row) == []
    assert {"ack", "stream_chunk", "response", "approval", "error"} < sent_frames().keys()


def sent_frames() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for file in (Path(everloop.__file__).parent / "gateway" / "ws").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            match node:
                case ast.Call(func=ast.Name("frame"), args=[ast.Constant(str(name)), *_], keywords=keywords):
                    found.setdefault(name, set()).update(each.arg for each in keywords if each.arg)
    return found


def test_every_scope_is_documented():
    table = re.findall(r"^\| `(\w+)` \| (.+) \|$", GATEWAY, re.MULTILINE)
    assert [row for row in SCOPES.items() if row not in table] == []


def test_the_two_commands_of_the_readme_are_in_the_makefile():
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    for command in ("run", "test"):
        assert f"\nmake {command} " in readme
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)


def test_the_changelog_and_the_package_know_the_version():
    assert f"\n## {everloop.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert f'\nversion = "{everloop.__version__}"\n' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize(
    "page",
    ["README.md", "AGENTS.md", "CHANGELOG.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))],
)
def test_a_link_leads_somewhere(page):
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text())
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []
    parts = re.findall(r"\]\(([\w./-]*\.md|)#([^)]+)\)", (ROOT / page).read_text())
    pages = [(f"{to}#{part}", (ROOT / page).parent / to if to else ROOT / page, part) for to, part in parts]
    assert [link for link, path, part in pages if part not in _headings(path.read_text())] == []


def _headings(text: str) -> set[str]:
    """As links name them: in small letters, with dashes for blanks and without any other mark."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
