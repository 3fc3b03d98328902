"""What was allowed of MCP servers: kept whole, for all processes, over both databases."""

import asyncio

from msgspec.structs import replace

from everloop.core.tool import Effect
from everloop.ports.mcp import GONE, McpDefinition, McpPin

from .conftest import Home


def pin(tool: str, server: str = "files", body: str = "{}", effect: Effect = Effect.READ) -> McpPin:
    return McpPin(
        server=server, definition=McpDefinition(tool, body), effect=effect, setup="abc", by="owner", at=1000.0
    )


async def test_what_was_allowed_is_read_by_server_and_tool_in_every_process(home: Home):
    here, there = await home.connect(), await home.connect()
    await here.mcp.pin_mcp([pin("write"), pin("list"), pin("now", "clock")])
    assert await there.mcp.mcp_pins() == [pin("now", "clock"), pin("list"), pin("write")]
    assert await there.mcp.mcp_pins("clock") == [pin("now", "clock")]
    assert await there.mcp.mcp_pins("nobody") == []


async def test_what_is_allowed_again_takes_the_place_of_what_was_and_keeps_its_count(home: Home):
    store = await home.connect()
    await store.mcp.pin_mcp([pin("list")])
    await store.mcp.note_mcp_use("files", "list")
    await store.mcp.note_mcp_use("files", "list", 2)
    await store.mcp.note_mcp_found("files", {"list": '{"a":1}'})
    [before] = await store.mcp.mcp_pins()
    assert (before.found, before.used, before.last_used > 1000) == ('{"a":1}', 3, True)
    await store.mcp.pin_mcp([pin("list", body='{"a":1}', effect=Effect.UNSAFE)])
    [after] = await store.mcp.mcp_pins()
    assert replace(after, last_used=0.0) == replace(pin("list", body='{"a":1}', effect=Effect.UNSAFE), used=3)


async def test_the_time_of_a_pin_is_the_stores_where_none_is_given(home: Home):
    store = await home.connect()
    await store.mcp.pin_mcp([replace(pin("list"), at=0.0)])
    [kept] = await store.mcp.mcp_pins()
    assert kept.at > 1_700_000_000


async def test_what_a_server_says_by_now_is_noted_once_and_tells_other_processes(home: Home):
    here, there = await home.connect(), await home.connect()
    await here.mcp.pin_mcp([pin("list"), pin("write")])
    before = await there.mcp.mcp_version()
    assert await here.mcp.note_mcp_found("files", {"list": "", "write": ""}) is False
    assert await there.mcp.mcp_version() == before
    assert await here.mcp.note_mcp_found("files", {"list": GONE, "write": "", "new": "{}"}) is True
    assert await here.mcp.note_mcp_found("files", {"list": GONE}) is False
    assert [each.found for each in await there.mcp.mcp_pins()] == [GONE, ""]
    assert await there.mcp.mcp_version() > before


async def test_a_server_is_allowed_by_itself_once_and_never_again_until_it_is_forgotten(home: Home):
    stores = [await home.connect() for _ in range(3)]
    first = await asyncio.gather(*(store.mcp.pin_mcp_first("files", [pin("list")]) for store in stores))
    assert sorted(first) == [False, False, True]
    store = stores[0]
    assert await store.mcp.unpin_mcp("files", ["list", "other"]) == 1
    assert (await store.mcp.pin_mcp_first("files", [pin("list")]), await store.mcp.mcp_pins()) == (False, [])
    assert await store.mcp.mcp_seen() == {"files"}
    assert await store.mcp.unpin_mcp("files") == 0
    assert await store.mcp.mcp_seen() == frozenset()
    assert (await store.mcp.pin_mcp_first("files", [pin("list")]), await store.mcp.mcp_pins()) == (True, [pin("list")])


async def test_what_is_not_allowed_any_more_is_gone_and_the_version_only_grows(home: Home):
    store = await home.connect()
    versions = [await store.mcp.mcp_version()]
    await store.mcp.pin_mcp([pin("list"), pin("write"), pin("now", "clock")])
    versions.append(await store.mcp.mcp_version())
    assert await store.mcp.unpin_mcp("files", ["write"]) == 1
    versions.append(await store.mcp.mcp_version())
    assert await store.mcp.unpin_mcp("files") == 1
    versions.append(await store.mcp.mcp_version())
    assert await store.mcp.mcp_pins() == [pin("now", "clock")]
    assert versions == sorted(set(versions))


async def test_a_call_that_is_counted_is_no_other_version(home: Home):
    store = await home.connect()
    await store.mcp.pin_mcp([pin("list")])
    before = await store.mcp.mcp_version()
    await store.mcp.note_mcp_use("files", "list")
    await store.mcp.note_mcp_use("files", "unknown")
    assert await store.mcp.mcp_version() == before


async def test_many_processes_allow_and_note_at_once_and_none_waits_for_another_for_ever(home: Home):
    stores = [await home.connect() for _ in range(4)]
    tools = [f"t{n}" for n in range(12)]
    async with asyncio.timeout(60):
        await asyncio.gather(
            *(
                store.mcp.pin_mcp([pin(tool) for tool in tools[:: 1 if n % 2 else -1]])
                for n, store in enumerate(stores)
            ),
            *(store.mcp.note_mcp_found("files", dict.fromkeys(tools, GONE)) for store in stores),
        )
    assert [each.definition.tool for each in await stores[0].mcp.mcp_pins()] == sorted(tools)


async def test_what_was_allowed_meanwhile_is_not_taken_for_another(home: Home):
    store = await home.connect()
    await store.mcp.pin_mcp([pin("list", body='{"a":1}')])
    assert await store.mcp.note_mcp_found("files", {"list": '{"a":1}'}) is False
    assert [each.found for each in await store.mcp.mcp_pins()] == [""]
