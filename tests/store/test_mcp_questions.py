"""What MCP servers ask people: asked in one process, answered in any, over both databases."""

import pytest
from msgspec.structs import replace

from everloop.ports.mcp_questions import MOST_OPEN, McpFilledIn, McpQuestion

from .conftest import Home

ASKED = McpQuestion(
    id="3f9a01", person="ann", session="fake:chat", server="shop", message="Which size?", form={"type": "object"}
)
THREE = McpFilledIn({"size": 3})


async def test_what_is_asked_in_one_process_is_answered_once_in_another_by_whom_it_is_asked(home: Home):
    here, there = await home.connect(), await home.connect()
    assert await here.mcp_questions.ask(ASKED) is True
    assert (
        await there.mcp_questions.waiting("ann"),
        await there.mcp_questions.waiting("bob"),
    ) == ([ASKED], [])
    assert await there.mcp_questions.take(ASKED.id, "bob", THREE) is False
    assert await here.mcp_questions.answer_to(ASKED.id) is None
    assert await there.mcp_questions.take(ASKED.id, "ann", THREE) is True
    assert await there.mcp_questions.take(ASKED.id, "ann", McpFilledIn()) is False
    assert (await here.mcp_questions.answer_to(ASKED.id), await there.mcp_questions.waiting("ann")) == (
        THREE,
        [],
    )
    await here.mcp_questions.end(ASKED.id)
    assert await home.rows("SELECT * FROM mcp_questions") == []


async def test_a_question_ends_with_the_process_that_asks(home: Home):
    here, there = await home.connect(), await home.connect()
    await here.mcp_questions.ask(ASKED)
    await home.lose(here)
    await home.write("UPDATE mcp_questions SET until = until - 31")
    assert await there.mcp_questions.waiting("ann") == []
    assert await there.mcp_questions.take(ASKED.id, "ann", THREE) is False
    await there.mcp_questions.ask(replace(ASKED, id="other"))
    assert await home.rows("SELECT id FROM mcp_questions") == [("other",)]


async def test_a_question_is_open_as_long_as_whoever_asks_says_so(home: Home):
    here, there = await home.connect(), await home.connect()
    await here.mcp_questions.ask(ASKED)
    await home.write("UPDATE mcp_questions SET until = until - 31")
    assert await there.mcp_questions.waiting("ann") == []
    assert await here.mcp_questions.keep_asking(ASKED.id) is True
    assert await there.mcp_questions.waiting("ann") == [ASKED]
    await there.mcp_questions.end(ASKED.id)
    assert await here.mcp_questions.keep_asking(ASKED.id) is False


@pytest.mark.parametrize("who", ["ann", "bob"])
async def test_nobody_is_asked_more_than_they_can_read_and_no_name_stands_for_two(home: Home, who: str):
    store = await home.connect()
    asked = [await store.mcp_questions.ask(replace(ASKED, id=f"{n:06x}", person="ann")) for n in range(MOST_OPEN)]
    further = await store.mcp_questions.ask(replace(ASKED, id="another", person=who))
    assert (all(asked), further, await store.mcp_questions.ask(replace(ASKED, id="000000"))) == (
        True,
        who == "bob",
        False,
    )
