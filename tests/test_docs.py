"""Whatever a user can type, set or see is in the documentation, and what stands there is so."""

import argparse
import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Struct

import everloop
from everloop.cli import build_parser
from everloop.core import log
from everloop.files.folder import Folder
from everloop.providers.catalog import HOSTS
from everloop.runtime.commands import COMMANDS
from everloop.settings import Account, Preset, Price, Settings
from everloop.tools.files import workspace_tools

NAMED = {"accounts": Account, "models": Preset, "prices": Price}
ROOT = Path(__file__).parents[1]
REFERENCE = (ROOT / "docs" / "reference.md").read_text()
LOG = (ROOT / "docs" / "log.md").read_text()


def missing(names: Iterable[str], text: str) -> list[str]:
    """Those of the names that do not stand in the text as code."""
    words = {word for code in re.findall(r"`([^`\n]+)`", text) for word in (code, *code.split())}
    return [name for name in names if name not in words]


def test_a_name_that_is_not_documented_is_missing():
    assert missing(["-m", "--json", "--jso", "plain"], "`-m` TEXT, `--json`, plain") == ["--jso", "plain"]


def test_every_tool_is_documented(tmp_path):
    tools = workspace_tools(tmp_path, Folder(tmp_path / "files"))
    rows = [f"| `{tool.spec.name}` | {tool.spec.effect} |" for tool in tools]
    assert [row for row in rows if row not in REFERENCE] == []
    assert missing([name for tool in tools for name in tool.spec.schema["properties"]], REFERENCE) == []


def options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield name
                yield from options(command)


def test_every_command_and_option_is_documented():
    assert missing(options(build_parser()), REFERENCE) == []


def settings(shape: type[Struct], path: str = "") -> Iterator[tuple[str, Any]]:
    """Each setting as people write it, with its default."""
    for field in msgspec.structs.fields(shape):
        if isinstance(field.type, type) and issubclass(field.type, Struct):
            yield from settings(field.type, f"{path}{field.name}.")
        elif field.name in NAMED:
            yield from settings(
                NAMED[field.name], f"{path}<name>." if field.name == "accounts" else f"{field.name}.<name>."
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


def events() -> set[str]:
    """The names in `Event("…", …)` and `self._publish(book, "…", …)`, as the source has them."""
    found = set()
    for file in Path(everloop.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            match node:
                case ast.Call(func=ast.Name("Event"), args=[ast.Constant(str(name)), *_]):
                    found.add(name)
                case ast.Call(func=ast.Attribute(attr="_publish"), args=[_, ast.Constant(str(name)), *_]):
                    found.add(name)
    return found


def test_every_event_is_documented():
    assert events() >= {"stream_chunk", "thinking_finished", "answer"}
    assert missing(events(), _section("Events")) == []


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
