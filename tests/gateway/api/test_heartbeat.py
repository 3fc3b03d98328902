"""The heartbeat through the API of an open gateway: how it stands, a look now, and checks allowed by hand."""

import asyncio
from pathlib import Path
from typing import Any

from everloop.testing import Say, ScriptedModel
from tests.gateway.api.test_setup import Door, opened


async def looked(door: Door, decided: str) -> Any:
    """What is told after a look: it is committed before its job is settled, which says when the next one is."""
    async with asyncio.timeout(30):
        while True:
            told = await door.get("/api/heartbeat")
            if told["decided"] == decided and told["next"] > told["looked"]:
                return told
            await asyncio.sleep(0.05)


async def test_how_it_stands_is_told_and_one_that_is_asked_for_is_looked_at(tmp_path: Path):
    async with opened(tmp_path, {"heartbeat": {"quiet": "00:00-23:59"}}, provider=ScriptedModel([Say("x")])) as door:
        none = await door.get("/api/heartbeat")
        refused = await door.send("POST", "/api/heartbeat/run")
        (tmp_path / "workspace" / "HEARTBEAT.md").write_text("# nothing yet\n")
        run = await door.send("POST", "/api/heartbeat/run")
        told = await looked(door, "empty")
    assert none["off"].startswith("There is no HEARTBEAT.md in your workspace.")
    assert (none["looked"], none["next"], none["decided"]) == (0, None, "")
    assert (refused[0], "There is no HEARTBEAT.md" in str(refused[1])) == (409, True)
    assert run == (
        200,
        {"told": "It is looked at within seconds, where everloop gateway runs or a chat of yours is open."},
    )
    assert (told["off"], told["why"], told["asked"]) == ("", "nothing in HEARTBEAT.md is to be done", 0)
    assert told["lines"][0].startswith("Looked at")


async def test_checks_are_allowed_by_a_token_that_may_approve_alone(tmp_path: Path):
    for home in ("a", "b"):
        (tmp_path / home / "workspace").mkdir(parents=True)
        (tmp_path / home / "workspace" / "HEARTBEAT.md").write_text("check: echo hi\n")
    settings = {"tools": {"policy": [{"tool": "exec", "stance": "ask"}]}}
    async with opened(tmp_path / "a", settings, ("read", "chat"), provider=ScriptedModel([Say("x")])) as door:
        refused = await door.send("POST", "/api/heartbeat/allow")
        before = await door.get("/api/heartbeat")
    async with opened(tmp_path / "b", settings, provider=ScriptedModel([Say("x")])) as door:
        allowed = await door.send("POST", "/api/heartbeat/allow")
        after = await door.get("/api/heartbeat")
    assert (refused[0], before["checks"]) == (403, ["echo hi"])
    assert allowed == (200, {"told": "These are run from now on, until one of them is written otherwise: echo hi"})
    assert after["checks"] == []
