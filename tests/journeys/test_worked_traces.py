"""The worked traces of the seeds (LOOP-43), from the request that comes in to what a person or a bot is given.

A: an answer without tools. B: a search, a document made from it, and the file with the answer. C: a command and what it
said.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

import everloop
from everloop.app import serve
from everloop.app.access import new_token
from everloop.app.records import open_records
from everloop.testing import Call, Say, ScriptedModel, Shown

FOUND = {"results": [{"url": "https://example.org/loops", "title": "Loops", "content": "A loop goes on."}]}
REPORT = "# Loops\n\nA loop goes on: https://example.org/loops\n"
SEARCH = Call("web_search", {"query": "agent loops", "count": 3})
WRITE = Call("create_document", {"path": "loops.md", "content": REPORT})
ASKED = "research agent loops and write it up"


@pytest.fixture
async def engine() -> AsyncIterator[tuple[str, list[str]]]:
    """A SearxNG on this machine: its address, and what it was asked."""
    asked: list[str] = []

    async def search(request: web.Request) -> web.Response:
        asked.append(request.query["q"])
        return web.json_response(FOUND)

    app = web.Application()
    app.add_routes([web.get("/search", search)])
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/"), asked


async def test_trace_a_an_answer_without_tools_is_one_step(tmp_path: Path):
    async with everloop.open(tmp_path, provider=ScriptedModel([Say("Paris.")])) as agent:
        answer = await agent.ask("What is the capital of France?")
    assert (answer.content, answer.steps, answer.tools_used, answer.finish) == ("Paris.", 1, (), "stop")


async def test_trace_b_what_was_found_becomes_a_document_that_comes_with_the_answer(tmp_path: Path, engine):
    url, asked = engine
    settings = {"tools": {"web": {"search": {"engine": "searxng", "url": url}}}}
    model = ScriptedModel([SEARCH, WRITE, Say("It is in loops.md.")])
    async with everloop.open(tmp_path, settings, provider=model) as agent:
        answer = await agent.ask(ASKED)
        (made,) = answer.files
        content = await agent.files.get("owner", made.media.file)
    assert (answer.content, answer.steps, answer.tools_used) == (
        *("It is in loops.md.", 3),
        ("web_search", "create_document"),
    )
    assert (asked, made.media.name, content) == (["agent loops"], "loops.md", REPORT.encode())
    assert (tmp_path / "workspace/loops.md").read_text() == REPORT
    assert "A loop goes on." in model.prompts[1].said[-1][1]


async def test_trace_b_through_the_gateway_the_response_carries_the_file_and_its_address(tmp_path: Path, engine):
    url, _ = engine
    settings = {"tools": {"web": {"search": {"engine": "searxng", "url": url}}}, "gateway": {"port": 0}}
    model = ScriptedModel([SEARCH, WRITE, Say("It is in loops.md.")])
    async with serve(tmp_path, settings, provider=model) as gateway, open_records(tmp_path) as records:
        token = await new_token(records.store, "owner", "bot", ["chat", "read"])
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as client:
            await _research(client, gateway.url)


async def _research(client: aiohttp.ClientSession, url: str) -> None:
    async with client.ws_connect(f"{url}/ws") as socket, asyncio.timeout(60):
        await socket.send_json({"type": "message", "id": "m1", "session": "api:work", "content": ASKED})
        frames = [message.json() async for message in _until_answered(socket)]
    (file,) = frames[-1]["files"]
    got = await client.get(f"{url}{file['url']}")
    assert (frames[-1]["content"], file["name"], got.status, await got.text()) == (
        *("It is in loops.md.", "loops.md"),
        *(200, REPORT),
    )


async def _until_answered(socket: aiohttp.ClientWebSocketResponse) -> AsyncIterator[aiohttp.WSMessage]:
    async for message in socket:
        yield message
        if message.json()["type"] in ("response", "error"):
            return


async def test_trace_c_a_command_tells_its_exit_code_and_what_it_said(tmp_path: Path):
    def line(shown: Shown):
        return Call("exec", {"command": "du -sh /usr/bin"}) if shown.step == 0 else Say("It takes some space.")

    model = ScriptedModel(line)
    async with everloop.open(tmp_path, provider=model) as agent:
        seen = [event async for event in agent.stream("How much disk does /usr/bin take?")]
    answer = seen[-1].data["answer"]
    full = [event.data["full"] for event in seen if event.name == "metrics"]
    result = model.prompts[1].said[-1][1]
    assert (answer.content, answer.steps, answer.tools_used) == ("It takes some space.", 2, ("exec",))
    assert result.startswith("[exit code 0")
    assert result.endswith("\t/usr/bin\n")
    assert len(full) == 2
    assert 0 < full[0] < full[1] < 0.8  # how much of the window is used, after each call of the model
