"""`everloop heartbeat`: how it stands is shown, a look asked for, and checks allowed, from the terminal."""

import asyncio
import json

import everloop
from everloop.core.people import OWNER
from everloop.testing import Say, ScriptedModel


async def test_without_a_file_it_is_said_how_to_begin(person):
    shown, run, allow = [await person.run("heartbeat", word) for word in ("show", "run", "allow")]
    assert (shown.status, shown.out.startswith("There is no HEARTBEAT.md in your workspace.")) == (0, True)
    assert [(each.status, "there is no HEARTBEAT.md" in each.err) for each in (run, allow)] == [(1, True)] * 2


async def test_a_look_is_asked_for_and_done_where_a_chat_is_open(person):
    workspace = person.home / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "HEARTBEAT.md").write_text("check: true\n# nothing is open\n")
    before = await person.run("heartbeat")
    run = await person.run("heartbeat", "run")
    allow = await person.run("heartbeat", "allow")
    async with everloop.open(home=person.home, provider=ScriptedModel([Say("hello")])) as agent:
        await agent.ask("hi")
        async with asyncio.timeout(60):
            while not (await agent.store.heartbeat(OWNER)).state.looked:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    after = await person.run("heartbeat", "show")
    told = json.loads((await person.run("heartbeat", "show", "--json")).out)
    assert "It was not looked at yet" in before.out
    assert "looked at within seconds" in run.out
    assert allow.out == "These are run from now on, until one of them is written otherwise: true\n"
    assert after.out.startswith("Looked at ")
    assert ("unchanged" in after.out, "\nNext: " in after.out) == (True, True)
    assert (told["row"]["state"]["decided"], told["off"], told["checks"]) == ("unchanged", "", [])
