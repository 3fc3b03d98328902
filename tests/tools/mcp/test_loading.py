"""Without a server nobody waits for the SDK: neither it nor what speaks with servers is loaded."""

import subprocess
import sys
from pathlib import Path

import pytest

TURN = """
import asyncio, sys
from pathlib import Path
import everloop
from everloop.testing import Call, Say, ScriptedModel

async def main(home):
    model = ScriptedModel([Call("list_dir"), Say("hello")])
    async with everloop.open(home=home, provider=model) as agent:
        await agent.ask("hi")

asyncio.run(main(Path(sys.argv[1])))
"""
TELL = "\nprint(*sys.modules)"
SDK = {"mcp", "mcp_types", "anyio"}


def loaded(code: str, home: Path) -> set[str]:
    """Of the SDK and of what speaks with servers, what a fresh interpreter has loaded after running this."""
    ran = subprocess.run([sys.executable, "-c", code + TELL, str(home)], capture_output=True, text=True, check=True)
    return {name for name in ran.stdout.split() if name in SDK or name.startswith("everloop.tools.mcp")}


@pytest.mark.parametrize("code", ["import sys, everloop", TURN])
def test_a_house_without_servers_loads_none_of_it(tmp_path, code):
    assert loaded(code, tmp_path / "home") == set()


def test_names_and_definitions_are_told_without_the_sdk(tmp_path):
    pure = {"", ".names", ".definitions", ".schema", ".limits", ".questions"}
    code = "import sys, everloop.tools.mcp.names, everloop.tools.mcp.definitions, everloop.tools.mcp.questions"
    assert loaded(code, tmp_path) == {f"everloop.tools.mcp{name}" for name in pure}


def test_the_client_loads_it_and_so_the_tests_above_would_see_it(tmp_path):
    assert loaded("import sys, everloop.tools.mcp.client", tmp_path) >= {*SDK, "everloop.tools.mcp.guard"}
