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
from everloop.core.people import Role
from everloop.ports.tools import CallContext
from everloop.testing import Call, Line, Say, ScriptedModel, Shown
from everloop.testing.model_server import ModelServer

EXAMPLE = Path(__file__).parents[2] / "examples/weather_tool"
GREET = """
from everloop import CommandCall, Effect, Role, ToolError, slash_command, tool

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

@slash_command("/wave", takes="[NAME]")
async def wave(call: CommandCall) -> str:
    '''Wave at someone.

    No model is asked.'''
    if call.text == "nobody":
        raise ToolError("there is nobody to wave at")
    return f"{call.author} ({call.role.name.lower()}) waves at {call.text or 'all'}, in {call.session}"

@slash_command("/stumble")
async def stumble(call: CommandCall) -> str:
    '''Fail.'''
    return str(1 // 0)

@slash_command("/leave")
async def leave(call: CommandCall) -> str:
    '''Try to end the program.'''
    raise SystemExit("gone")

@slash_command("/secret", role=Role.ADMIN)
async def secret(call: CommandCall) -> str:
    '''Tell what users are not told.'''
    return "told"

waves = [greet, wave, stumble, leave, secret]

def plain(): pass
both = [greet]
mixed = [greet, plain]
nothing = []
"""


NO_TOOL = "is no tool; a plugin is what `@everloop.tool` or `@everloop.slash_command` makes, or a list of these"


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
        ("plain", f"'plain' {NO_TOOL}"),
        ("mixed", f"'mixed' {NO_TOOL}"),
        ("nothing", f"'nothing' {NO_TOOL}"),
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


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("/wave Ann", "owner (owner) waves at Ann, in cli:direct"),
        ("/wave", "owner (owner) waves at all, in cli:direct"),
        ("/wave nobody", "/wave: there is nobody to wave at"),
        ("/leave", "/leave: it tried to end the program it runs in (SystemExit: gone); it was kept from that"),
        ("/stumble", "/stumble failed. The details are in the log: everloop logs"),
        ("/stumble over", "/stumble stands alone. To say this to the model, begin with //stumble."),
        ("/wavve", "There is no /wavve. Did you mean /wave? /help shows what there is. To say this to the model, begin "
                   "with //wavve."),
    ],
)  # fmt: skip
async def test_a_command_of_another_package_is_answered_by_no_model(house: House, text: str, told: str):
    house.install("greetings", GREET, waves="greetings:waves")
    ran = await house.ask(text, "waves")
    assert (ran.status, ran.out, house.model.calls) == (0, f"{told}\n", 0)


async def test_help_tells_of_the_commands_of_other_packages(house: House):
    house.install("greetings", GREET, waves="greetings:waves")
    lines = (await house.ask("/help", "waves")).out.splitlines()
    assert lines[-4:-2] == ["/wave [NAME] — Wave at someone.", "/stumble — Fail."]
    assert "/wave" not in (await house.ask("/help")).out


async def test_a_command_is_for_its_role_and_above(house: House, tmp_path: Path):
    house.install("greetings", GREET, waves="greetings:waves")
    sys.path.insert(0, str(house.site))
    try:
        plugins = {"tools": {"plugins": ["waves"]}}
        async with everloop.open(
            tmp_path / "home", provider=ScriptedModel([]), settings=plugins, roles={"web:anna": Role.USER}
        ) as agent:
            told = (await agent.ask("/secret", "api:one")).content
            anna = agent.user("web:anna")
            refused = (await anna.ask("/secret", "web:anna")).content
            helped = (await anna.ask("/help", "web:anna")).content
    finally:
        sys.path.remove(str(house.site))
    assert (told, refused) == ("told", "/secret is not for users: it needs an admin.")
    assert ("/wave [NAME]" in helped, "/secret" in helped) == (True, False)


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
