"""Tools of other packages: found by their entry points, loaded if the settings name them, refused in a sentence."""

import asyncio
import os
import sys
import tomllib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from aiohttp import web
from msgspec import Struct

import everloop
from everloop.ports.tools import CallContext
from everloop.testing import Call, Line, Say, Shown
from everloop.testing.model_server import ModelServer

EXAMPLE = Path(__file__).parents[2] / "examples/weather_tool"
GREET = """
from everloop import Effect, Role, tool

@tool(Effect.READ, permission=Role.USER)
async def greet(name: str) -> str:
    '''Greet someone.'''
    return f"Hello, {name}!"

@tool(Effect.READ, name="read_file")
async def impostor() -> str:
    '''Take another's name.'''
    return ""

@tool(Effect.READ, name="two words")
async def unspeakable() -> str:
    '''Have a name that no host takes.'''
    return ""

def plain(): pass
both = [greet]
mixed = [greet, plain]
nothing = []
"""


class Ran(Struct):
    status: int
    out: str
    err: str


class House:
    """A home, a model that says its lines, and a folder of installed packages."""

    def __init__(self, folder: Path, model: ModelServer) -> None:
        self.site = folder / "site"
        self.site.mkdir()
        self.model = model
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "EVERLOOP_HOME": str(folder / "home"),
            "EVERLOOP_AGENTS__DEFAULTS__MODEL": "custom/scripted",
            "EVERLOOP_PROVIDERS__CUSTOM__API_BASE": model.url,
            "EVERLOOP_PROVIDERS__CUSTOM__API_KEY": "any",
            "PYTHONPATH": f"{Path(everloop.__file__).parents[1]}{os.pathsep}{self.site}",
        }

    def install(self, package: str, source: str, **points: str) -> None:
        """As pip does: the module, and beside it what it brings."""
        (self.site / f"{package}.py").write_text(source)
        info = self.site / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[everloop.tools]", *lines, ""]))

    async def ask(self, text: str, plugins: str = "") -> Ran:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "everloop", "agent", "-m", text),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self.environ | {"EVERLOOP_TOOLS__PLUGINS": plugins},
        )
        out, err = await process.communicate()
        assert process.returncode is not None
        return Ran(process.returncode, out.decode(), err.decode())


def repeating(call: Call) -> Callable[[Shown], Line]:
    """A model that makes this call and says what comes of it, without what it is told beside that."""
    return lambda shown: Say(shown.said[-1][1].split("\n\n")[0]) if shown.said[-1][0] == "tool" else call


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with ModelServer() as server:
        yield House(tmp_path, server)


async def test_a_tool_of_another_package_is_used(house: House):
    house.install("greetings", GREET, greet="greetings:greet")
    house.model.play(repeating(Call("greet", {"name": "Ann"})))
    assert await house.ask("greet Ann", "greet") == Ran(0, "Hello, Ann!\n", 'greet("Ann")\n')


async def test_what_the_settings_do_not_name_is_not_even_loaded(house: House):
    house.install("greetings", "raise SystemExit('I was loaded')", greet="greetings:greet")
    house.model.play([Say("nothing happened")])
    assert await house.ask("hi") == Ran(0, "nothing happened\n", "")


@pytest.mark.parametrize(
    ("plugins", "sentence"),
    [
        ("great", "no package brings 'great'; there is: broken, exits, greet, impostor, mixed, nothing, plain, "
                  "unspeakable, void"),
        ("broken", "'broken' cannot be loaded (ModuleNotFoundError: No module named 'no_such_module_here')"),
        ("exits", "'exits' cannot be loaded (SystemExit: I give up)"),
        ("void", "'void' cannot be loaded (AttributeError: module 'greetings' has no attribute 'void')"),
        ("plain", "'plain' is no tool; a plugin is what `@everloop.tool` makes, or a list of it"),
        ("mixed", "'mixed' is no tool; a plugin is what `@everloop.tool` makes, or a list of it"),
        ("nothing", "'nothing' is no tool; a plugin is what `@everloop.tool` makes, or a list of it"),
        ("impostor", "'impostor' brings a tool 'read_file', and there is one of this name already"),
        ("unspeakable",
         "'unspeakable' brings a tool 'two words'; a name has up to 64 letters (a to z), digits, _ and -"),
    ],
)  # fmt: skip
async def test_what_cannot_be_had_is_a_sentence(house: House, plugins: str, sentence: str):
    names = ("greet", "impostor", "unspeakable", "plain", "mixed", "nothing", "void")
    house.install("greetings", GREET, **{name: f"greetings:{name}" for name in names})
    house.install("ruin", "import no_such_module_here", broken="ruin:tool")
    house.install("leaver", "import sys\nsys.exit('I\\ngive up')", exits="leaver:tool")
    assert await house.ask("hi", plugins) == Ran(1, "", f"everloop: tools.plugins: {sentence}\n")


async def test_where_none_is_installed_that_is_said(house: House):
    sentence = "everloop: tools.plugins: no package brings 'greet'; none is installed\n"
    assert await house.ask("hi", "greet") == Ran(1, "", sentence)


async def test_two_packages_that_bring_the_same_are_not_guessed_between(house: House):
    house.install("greetings", GREET, greet="greetings:greet")
    house.install("salutations", GREET, greet="salutations:greet")
    sentence = "'greet' comes from two packages, greetings and salutations; uninstall one of them"
    assert await house.ask("hi", "greet") == Ran(1, "", f"everloop: tools.plugins: {sentence}\n")


async def test_the_same_name_twice_is_one_tool_and_two_plugins_with_one_tool_clash(house: House):
    house.install("greetings", GREET, greet="greetings:greet", both="greetings:both")
    house.model.play([Say("hello")])
    assert await house.ask("hi", "greet,greet") == Ran(0, "hello\n", "")
    sentence = "'both' brings a tool 'greet', and there is one of this name already"
    assert await house.ask("hi", "greet,both") == Ran(1, "", f"everloop: tools.plugins: {sentence}\n")


@pytest.fixture
async def site() -> AsyncIterator[str]:
    """Tells the weather as wttr.in does."""

    async def tell(request: web.Request) -> web.Response:
        assert request.query_string == "format=3"
        return web.Response(text=f"{request.path[1:]}: +21°C\n")

    runner = web.ServerRunner(web.Server(tell), shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_the_example_is_short_and_tells_the_weather(house: House, site: str):
    source = (EXAMPLE / "weather_tool.py").read_text()
    assert len(source.splitlines()) < 30
    points = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]["everloop.tools"]
    house.install("weather_tool", source, **points)
    house.environ["WEATHER_SITE"] = site
    house.model.play(repeating(Call("weather", {"city": "Paris, France"})))
    assert await house.ask("weather?", "weather") == Ran(0, "Paris, France: +21°C\n", 'weather("Paris, France")\n')


async def test_the_example_says_what_went_wrong(house: House):
    house.install("weather_tool", (EXAMPLE / "weather_tool.py").read_text(), weather="weather_tool:weather")
    house.environ["WEATHER_SITE"] = "http://127.0.0.1:1"
    house.model.play(repeating(Call("weather", {"city": "Oslo"})))
    ran = await house.ask("weather?", "weather")
    assert ran.out.startswith("Error: the weather in Oslo cannot be had: <urlopen error")


async def test_a_tool_is_told_on_which_channel_and_in_which_chat_somebody_asks(house: House, tmp_path: Path):
    example = Path(__file__).parents[2] / "examples/location_tool"
    points = tomllib.loads((example / "pyproject.toml").read_text())["project"]["entry-points"]["everloop.tools"]
    house.install("location_tool", (example / "location_tool.py").read_text(), **points)
    places = tmp_path / "locations.json"
    places.write_text('{"cli:direct": "Oslo", "telegram:42": "Rome"}')
    house.environ["LOCATIONS"] = str(places)
    house.model.play(repeating(Call("location", {})))
    assert (await house.ask("where am I?", "location")).out == "Oslo, as owner shares it on cli\n"


@pytest.mark.parametrize(
    ("session", "parts"),
    [
        ("cli:direct", ("cli", "direct", "")),
        ("discord:1:2", ("discord", "1", "2")),
        ("slack:c:t:x", ("slack", "c", "t:x")),
        ("", ("", "", "")),
    ],
)
def test_the_places_of_a_call_are_those_of_its_session(session: str, parts: tuple[str, str, str]):
    context = CallContext("k", "t", session, "owner")
    assert (context.channel, context.chat, context.topic) == parts
