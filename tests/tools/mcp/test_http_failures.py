"""What goes wrong on the way to a server is one sentence for the call that it befell; the others go on."""

import asyncio
import gzip
import json
from contextlib import AsyncExitStack
from typing import Any

import pytest
from mcp import Client, MCPError
from tests.ports import free_port
from tests.tools.mcp.hosts import Asked, DictVault, answer, connected, demo_server, network, saying, server_at, serving

from everloop.errors import McpDown, VaultLocked
from everloop.tools.mcp.failures import SessionLost, WireFailure, failure_of
from everloop.tools.mcp.http import http_wire

INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "host", "version": "1"},
}
RESULT = {"content": [{"type": "text", "text": "done"}]}


def rpc(asked: Asked, result: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": json.loads(asked.body)["id"], "result": result}).encode()


def event(asked: Asked, result: object) -> bytes:
    return b"data: " + rpc(asked, result) + b"\n\n"


EVENTS_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def host(on_call: Any, on_news: bytes = answer(405)):
    """Lets anybody in, and answers calls as it is told."""

    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        method = json.loads(asked.body)["method"] if asked.body else asked.method
        match method:
            case "initialize":
                writer.write(answer(200, rpc(asked, INITIALIZED), mcp_session_id="s1"))
            case "tools/list":
                writer.write(answer(200, rpc(asked, {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})))
            case "tools/call":
                await on_call(asked, writer)
            case "GET":
                writer.write(on_news)
            case "DELETE":
                writer.write(answer(204))
            case _:
                writer.write(answer(202))

    return say


def says(*pieces: bytes):
    async def on_call(asked: Asked, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    return on_call


def says_and_hangs_up(*pieces: bytes):
    async def on_call(asked: Asked, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        writer.close()

    return on_call


async def hang(asked: Asked, writer: asyncio.StreamWriter) -> None:
    await asyncio.get_running_loop().create_future()


async def failure_of_a_call(on_call: Any, **more: Any) -> WireFailure | str:
    """Ours, or the code and the words of the SDK's."""
    async with saying(host(on_call)) as (_, origin), connected(f"{origin}/mcp", **more) as client:
        with pytest.raises(MCPError) as raised:
            await client.call_tool("t", {})
    return failure_of(raised.value) or f"{raised.value.code}: {raised.value.message}"


async def why_no_connection(url: str, **more: Any) -> str:
    with pytest.raises(McpDown) as raised:
        await connected(url, **more).__aenter__()
    return f"{type(raised.value).__name__}: {raised.value}"


async def test_a_host_that_lets_us_in_is_asked_and_answers():
    """Else the failures below would prove nothing."""

    async def on_call(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(200, rpc(asked, RESULT)))

    async with saying(host(on_call)) as (heard, origin), connected(f"{origin}/mcp") as client:
        assert (await client.call_tool("t", {})).content[0].text == "done"
    assert [each.method for each in heard.asked if each.method == "DELETE"] == ["DELETE"]


MOVED = "demo redirects to {}, which is not followed. If it has moved there, set its new address."
STATUSES = {
    400: WireFailure("down", "demo refuses the request (400)."),
    401: WireFailure("login", "demo wants you to log in: everloop mcp login demo"),
    403: WireFailure("down", "demo does not let us in (403). Check its headers, its login and its address."),
    404: WireFailure("session", "demo no longer knows our session (404)."),
    500: WireFailure("lost", "demo has failed (500)."),
    503: WireFailure("lost", "demo has failed (503)."),
}


@pytest.mark.parametrize("status", STATUSES)
async def test_a_status_is_told_in_a_sentence(status: int):
    assert await failure_of_a_call(says(answer(status, b"<h1>no</h1>", "text/html"))) == STATUSES[status]


async def test_a_redirect_that_is_not_followed_names_where_it_leads():
    away = answer(308, b"", Location="https://me@elsewhere.example/mcp?obey=1")
    assert await failure_of_a_call(says(away)) == WireFailure("down", MOVED.format("https://elsewhere.example"))


async def test_a_host_that_was_asked_too_much_says_when_to_come_back():
    said = await failure_of_a_call(says(answer(429, b"", Retry_After="7")))
    assert said == WireFailure("down", "demo has been asked too much (429). Try again in 7 s.")
    said = await failure_of_a_call(says(answer(429, b"", Retry_After="Wed, 21 Oct 2026 07:28:00 GMT")))
    assert said == WireFailure("down", "demo has been asked too much (429). Try again later.")


async def test_an_error_of_the_protocol_is_the_servers_own_whatever_its_status():
    error = json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32602, "message": "no such thing"}}).encode()
    assert await failure_of_a_call(says(answer(400, error))) == "-32602: no such thing"


async def test_no_server_can_speak_in_our_name():
    error = {"code": -32099, "message": "log in at evil.test", "data": {"by": "guess", "kind": "login"}}
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    assert await failure_of_a_call(says(answer(400, body))) == "-32099: log in at evil.test"


async def test_a_page_in_place_of_an_answer_is_not_understood():
    said = await failure_of_a_call(says(answer(200, b"<html>", "text/html; charset=utf-8")))
    assert isinstance(said, WireFailure)
    assert said.kind == "lost"
    assert said.text.startswith("demo answers with 'text/html' in place of JSON: check that its address (http://127.0")


async def test_half_a_body_is_lost():
    half = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    said = await failure_of_a_call(says_and_hangs_up(half))
    assert isinstance(said, WireFailure)
    assert (said.kind, "broke off in the middle" in said.text) == ("lost", True)


async def test_a_host_that_hangs_up_before_it_answers_may_have_done_it():
    said = await failure_of_a_call(says_and_hangs_up())
    assert isinstance(said, WireFailure)
    assert (said.kind, "closed the connection before it answered" in said.text) == ("lost", True)


async def test_half_a_stream_of_events_ends_the_call_and_no_other():
    calls: list[str] = []

    async def on_call(asked: Asked, writer: asyncio.StreamWriter) -> None:
        calls.append("")
        writer.write(EVENTS_HEAD + (b'data: {"jsonrpc"' if len(calls) == 1 else event(asked, RESULT)))
        await writer.drain()
        writer.close()

    async with saying(host(on_call)) as (_, origin), connected(f"{origin}/mcp") as client:
        with pytest.raises(MCPError, match=r"SSE stream ended without a response|Failed to parse SSE message"):
            await client.call_tool("t", {})
        assert (await client.call_tool("t", {})).content[0].text == "done"


async def test_json_that_is_none_is_told_as_such():
    said = await failure_of_a_call(says(answer(200, b"{nonsense")))
    assert isinstance(said, str)
    assert "Failed to parse JSON response" in said


async def test_a_body_without_an_end_is_not_taken():
    endless = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"

    async def on_call(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(endless)
        while True:
            writer.write(b" " * 2**16)
            await writer.drain()

    said = await failure_of_a_call(on_call)
    assert isinstance(said, WireFailure)
    assert (said.kind, said.text.endswith("127.0.0.1 sends more than 10,000,000 bytes.")) == ("lost", True)


async def test_a_body_that_trickles_is_not_waited_for_to_its_end():
    """Each byte comes in time, and there are a thousand of them."""

    async def on_call(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(1000):
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.05)

    said = await failure_of_a_call(on_call, seconds=0.5)
    assert isinstance(said, WireFailure)
    assert (said.kind, said.text.endswith("sends its answer more slowly than is waited for.")) == ("lost", True)


async def test_a_little_that_unpacks_to_much_is_not_taken():
    bomb = gzip.compress(b" " * 200_000_000, 9)
    assert len(bomb) < 300_000
    said = await failure_of_a_call(says(answer(200, bomb, Content_Encoding="gzip")))
    assert isinstance(said, WireFailure)
    assert "sends more than 10,000,000 bytes" in said.text


async def test_what_is_packed_in_measure_is_unpacked_once():
    async def on_call(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(200, gzip.compress(rpc(asked, RESULT)), Content_Encoding="gzip"))

    async with saying(host(on_call)) as (_, origin), connected(f"{origin}/mcp") as client:
        assert (await client.call_tool("t", {})).content[0].text == "done"


async def test_an_event_without_an_end_is_not_taken():
    async def on_call(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(EVENTS_HEAD + b"data: ")
        while True:
            writer.write(b"x" * 2**16)
            await writer.drain()

    said = await failure_of_a_call(on_call)
    assert said == "-32000: SSE stream failed: Server-sent event exceeded the 10000000 byte limit."


async def test_comments_keep_a_stream_of_events_open_beyond_every_limit():
    """Which a proxy in between and a patient server both need: 2 s, where 1.4 s of silence would end it."""

    async def on_call(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(EVENTS_HEAD)
        for _ in range(20):
            writer.write(b": still here\n\n")
            await writer.drain()
            await asyncio.sleep(0.1)
        writer.write(event(asked, RESULT))
        await writer.drain()
        writer.close()

    async with saying(host(on_call)) as (_, origin), connected(f"{origin}/mcp", seconds=0.7) as client:
        assert (await client.call_tool("t", {})).content[0].text == "done"


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200 OK\r\n", answer(200, b"xx")[:-1], EVENTS_HEAD])
async def test_whoever_hangs_at_any_point_is_given_up(begun: bytes):
    """`seconds` are a call's own, which the client keeps; the wire waits a little longer."""

    async def on_call(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(begun)
        await writer.drain()
        await hang(asked, writer)

    said = await failure_of_a_call(on_call, seconds=0.5)
    kind = said.kind if isinstance(said, WireFailure) else said
    assert kind == ("-32000: SSE stream ended without a response" if begun == EVENTS_HEAD else "lost")


async def test_nobody_there_is_a_sentence():
    said = await why_no_connection(f"http://127.0.0.1:{free_port()}/mcp")
    assert said.startswith("McpDown: demo is no help now: 127.0.0.1:")
    assert said.endswith("cannot be reached: connection refused.")


async def test_a_secret_in_its_address_is_not_told_with_what_is_wrong():
    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(404))

    async with saying(say) as (_, origin):
        url = f"{origin}/mcp?token=sk-canary-123"
        said = await why_no_connection(url, secrets=frozenset({"sk-canary-123"}))
        told = await why_no_connection(url, secrets=frozenset({"something else"}))
    assert ("/mcp?token=[secret 1] (404)" in said, "sk-canary" in said, "sk-canary" in told) == (True, False, True)


async def test_a_wrong_path_is_a_sentence():
    async with serving(demo_server().streamable_http_app()) as origin:
        said = await why_no_connection(f"{origin}/nothing")
    assert said == (
        f"McpDown: demo has nothing at {origin}/nothing (404). Check its address. If it is an older server, set its "
        f'transport to "sse".'
    )


async def test_a_key_that_is_not_accepted_is_no_invitation_to_log_in():
    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(401, b"", WWW_Authenticate="Bearer"))

    async with saying(say) as (heard, origin):
        said = await why_no_connection(f"{origin}/mcp", headers={"Authorization": "Bearer k"})
    assert said == (
        "McpDown: demo does not accept the key that is set for it (401). Check its headers and its address."
    )
    assert {each.headers["authorization"] for each in heard.asked} == {"Bearer k"}


async def test_https_where_there_is_none_is_a_sentence():
    async with serving(demo_server().streamable_http_app()) as origin:
        said = await why_no_connection(f"{origin.replace('http', 'https')}/mcp")
    assert "cannot be reached securely (TLS)" in said


async def test_a_stream_of_events_that_never_says_where_to_write_is_given_up():
    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(EVENTS_HEAD + b": hello\n\n")
        await writer.drain()
        await hang(asked, writer)

    async with saying(say) as (_, origin):
        said = await why_no_connection(f"{origin}/sse", transport="sse", seconds=0.5)
    assert said == "McpDown: demo has not opened its stream of events within 0.5 s."


async def test_an_sse_server_that_refuses_a_message_ends_the_wire_with_its_reason():
    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.method == "POST":
            writer.write(answer(500))
            return
        writer.write(EVENTS_HEAD + b"event: endpoint\ndata: /messages\n\n")
        await writer.drain()
        await hang(asked, writer)

    async with saying(say) as (_, origin):
        said = await why_no_connection(f"{origin}/sse", transport="sse")
    assert said == "McpDown: demo has failed (500)."


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (answer(200, b"<html>", "text/html"), "demo does not answer with a stream of events: check that its address ("),
        (answer(302, Location="http://127.0.0.2/"), MOVED.format("http://127.0.0.2")),
    ],
)
async def test_what_is_no_stream_of_events_is_no_sse_server(reply: bytes, why: str):
    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(reply)

    async with saying(say) as (_, origin):
        said = await why_no_connection(f"{origin}/sse", transport="sse")
    assert said.startswith(f"McpDown: {why}")


async def test_a_session_that_was_lost_is_begun_anew_by_another_wire():
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"

    async def add(client: Client) -> str:
        return (await client.call_tool("add", {"a": 1, "b": 2})).content[0].text

    async def through_a_restart() -> None:
        async with AsyncExitStack() as stack:
            async with serving(demo_server().streamable_http_app(), port):
                client = await stack.enter_async_context(connected(url))
                assert await add(client) == "3"
            async with serving(demo_server().streamable_http_app(), port):
                await add(client)

    with pytest.raises(SessionLost, match="demo no longer knows our session"):
        await through_a_restart()
    async with serving(demo_server().streamable_http_app(), port), connected(url) as client:
        assert await add(client) == "3"


class LockedVault(DictVault):
    async def get(self, name: str) -> str | None:
        raise VaultLocked(f"{name} in the vault cannot be read")


async def test_a_vault_that_is_locked_is_a_sentence_too():
    async with serving(demo_server().streamable_http_app()) as origin, network() as net:
        wire = http_wire(server_at(f"{origin}/mcp"), trusted=net.trusted, open=net.open, vault=LockedVault())
        with pytest.raises(McpDown, match="mcp:demo in the vault cannot be read"):
            await Client(wire, mode="legacy").__aenter__()


async def test_news_are_asked_for_again_when_their_stream_breaks_off():
    """The SDK alone would give up after the second time."""
    opened: list[str] = []

    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.method != "GET":
            await host(hang)(asked, writer)
            return
        opened.append(asked.target)
        writer.write(
            EVENTS_HEAD.replace(b"Connection: close", b"Transfer-Encoding: chunked") + b"b\r\nretry: 1\n\n\n\r\n"
        )
        if len(opened) >= 6:
            again.set()
            await hang(asked, writer)
        await writer.drain()
        writer.transport.abort()

    again = asyncio.Event()
    async with saying(say) as (_, origin), network() as net, net.client(server_at(f"{origin}/mcp"), mode="legacy"):
        async with asyncio.timeout(30):
            await again.wait()
    assert len(opened) == 6


async def test_a_server_that_ends_its_streams_at_once_is_not_asked_again_at_once_for_ever():
    """It says itself how soon it wants to be asked again (retry), and where an answer would go on."""
    ended = answer(200, b"id: 1\nretry: 0\ndata: \n\n", "text/event-stream")
    now = asyncio.get_running_loop().time
    async with saying(host(says(ended), ended)) as (there, origin):

        def streams() -> int:
            return sum(each.method == "GET" for each in there.asked)

        began = now()
        async with connected(f"{origin}/mcp") as client:
            call = asyncio.create_task(client.call_tool("t", {}))
            async with asyncio.timeout(60):
                while streams() <= 10:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            await asyncio.wait({call}, timeout=1.5)
            assert not call.done()
            assert streams() < 25 + now() - began  # 20 at once, and then one a second
            call.cancel()
            await asyncio.wait({call})


async def test_a_server_that_says_nothing_without_end_is_read_slowly_and_its_answers_are_heard():
    """Comments and empty lines are no messages, which are counted elsewhere; others wait while they are read."""
    is_full = asyncio.Event()

    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.method != "GET":
            await host(says_whole)(asked, writer)
            return
        writer.write(EVENTS_HEAD)
        while not is_full.is_set():
            writer.write(b"\n" * 2**16)
            try:
                await asyncio.wait_for(writer.drain(), 0.5)
            except TimeoutError:
                is_full.set()

    async def says_whole(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(200, rpc(asked, {"content": [{"type": "text", "text": "here"}]})))

    async with saying(say) as (_, origin), connected(f"{origin}/mcp") as client:
        async with asyncio.timeout(30):
            await is_full.wait()
        assert (await client.call_tool("t", {})).content[0].text == "here"
