"""What a process loads: nothing of MCP where no server is set, and what a turn takes only where one is made."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from everloop.app.slash_commands import MADE_BY
from everloop.readings.commands import COMMANDS
from everloop.testing import Say
from everloop.testing.model_server import ModelServer

# The shape of the settings, and in each room that is loaded anyway the few lines that load the rest.
SEAMS = {"everloop.settings.mcp", "everloop.app.mcp_later"}
OF_THE_GATEWAY = {"everloop.gateway.mcp", "everloop.gateway.api.routes.mcp"}
RUN = """
import atexit, json, os, runpy, sys
atexit.register(lambda: open(os.environ["LOADED"], "w").write(json.dumps(sorted(sys.modules))))
sys.argv[0] = "everloop"
runpy.run_module("everloop", run_name="__main__", alter_sys=True)
"""
SERVER = {"EVERLOOP_TOOLS__MCP_SERVERS": json.dumps({"a": {"command": "none", "enabled": False}})}


async def modules(home: Path, *arguments: str, typed: bytes = b"", more: Mapping[str, str] = {}) -> set[str]:
    """Those that everloop has loaded by its end; a gateway is ended when it is ready."""
    async with ModelServer(lambda shown: Say("hello")) as model:
        environment = {
            "PATH": os.environ["PATH"],
            "EVERLOOP_HOME": str(home / "home"),
            "EVERLOOP_AGENTS__DEFAULTS__MODEL": "custom/scripted",
            "EVERLOOP_PROVIDERS__CUSTOM__API_BASE": model.url,
            "EVERLOOP_PROVIDERS__CUSTOM__API_KEY": "none",
            "EVERLOOP_GATEWAY__PORT": "0",
            "LOADED": str(home / "loaded.json"),
            **more,
        }
        pipe = subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", RUN, *arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
        )
        assert process.stderr is not None
        if arguments[0] == "gateway":
            assert b"http://" in await process.stderr.readline()
            process.terminate()
        out, err = await process.communicate(typed)
        assert process.returncode == 0, err.decode()
        assert b"hello" in out or arguments[0] != "agent"
    return set(json.loads((home / "loaded.json").read_text()))


async def loaded(home: Path, *arguments: str, typed: bytes = b"", more: Mapping[str, str] = {}) -> set[str]:
    """The modules of ours about MCP."""
    about = ("mcp", "elicitation", "sampling")
    found = await modules(home, *arguments, typed=typed, more=more)
    return {each for each in found if each.startswith("everloop.") and any(word in each for word in about)}


@pytest.mark.parametrize(
    ("arguments", "typed", "seams"),
    [(["agent", "-m", "hi"], b"", SEAMS), (["agent"], b"hi\n", SEAMS), (["gateway"], b"", SEAMS | OF_THE_GATEWAY)],
    ids=["once", "chat", "gateway"],
)
async def test_without_a_server_nothing_of_mcp_is_loaded(
    tmp_path: Path, arguments: list[str], typed: bytes, seams: set[str]
):
    assert await loaded(tmp_path, *arguments, typed=typed) == seams


async def test_with_a_server_it_is_loaded(tmp_path: Path):
    found = await loaded(tmp_path, "agent", "-m", "hi", more=SERVER)
    assert {"everloop.app.mcp", "everloop.ports.mcp", "everloop.store.mcp_pins"} < found


TURN = {"everloop.app.house", "everloop.app.tools", "everloop.runtime.driver", "everloop.tools.exec"}
SERVING = {"aiohttp", "everloop.gateway.server"}
UNASKED = {"everloop.runtime.heartbeat", "everloop.runtime.scheduled_work", "everloop.memory.consolidation"}


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [(["tokens", "list"], set()), (["agent", "-m", "hi"], TURN), (["gateway"], TURN | SERVING | UNASKED)],
    ids=["looks", "once", "gateway"],
)
async def test_a_process_loads_what_it_does_and_not_what_others_do(
    tmp_path: Path, arguments: list[str], needed: set[str]
):
    (tmp_path / "home").mkdir(0o700)  # without one there is nothing to look at
    assert await modules(tmp_path, *arguments) & (TURN | SERVING | UNASKED) == needed


def test_every_slash_command_has_somebody_who_works_it_out():
    assert {*MADE_BY, "/new", "/stop", "/help"} == {*COMMANDS}
