"""The doors between the rooms stay shut, and core stays pure: read from the source, not believed.

Each rule is a function from a package folder to the sentences that name its violations. It is tried twice: on
everloop, which must have none, and on a small package that breaks it, which must be caught.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import everloop

PACKAGE = Path(everloop.__file__).parent

ROOMS = {
    "errors", "core", "ports", "readings", "runtime", "net", "providers", "tools", "memory", "store", "bus", "files",
    "channels", "gateway", "testing", "telemetry", "moving", "backup",
}  # fmt: skip
ABOVE = {
    "settings": set(),
    "app": {"settings", *ROOMS},
    "replay": {"app"},  # a public name for what is in there
    "cli": {"settings", "app"},
    "__main__": {"cli"},
    "__init__": {"app", "cli", "tools"},  # on first use, as another test sees
}
THINKING = ["errors", "core", "ports", "readings"]  # each imports those before it; nothing there touches the world
HTTP_CLIENTS = {
    "aiohttp", "http.client", "httpcore", "httpx", "httpx2", "requests", "urllib.request", "urllib3", "websockets",
}  # fmt: skip
WEB_SERVERS = {
    "testing/discord_server.py", "testing/event_gateway.py", "testing/model_server.py", "testing/slack_server.py",
    "testing/telegram_server.py",
    "gateway",
}  # fmt: skip
OVER_NET = "tools/mcp/"  # gives the client of the MCP SDK a transport of ours; see tests/tools/mcp/test_sockets.py
TO_ITSELF = {("providers/embedded/llama.py", "http.client")}  # speaks to its own library, through a Unix socket

# Whoever needs another module here asks first: does it read a clock, a file, the network or the environment?
PURE = {
    "base64", "collections", "contextlib", "contextvars", "difflib", "enum", "fnmatch", "functools", "hashlib",
    "inspect", "itertools", "math", "msgspec", "re", "types", "typing", "unicodedata", "urllib.parse",
}  # fmt: skip
MAY_BE_ASYNC = {"ports"}  # the Protocols
STARRED = re.compile(rb"\*\s*[(\[]")
IMPURE_BUILTINS = {"open", "print", "input", "exec", "eval", "__import__", "breakpoint"}


class Import:
    """One imported name: `module` in full, from the package's own name on if it is ours."""

    def __init__(self, file: Path, package: Path, line: int, module: str) -> None:
        self.place = _place(file, package)
        self.file = file.relative_to(package).as_posix()
        self.line = line
        self.module = module

    @property
    def ours(self) -> bool:
        return self.module.partition(".")[0] == "everloop"

    @property
    def target(self) -> str:
        """The room, or the file above the rooms, that one of our own names stands for."""
        name = self.module.split(".")[1] if "." in self.module else ""
        if name in ("", "__version__"):
            return self.place
        return name if name in ROOMS | ABOVE.keys() else "app"  # a public name, which would load the whole house

    def within(self, modules: set[str]) -> bool:
        return any(self.module == name or self.module.startswith(f"{name}.") for name in modules)

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


@cache
def imports_of(package: Path) -> list[Import]:
    return [*_read(package)]


def _read(package: Path) -> Iterator[Import]:
    for file in sorted(package.rglob("*.py")):
        above = ("everloop", *file.relative_to(package).parent.parts)
        for node in ast.walk(ast.parse(file.read_bytes())):
            for module in _imported(node, above):
                yield Import(file, package, node.lineno, module)


def _imported(node: ast.AST, above: tuple[str, ...]) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=module, names=names, level=level):
            base = [*above[: len(above) - level + 1], module or ""] if level else [module or ""]
            return [".".join([*filter(None, base), alias.name]) for alias in names]
        case ast.Call(
            func=ast.Name("import_module") | ast.Attribute(attr="import_module"), args=[ast.Constant(name), *_]
        ):
            return [str(name) if not str(name).startswith(".") else f"everloop{name}"]
    return []


def open_doors(package: Path) -> list[str]:
    """A room imports those that only think, and itself; what is above the rooms imports what is below it."""
    return [str(each) for each in imports_of(package) if each.ours and each.target not in _reach(each.place)]


def _reach(place: str) -> set[str]:
    if place in THINKING:  # an error names a type of core's: what a tool has changed that failed
        return {"core", *THINKING[: THINKING.index(place) + 1]}
    return {place, *THINKING, *ABOVE.get(place, ())}


def unnamed_places(package: Path) -> list[str]:
    """Whatever stands in the package is a room or is named above the rooms, so that no rule passes it by."""
    places = {path.relative_to(package).parts[0].removesuffix(".py") for path in package.rglob("*.py")}
    return sorted(places - ROOMS - ABOVE.keys())


def strange_clients(package: Path) -> list[str]:
    """Only net speaks HTTP to the world; a server may import aiohttp's half for servers."""
    return [
        str(each)
        for each in imports_of(package)
        if each.place != "net"
        and each.within(HTTP_CLIENTS)
        and (each.file, each.module) not in TO_ITSELF
        and not (each.file.startswith(OVER_NET) and each.within({"httpx2"}))
        and not (each.within({"aiohttp.web"}) and (each.file in WEB_SERVERS or each.place in WEB_SERVERS))
    ]


def bare_clients(package: Path) -> list[str]:
    """A client of httpx2 is made with a transport of ours, and reads neither proxies nor passwords by itself."""
    return [
        f"{file.relative_to(package)}:{node.lineno} makes a client that opens sockets"
        for file in sorted((package / OVER_NET).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).split(".")[-1] in ("AsyncClient", "create_mcp_http_client")
        and not {"transport", "trust_env"} <= {each.arg for each in node.keywords}
    ]


def impure_imports(package: Path) -> list[str]:
    return [
        str(each) for each in imports_of(package) if each.place in THINKING and not each.ours and not each.within(PURE)
    ]


def impure_code(package: Path) -> list[str]:
    """In the rooms that only think nothing waits, but in what a port promises, and nothing touches the world."""
    found = []
    for file in sorted(file for file in package.rglob("*.py") if _place(file, package) in THINKING):
        for node in ast.walk(ast.parse(file.read_bytes())):
            match node:
                case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                    word = "" if MAY_BE_ASYNC & {file.name, file.parent.name} else "waits"
                case ast.comprehension(is_async=1, target=node):
                    word = "waits"
                case ast.Call(func=ast.Name(name)) if name in IMPURE_BUILTINS:
                    word = f"calls {name}"
                case _:
                    continue
            if word:
                found.append(f"{file.relative_to(package)}:{node.lineno} {word}")
    return found


def _place(file: Path, package: Path) -> str:
    return file.relative_to(package).parts[0].removesuffix(".py")


def starred_literals(package: Path) -> list[str]:
    """What is passed is written out, beyond three things by keyword: `f(*(a, b), c=d)` hides what goes where."""
    return [
        f"{file.relative_to(package)}:{node.lineno} stars what is written there"
        for file in sorted(package.rglob("*.py"))
        if STARRED.search(source := file.read_bytes())  # a few files: to parse a thousand takes seconds
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and any(_is_literal(each) for each in node.args)
    ]


def _is_literal(argument: ast.expr) -> bool:
    return isinstance(argument, ast.Starred) and isinstance(argument.value, ast.Tuple | ast.List)


def greedy_rooms(package: Path) -> list[str]:
    """Rooms ask for the part of the store that they use; the whole is handed around above them."""
    above = {"app", "agent", "replay", "cli", "ports", "testing"}
    wholes = {"everloop.ports.Store", "everloop.ports.store.Store"}
    return [str(each) for each in imports_of(package) if each.module in wholes and each.place not in above]


def broken_rings(package: Path) -> list[str]:
    """What a function imports at its first use is heavy. A module that it could not import at its top, because that one
    imports it, has something in it that belongs elsewhere."""
    files = {_module(file, package): file for file in package.rglob("*.py")}
    above = {name: _loaded_at_the_top(ast.parse(file.read_bytes()), name, file, files) for name, file in files.items()}
    found = []
    for name, file in files.items():
        tree = ast.parse(file.read_bytes())
        inside = [node for each in ast.walk(tree) if isinstance(each, FUNCTIONS) for node in ast.walk(each)]
        for node in dict.fromkeys(inside):
            for target in _modules_of(node, name, file, files):
                place = file.relative_to(package).as_posix()
                if name in _all_loaded(target, above):
                    found.append(f"{place}:{node.lineno} imports {target}, which imports it")
    return found


FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def _module(file: Path, package: Path) -> str:
    return ".".join(("everloop", *file.relative_to(package).with_suffix("").parts)).removesuffix(".__init__")


def _modules_of(node: ast.AST, name: str, file: Path, known: Collection[str]) -> list[str]:
    """Of our modules those that an import names."""
    above = tuple(name.split(".") if file.name == "__init__.py" else name.split(".")[:-1])
    named = [next((m for m in (each, each.rpartition(".")[0]) if m in known), "") for each in _imported(node, above)]
    return [*dict.fromkeys(filter(None, named))]


def _loaded_at_the_top(tree: ast.AST, name: str, file: Path, known: Collection[str]) -> set[str]:
    """What importing a module imports, but for what only the type checker sees."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        later = isinstance(node, FUNCTIONS | ast.Lambda)
        if later or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            continue
        found |= {*_modules_of(node, name, file, known)} | _loaded_at_the_top(node, name, file, known)
    return found - {name}


def _all_loaded(name: str, above: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    ahead = {name}
    while ahead:
        ahead = {each for module in ahead for each in above.get(module, ())} - seen
        seen |= ahead
    return seen


Rule = Callable[[Path], list[str]]
RULES = [
    open_doors, unnamed_places, strange_clients, bare_clients, greedy_rooms, impure_imports, impure_code,
    starred_literals, broken_rings,
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_everloop_keeps(rule: Rule):
    assert rule(PACKAGE) == []


@pytest.mark.parametrize(
    "rule, file, source",
    [
        (open_doors, "runtime/x.py", "from everloop.store.sqlite import SqliteStore"),
        (open_doors, "runtime/x.py", "from ..store import sqlite"),
        (open_doors, "runtime/deep/x.py", "from ...store import sqlite"),
        (open_doors, "runtime/x.py", "from .. import store"),
        (open_doors, "runtime/x.py", "import everloop.store.sqlite"),
        (open_doors, "runtime/x.py", "from everloop import tool"),
        (open_doors, "runtime/x.py", "def f():\n    from ..store import sqlite"),
        (open_doors, "runtime/x.py", "import importlib\nimportlib.import_module('everloop.store.sqlite')"),
        (open_doors, "tools/x.py", "from ..settings import Settings"),
        (open_doors, "core/x.py", "from ..runtime import driver"),
        (open_doors, "core/x.py", "from ..readings import spans"),
        (open_doors, "core/x.py", "from ..ports.rows import Commit"),
        (open_doors, "ports/x.py", "from ..readings import spans"),
        (open_doors, "errors.py", "from .ports.rows import Commit"),
        (open_doors, "readings/x.py", "from ..store import sqlite"),
        (open_doors, "cli/x.py", "from ..store.sqlite import SqliteStore"),
        (open_doors, "settings.py", "from .providers import catalog"),
        (open_doors, "cli/x.py", "from ..providers.catalog import HOSTS"),
        (open_doors, "replay.py", "from .runtime.driver import Driver"),
        (open_doors, "settings/x.py", "from ..app import open"),
        (unnamed_places, "utils/x.py", ""),
        (unnamed_places, "helpers.py", ""),
        (strange_clients, "providers/x.py", "import aiohttp"),
        (strange_clients, "providers/x.py", "from aiohttp import ClientSession"),
        (strange_clients, "providers/x.py", "from urllib import request"),
        (strange_clients, "runtime/x.py", "from aiohttp import web"),
        (strange_clients, "gateway/x.py", "import aiohttp"),
        (strange_clients, "testing/model_server.py", "from aiohttp import ClientSession"),
        (strange_clients, "tools/x.py", "import httpx2"),
        (strange_clients, "tools/mcp/x.py", "import httpx"),
        (bare_clients, "tools/mcp/x.py", "import httpx2\nhttpx2.AsyncClient()"),
        (bare_clients, "tools/mcp/x.py", "import httpx2\nhttpx2.AsyncClient(transport=t)"),
        (greedy_rooms, "runtime/x.py", "from ..ports import Bus, Store"),
        (greedy_rooms, "gateway/api/x.py", "from ...ports.store import Store"),
        (impure_imports, "core/x.py", "import asyncio"),
        (impure_imports, "core/x.py", "from time import time"),
        (impure_imports, "core/x.py", "import os.path"),
        (impure_imports, "core/x.py", "def f():\n    import random"),
        (impure_code, "core/x.py", "async def f(): ..."),
        (impure_code, "core/x.py", "f = lambda: [x async for x in y]"),
        (impure_code, "core/x.py", "text = open('x').read()"),
        (impure_imports, "readings/x.py", "import asyncio"),
        (impure_code, "readings/x.py", "async def f(): ..."),
        (impure_code, "ports/x.py", "text = open('x').read()"),
        (impure_code, "errors.py", "text = open('x').read()"),
        (starred_literals, "store/x.py", "f(*(a, b), c=d)"),
        (starred_literals, "store/x.py", "f('…', *(a,))"),
        (starred_literals, "store/x.py", "f(*[a, b])"),
        (starred_literals, "store/x.py", "def g():\n    return [h(1, *(a, *b)) for a in c]"),
    ],
)
def test_a_package_that_breaks_it_is_caught(tmp_path: Path, rule: Rule, file: str, source: str):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    assert len(rule(tmp_path)) == 1


@pytest.mark.parametrize(
    "file, source",
    [
        (
            "runtime/x.py",
            "from ..core.log import Entry\nfrom .driver import Driver\nfrom . import book\nimport asyncio",
        ),
        ("cli/x.py", "from .. import __version__\nfrom ..app import open\nfrom ..errors import EverloopError"),
        ("net/x.py", "import aiohttp"),
        ("net/x.py", "from websockets.client import ClientProtocol"),
        ("gateway/x.py", "from aiohttp import web"),
        ("tools/mcp/x.py", "import httpx2\nhttpx2.AsyncClient(transport=t, trust_env=False)"),
        ("store/x.py", "from ..readings.words import placed"),
        ("runtime/x.py", "from ..ports import Log, Mailroom"),
        ("app/x.py", "from ..ports import Store"),
        ("readings/x.py", "from ..core.log import Entry\nfrom ..ports.rows import Commit\nfrom .words import placed"),
        ("ports/x.py", "from typing import Protocol\nfrom ..core.log import Entry\nasync def f(): ..."),
        ("core/x.py", "from ..errors import StoreNewer"),
        ("store/x.py", "f(*values, *(each for each in rows), a=(*b, c))"),
    ],
)
def test_a_package_that_keeps_them_passes(tmp_path: Path, file: str, source: str):
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(source)
    assert [sentence for rule in RULES for sentence in rule(tmp_path)] == []


@pytest.mark.parametrize(
    "heavy, rings", [("from .x import g", 1), ("from . import x", 1), ("from . import y", 1), ("def h(): ...", 0)]
)
def test_a_ring_that_an_import_in_a_function_breaks_is_caught(tmp_path: Path, heavy: str, rings: int):
    files = {"x.py": "def f():\n    from .heavy import h", "heavy.py": heavy, "y.py": "from .x import f"}
    for name, source in files.items():
        (tmp_path / name).write_text(source)
    assert len(broken_rings(tmp_path)) == rings


def loaded_by(*code: str) -> set[str]:
    """What a fresh interpreter has loaded after running this."""
    lines = ["import sys", *code, "print(*sys.modules, sep='\\n', file=sys.stderr)"]
    ran = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    return set(ran.stderr.split())


def test_importing_everloop_loads_nothing_else_of_it():
    assert {name for name in loaded_by("import everloop") if name.startswith("everloop.")} == set()


def test_the_first_use_of_a_public_name_loads_its_room():
    assert "everloop.core.tool" in loaded_by("import everloop", "everloop.tool")


def command(argument: str) -> list[str]:
    return [f"sys.argv = ['everloop', '{argument}']", "from everloop.__main__ import main",
            "try: main()", "except SystemExit: pass"]  # fmt: skip


def test_the_version_is_told_before_anything_heavy_is_loaded():
    assert loaded_by(*command("--version")) & {"msgspec", "asyncio", "argparse", "everloop.cli"} == set()


def test_the_help_is_not_and_so_the_test_above_would_see_it():
    assert loaded_by(*command("--help")) >= {"msgspec", "asyncio", "argparse", "everloop.cli"}
