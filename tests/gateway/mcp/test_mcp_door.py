"""everloop as an MCP server: as the official SDK's client uses it, and as one that nobody should be would."""

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from everloop.app import open_desk
from everloop.cli.mcp_serve import NO_CLIENT
from everloop.errors import EverloopError
from everloop.gateway import mcp
from everloop.gateway.mcp.door import SESSION_HEADER
from everloop.gateway.mcp.stdio import serve_stdio
from everloop.ports.memory import Fact
from everloop.testing import Call, Say, ScriptedModel, Wait
from everloop.testing.model_server import ModelServer
from tests.cli.person import Person
from tests.gateway.guarded import guarded
from tests.gateway.http_doors import TOKEN, named
from tests.strays import without_strays


class Served:
    def __init__(self, agent: Any, url: str) -> None:
        self.agent = agent
        self.url = f"{url}/mcp"

    @asynccontextmanager
    async def client(self, token: str = TOKEN, **more: Any) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(self.url, http_client=http), **more) as client,
        ):
            yield client

    async def post(self, body: Any, token: str = TOKEN, **headers: str) -> tuple[int, Any]:
        sent = {"Authorization": f"Bearer {token}", "Accept": "application/json", **headers}
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        async with ClientSession() as session, session.post(self.url, data=data, headers=sent) as answer:
            text = await answer.read()
            return answer.status, msgspec.json.decode(text) if text else None

    async def introduced(self) -> str:
        """What the server calls a client that introduces itself."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            ClientSession() as session,
            session.post(self.url, json=rpc("initialize"), headers=headers) as answer,
        ):
            return answer.headers[SESSION_HEADER]


@asynccontextmanager
async def serving(home: Path, model: ScriptedModel, **settings: Any) -> AsyncIterator[Served]:
    async with open_desk(home=home / "home", provider=model, settings=settings) as agent:
        server = TestServer(guarded(mcp.routes(agent, "1.2.3"), named))
        await server.start_server()
        try:
            yield Served(agent, str(server.make_url("")).rstrip("/"))
        finally:
            await server.close()


def asking(message: str) -> dict[str, Any]:
    return rpc("tools/call", name="ask", arguments={"message": message})


async def said_to_stdin(agent: Any, request: dict[str, Any]) -> list[dict[str, Any]]:
    """What a client that has started everloop is answered."""
    told, is_answered = [], asyncio.Event()

    async def lines() -> AsyncIterator[bytes]:
        yield msgspec.json.encode(request)
        await is_answered.wait()

    async def write(line: bytes) -> None:
        told.append(msgspec.json.decode(line))
        is_answered.set()

    await serve_stdio(agent, "1.2.3", lines(), write)
    return told


def rpc(method: str, id: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


async def test_the_sdks_client_asks_and_the_conversation_goes_on(tmp_path: Path):
    model = ScriptedModel([Say("Hello."), Say("As I said: hello.")])
    async with serving(tmp_path, model) as served, served.client() as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("everloop", "1.2.3")
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            "ask",
            "search_history",
            "remember",
            "recall",
        ]
        first = await client.call_tool("ask", {"message": "hi"})
        second = await client.call_tool("ask", {"message": "what did you say?"})
        other = await client.call_tool("search_history", {"query": "hello"})
    assert first.structured_content == {"answer": "Hello.", "session": "mcp:default", "unknown": [], "files": []}
    assert (second.content[0].text, second.is_error) == ("As I said: hello.", False)
    assert ("assistant", "Hello.") in model.prompts[1].said
    assert other.content[0].text.count("assistant: ") == 2


async def test_progress_is_told_to_whoever_wants_it(tmp_path: Path):
    model, told = ScriptedModel([Call("list_dir", {"path": "."}), Say("Done.")]), []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    async with serving(tmp_path, model) as served, served.client() as client:
        await client.call_tool("ask", {"message": "look"}, progress_callback=note)
    assert told == [(1, "everloop uses list_dir"), (2, "everloop has used list_dir")]


async def test_what_a_program_has_remembered_is_told_as_strangers_words(tmp_path: Path):
    async with serving(tmp_path, ScriptedModel([])) as served, served.client() as client:
        await client.call_tool("remember", {"text": "The office is in Oslo."})
        again = await client.call_tool("remember", {"text": "The office is in Oslo."})
        recalled = await client.call_tool("recall", {"query": "office"})
        kept = await served.agent.store.facts("owner")
        memory = await served.agent.memory.text("owner", "MEMORY.md")
    assert again.content[0].text == "That is remembered already; nothing was changed."
    [fact] = kept
    assert isinstance(fact, Fact)
    assert (fact.text, fact.marked, "Oslo" in memory) == ("The office is in Oslo.", True, False)
    assert "what strangers wrote" in recalled.content[0].text


@pytest.mark.parametrize(
    "token, tools",
    [
        (f"{TOKEN}|read", ["search_history", "recall"]),
        (f"{TOKEN}|chat", ["ask", "remember"]),
        (f"{TOKEN}|approve", []),
    ],
)
async def test_a_token_sees_and_calls_what_its_scopes_are_for(tmp_path: Path, token: str, tools: list[str]):
    every = {
        "ask": {"message": "hi"},
        "search_history": {"query": "x"},
        "remember": {"text": "x"},
        "recall": {"query": "x"},
    }
    async with serving(tmp_path, ScriptedModel([Say("hi")])) as served:
        _, listed = await served.post(rpc("tools/list"), token)
        called = {}
        for name, args in every.items():
            _, answer = await served.post(rpc("tools/call", name=name, arguments=args), token)
            called[name] = "result" in answer and not answer["result"]["isError"]
    assert [each["name"] for each in listed["result"]["tools"]] == tools
    assert called == {name: name in tools for name in every}


async def test_nobody_hears_of_anothers_conversations(tmp_path: Path):
    model = ScriptedModel([Say("canary-of-anna"), Say("other")])
    async with serving(tmp_path, model) as served:
        ask = rpc("tools/call", name="ask", arguments={"message": "canary-question"})
        await served.post(ask, f"{TOKEN}:web:anna")
        _, found = await served.post(
            rpc("tools/call", name="search_history", arguments={"query": "canary-question"}), f"{TOKEN}:web:ben"
        )
        _, own = await served.post(
            rpc("tools/call", name="search_history", arguments={"query": "canary-question"}), f"{TOKEN}:web:anna"
        )
        await served.post(ask, f"{TOKEN}:web:ben")
    assert found["result"]["content"][0]["text"] == "[it was not said in any conversation]"
    assert "canary-question" in own["result"]["content"][0]["text"]
    assert "canary-of-anna" not in str(model.prompts[1].said)


async def test_tools_that_the_owner_exposes_run_by_the_policy_of_the_settings(tmp_path: Path):
    rules = [{"tool": "list_dir", "stance": "deny"}]
    exposed = {"gateway": {"mcp_tools": ["read_*", "list_dir", "exec"]}, "tools": {"policy": rules}}
    async with serving(tmp_path, ScriptedModel([]), **exposed) as served, served.client() as client:
        (tmp_path / "home" / "workspace" / "note.txt").write_text("milk")
        names = [tool.name for tool in (await client.list_tools()).tools]
        read = await client.call_tool("read_file", {"path": "note.txt"})
        denied = await client.call_tool("list_dir", {"path": "."})
        wrong = await client.call_tool("read_file", {"paths": "note.txt"})
    assert {"read_file", "list_dir", "exec"} <= {*names}
    assert not {"write_file", "spawn", "message"} & {*names}
    assert ("milk" in read.content[0].text, read.is_error) == (True, False)
    assert (denied.content[0].text, denied.is_error) == ("the settings do not allow this call of list_dir", True)
    assert wrong.is_error


async def test_commands_of_clients_are_each_one_of_its_own_and_found_again_by_their_person_alone(tmp_path: Path):
    exposed = {"gateway": {"mcp_tools": ["exec*"]}}

    async def said(name: str, token: str = TOKEN, **args: Any) -> str:
        _, answer = await served.post(rpc("tools/call", name=name, arguments=args), token)
        return str(answer["result"]["content"][0]["text"])

    async with serving(tmp_path, ScriptedModel([]), **exposed) as served:
        told = [await said("exec", command=f"echo {word}") for word in ("one", "two")]
        begun = await said("exec", command="echo of the owner; sleep 600", background=True)
        id = re.search(r"b0-\w+", begun)[0]
        own = await said("exec_output", id=id, wait=60)
        others = await said("exec_output", f"{TOKEN}:web:anna", id=id)
        await said("exec_stop", id=id)
    assert ["one" in told[0], "two" in told[1]] == [True, True]
    assert "of the owner" in own
    assert "of the owner" not in others


async def test_the_same_request_again_is_one_turn(tmp_path: Path):
    """A client that has lost its connection asks again: as long as nobody was given the answer, it is the same."""
    go_on = asyncio.Event()
    model = ScriptedModel([[Wait(go_on), Say("slow answer")], Say("another")])
    ask = rpc("tools/call", 7, name="ask", arguments={"message": "hi"})
    async with serving(tmp_path, model) as served:
        first = asyncio.ensure_future(served.post(ask))
        await model.called(1)
        first.cancel()
        await asyncio.wait([first])
        go_on.set()
        _, answer = await served.post(ask)
    assert answer["result"]["structuredContent"]["answer"] == "slow answer"
    assert model.calls == 1


async def test_a_cancelled_request_is_a_stopped_turn(tmp_path: Path):
    model = ScriptedModel([[Say("one "), Wait(asyncio.Event())]])
    async with serving(tmp_path, model) as served:
        asking = asyncio.ensure_future(served.post(rpc("tools/call", 7, name="ask", arguments={"message": "hi"})))
        await model.called(1)
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        assert await served.post(cancelled) == (202, None)
        _, answer = await asking
    assert answer["result"]["isError"]
    assert answer["result"]["content"][0]["text"] == "Stopped; what was said and done so far stays."


async def test_of_two_clients_with_one_token_each_gives_up_its_own_request(tmp_path: Path):
    """Both count their requests from the same number."""
    go_on = asyncio.Event()
    waits = {"one": asyncio.Event(), "other": go_on}
    model = ScriptedModel(lambda shown: [Wait(waits[shown.asked]), Say("Done.")])
    async with serving(tmp_path, model) as served:

        async def ask(who: str) -> Any:
            _, answer = await served.post(
                rpc("tools/call", 7, name="ask", arguments={"message": who, "conversation": who}), **clients[who]
            )
            return answer["result"]["content"][0]["text"]

        clients = {who: {SESSION_HEADER: await served.introduced()} for who in waits}
        one, other = (asyncio.ensure_future(ask(who)) for who in waits)
        await model.called(2)
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        await served.post(cancelled, **clients["one"])
        assert await one == "Stopped; what was said and done so far stays."
        go_on.set()
        assert await other == "Done."


ASKS = {"tools": {"policy": [{"tool": "write_file", "stance": "ask"}]}}


async def test_a_client_is_told_that_its_turn_waits_for_a_person_whom_it_cannot_answer_for(tmp_path: Path):
    """Neither by asking on, which withdraws nothing, nor by a command."""
    write = Call("write_file", {"path": "x.txt", "content": "hi"})
    model = ScriptedModel(lambda shown: Say("Done.") if shown.step else write if shown.asked == "write" else Say("Hm."))
    async with open_desk(home=tmp_path / "home", provider=model, settings=ASKS) as agent:
        [told] = await said_to_stdin(agent, asking("write"))
        [waiting] = await agent.approvals("mcp:default")
        refused = await said_to_stdin(agent, asking(f"/approve {waiting.id}"))
        again = await said_to_stdin(agent, asking("and now?"))
        still = await agent.approvals("mcp:default")
    assert told["result"]["isError"]
    assert told["result"]["content"][0]["text"] == (
        "A question waits in mcp:default and has to be answered first (see: everloop approvals); the message is kept "
        "and answered then. Whoever may allow it is asked; ask in this conversation later what came of it."
    )
    assert [each["error"]["code"] for each in refused] == [-32003]
    assert "A question waits" in again[0]["result"]["content"][0]["text"]
    assert still == [waiting]


async def test_what_a_person_allows_goes_on_where_the_client_was_told_that_it_waits(tmp_path: Path):
    model = ScriptedModel([Call("write_file", {"path": "x.txt", "content": "hi"}), Say("Written.")])
    body = rpc("tools/call", 7, name="ask", arguments={"message": "write"})
    async with serving(tmp_path, model, **ASKS) as served:
        _, told = await served.post(body)
        [waiting] = await served.agent.approvals("mcp:default")
        await served.agent.decide(waiting.id, True)
        _, again = await served.post(body)
    assert "A question waits in mcp:default" in told["result"]["content"][0]["text"]
    assert again["result"]["structuredContent"]["answer"] == "Written."


@pytest.mark.parametrize(
    "body, status, code",
    [
        (b"{", 400, -32700),
        (b"[]", 400, -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', 400, -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', 400, -32600),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', 400, -32600),
        (b'{"jsonrpc": "2.0", "id": 1}', 400, -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', 400, -32602),
        (rpc("server/discover"), 200, -32601),
        (rpc("resources/list"), 200, -32601),
        (rpc("tools/call", name="nothing"), 200, -32602),
        (rpc("tools/call", name="ask", arguments={"message": " "}), 200, -32602),
        (rpc("tools/call", name="ask", arguments={"message": "x", "conversation": "../x"}), 200, -32602),
        (rpc("tools/call", name="ask", arguments={"message": "x", "conversation": "x\n"}), 200, -32602),
        (rpc("tools/call", name="ask", arguments=[]), 200, -32602),
    ],
)
async def test_what_is_not_understood_is_told_by_its_code(tmp_path: Path, body: Any, status: int, code: int):
    async with serving(tmp_path, ScriptedModel([])) as served:
        answered, told = await served.post(body)
        assert (answered, told["error"]["code"]) == (status, code)


async def test_an_answer_to_nothing_and_a_notification_are_taken(tmp_path: Path):
    async with serving(tmp_path, ScriptedModel([])) as served:
        assert await served.post({"jsonrpc": "2.0", "id": 1, "result": {}}) == (202, None)
        assert await served.post({"jsonrpc": "2.0", "method": "notifications/initialized"}) == (202, None)


async def test_a_version_that_nobody_agreed_upon_is_refused(tmp_path: Path):
    async with serving(tmp_path, ScriptedModel([])) as served:
        status, _ = await served.post(rpc("ping"), **{"MCP-Protocol-Version": "1999-01-01"})
        assert status == 400
        assert await served.post(rpc("ping"), **{"MCP-Protocol-Version": "2025-06-18"}) == (
            200,
            {"jsonrpc": "2.0", "id": 1, "result": {}},
        )


async def test_without_a_token_nothing_is_told(tmp_path: Path):
    async with serving(tmp_path, ScriptedModel([])) as served:
        for method in ("initialize", "tools/list", "ping"):
            status, _ = await served.post(rpc(method), "wrong")
            assert status == 401


async def test_the_sdks_client_starts_everloop_and_speaks_through_its_stdin(tmp_path: Path):
    async with ModelServer([Say("Hello."), Say("Hello again.")]) as model:
        person = Person(tmp_path, model)
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "everloop", "mcp", "serve"], env=person.environment
        )
        async with Client(command) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            first = await client.call_tool("ask", {"message": "hi"})
        async with Client(command) as client:
            second = await client.call_tool("ask", {"message": "again"})
        assert names == ["ask", "search_history", "remember", "recall"]
        assert first.structured_content["answer"] == "Hello."
        assert second.structured_content["answer"] == "Hello again."
        assert "Hello." in [message.get("content") for message in model.requests[-1].body["messages"]]


async def test_a_client_that_reads_no_more_and_one_that_says_too_much_end_it_with_no_fault_of_ours(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async def lines() -> AsyncIterator[bytes]:
        yield msgspec.json.encode(rpc("ping"))
        await asyncio.Event().wait()

    async def gone(data: bytes) -> None:
        raise BrokenPipeError

    async def too_long() -> AsyncIterator[bytes]:
        yield msgspec.json.encode(rpc("ping"))
        raise EverloopError("too long")

    async with serving(tmp_path, ScriptedModel([])) as served:
        await serve_stdio(served.agent, "1.2.3", lines(), gone)
        with pytest.raises(EverloopError, match="too long"):
            await serve_stdio(served.agent, "1.2.3", too_long(), gone)
    assert [each for each in without_strays(caplog.records) if each.levelname == "ERROR"] == []


async def test_without_a_client_that_speaks_through_a_pipe_it_says_what_it_is_for():
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "everloop", "mcp", "serve"), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    _, err = await process.communicate()
    assert (process.returncode, err.decode()) == (1, f"everloop: {NO_CLIENT}\n")
