"""A client that asks again by itself does not have the work done again: whatever it was that it lost its answer to."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import openai
import pytest
from aiohttp import ClientSession, ClientTimeout

from everloop.core.people import Role
from everloop.core.tool import Effect
from everloop.errors import (
    BadRequest,
    ContextOverflow,
    HostFailed,
    HostTimeout,
    HostUnreachable,
    KeyRefused,
    OutOfCredit,
    ProviderError,
    RateLimited,
    TurnFailed,
)
from everloop.gateway.http.errors import refused_at_http_door
from everloop.gateway.http.repeats import WINDOW, event_of
from everloop.gateway.http.turn_errors import effects_in, is_retried
from everloop.ports.tools import Tool
from everloop.testing import ByConversation, Call, Fail, Say, ScriptedModel, Wait
from everloop.tools.decorator import tool
from tests.gateway.http_doors import TOKEN, Serve, Served

# What their sources say, and what was seen of them: docs/openai.md has the versions.
RETRIES: dict[str, Callable[[int, bool], bool]] = {
    "openai": lambda status, told: not told and (status in (408, 409, 429) or status >= 500),
    "litellm, max_retries": lambda status, told: not told and (status in (408, 409, 429) or status >= 500),
    "litellm, num_retries": lambda status, told: True,
    "AI SDK": lambda status, told: status in (408, 409, 429) or status >= 500,
    "langchain": lambda status, told: not told and (status in (408, 409, 429) or status >= 500),
    "urllib3 and others": lambda status, told: status in (408, 413, 425, 429) or status >= 500,
}
ATTEMPTS = 3
FAILURES: list[ProviderError] = [
    HostFailed("the host answered 500"),
    RateLimited("slow down"),
    HostTimeout("no byte in time"),
    HostUnreachable("nobody there"),
    KeyRefused("no such key"),
    OutOfCredit("nothing left"),
    ContextOverflow("too long"),
    BadRequest("not like this"),
]
HI = {"model": "everloop", "messages": [{"role": "user", "content": "pay bob"}]}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": HI,
    "/v1/responses": {"model": "everloop", "input": "pay bob"},
    "/message": {"platform": "irc", "platform_user_id": "7", "content": "pay bob"},
}


class Ledger:
    """A tool with an effect that counts, and one that holds on until it is let go."""

    def __init__(self, effect: Effect = Effect.UNSAFE) -> None:
        self.paid = 0
        self.began = asyncio.Event()
        self.go = asyncio.Event()
        self.go.set()

        @tool(effect, permission=Role.GUEST)
        async def pay() -> str:
            """Pay."""
            self.paid += 1
            self.began.set()
            await self.go.wait()
            return "paid"

        self.tool: Tool = pay


def pays_and(*then: Any) -> ScriptedModel:
    return ScriptedModel(ByConversation([Call("pay"), *then]))


async def post(served: Served, path: str, body: dict[str, Any], seconds: float = 30, **headers: str) -> Any:
    """Status, headers and body; None when the client has lost its patience."""
    headers = {"Authorization": f"Bearer {TOKEN}", **headers}
    async with ClientSession(headers=headers, timeout=ClientTimeout(seconds)) as session:
        try:
            async with session.post(f"{served.url}{path}", json=body) as answer:
                return answer.status, dict(answer.headers), await answer.json(content_type=None)
        except TimeoutError:
            return None


async def lose(served: Served, ledger: Ledger, path: str, body: dict[str, Any]) -> None:
    """A client that goes away in the middle of its turn."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with ClientSession(headers=headers) as session:
        asking = asyncio.ensure_future(session.post(f"{served.url}{path}", json=body))
        await ledger.began.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


@pytest.mark.parametrize("client", RETRIES)
@pytest.mark.parametrize("path", BODIES)
async def test_whatever_a_client_retries_the_work_is_done_once(serve: Serve, client: str, path: str):
    for failure in FAILURES:
        ledger = Ledger()
        async with serve(pays_and(Fail(failure)), tools=[ledger.tool]) as served:
            body = {**BODIES[path], "user": repr(failure)}
            if path == "/message":  # each in a conversation of its own: an overflow would cover what came before
                body["platform_channel_id"] = type(failure).__name__
            for _ in range(ATTEMPTS):
                status, headers, told = await post(served, path, body)
                if not RETRIES[client](status, headers.get("x-should-retry") == "false"):
                    break
        assert (ledger.paid, is_retried(status)) == (1, False)
        assert told["error"]["ran"] == ["pay"]
        assert told["error"]["session"] in told["error"]["message"]
        assert told["error"]["thread"] in told["error"]["message"]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.kind)
async def test_without_an_effect_a_failure_has_its_own_status_and_may_be_tried_again(serve: Serve, failure):
    ledger = Ledger(Effect.READ)
    async with serve(pays_and(Fail(failure)), tools=[ledger.tool]) as served:
        said = [await post(served, "/v1/chat/completions", HI) for _ in range(2)]
    own = refused_at_http_door(_failed(failure)).status
    assert [(status, "ran" in told["error"]) for status, _, told in said] == [(own, False)] * 2
    assert ledger.paid == 2


def _failed(failure: ProviderError) -> Exception:
    return TurnFailed(str(failure), "context" if failure.kind == "overflow" else failure.kind, "")


@pytest.mark.parametrize("path", BODIES)
async def test_the_same_request_after_such_a_failure_is_told_of_the_first_also_after_a_restart(serve: Serve, path: str):
    ledger = Ledger()
    said = []
    for _ in range(2):
        async with serve(pays_and(Fail(HostFailed("gone"))), tools=[ledger.tool]) as served:
            said += [(await post(served, path, BODIES[path]))[2]["error"] for _ in range(2)]
    assert ledger.paid == 1
    assert said == [said[0]] * 4


async def test_after_a_while_the_same_request_is_another_one(serve: Serve, tmp_path: Path):
    ledger = Ledger()
    async with serve(pays_and(Fail(HostFailed("gone"))), tools=[ledger.tool]) as served:
        await post(served, "/v1/chat/completions", HI)
        database = apsw.Connection(str(tmp_path / "home" / "everloop.db"))
        database.set_busy_timeout(10_000)
        database.execute("UPDATE entries SET at = at - ?", (WINDOW - 60,))
        await post(served, "/v1/chat/completions", HI)
        assert ledger.paid == 1
        database.execute("UPDATE entries SET at = at - 61")
        await post(served, "/v1/chat/completions", HI)
    assert ledger.paid == 2


@pytest.mark.parametrize("path", [*BODIES, "/message/stream"])
async def test_whoever_goes_away_and_asks_again_is_given_the_answer_of_the_first_turn(serve: Serve, path: str):
    ledger = Ledger()
    ledger.go.clear()
    body = BODIES.get(path) or BODIES["/message"]
    async with serve(pays_and(Say("all paid")), tools=[ledger.tool]) as served:
        await lose(served, ledger, path, body)
        again = asyncio.ensure_future(post(served, path.removesuffix("/stream"), body))
        ledger.go.set()
        status, _, told = await again
    assert (status, ledger.paid) == (200, 1)
    assert "all paid" in str(told)


async def test_an_answer_that_nobody_was_there_to_take_is_given_to_whoever_asks_next_and_once(
    serve: Serve,
):
    ledger = Ledger()
    ledger.go.clear()
    async with serve(pays_and(Say("all paid")), tools=[ledger.tool]) as served:
        await lose(served, ledger, "/v1/chat/completions", HI)
        with served.agent.events() as events:
            ledger.go.set()
            async for event in events:
                if event.name == "thinking_finished":
                    break
        for expected in (1, 2, 3):  # it is given once; what is asked after that is asked on purpose
            assert (await post(served, "/v1/chat/completions", HI))[0] == 200
            assert ledger.paid == expected


async def test_an_answer_that_the_page_has_shown_has_not_been_given_to_whoever_asked(serve: Serve):
    ledger = Ledger()
    ledger.go.clear()
    session = {"X-Everloop-Session": "api:page"}
    async with serve(pays_and(Say("all paid")), tools=[ledger.tool]) as served:
        headers = {"Authorization": f"Bearer {TOKEN}", **session}
        async with ClientSession(headers=headers) as client:
            asking = asyncio.ensure_future(client.post(f"{served.url}/v1/chat/completions", json=HI))
            await ledger.began.wait()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        ledger.go.set()
        await served.agent.finish("api:page")
        unshown = await served.agent.unshown("api:page")
        await served.agent.acknowledge([each.key for each in unshown])
        assert (await post(served, "/v1/chat/completions", HI, **session))[0] == 200
    assert ledger.paid == 1


async def test_a_turn_that_was_cut_off_with_the_process_is_waited_for_and_not_begun_again(serve: Serve):
    ledger = Ledger(Effect.IDEMPOTENT)  # so that what was cut off runs again, as such tools may
    ledger.go.clear()
    async with serve(pays_and(Say("all paid")), tools=[ledger.tool], settings=_HASTY) as served:
        await lose(served, ledger, "/v1/chat/completions", HI)
    ledger.go.set()
    async with serve(pays_and(Say("all paid")), tools=[ledger.tool]) as served:
        said = (await post(served, "/v1/chat/completions", HI))[2]
        threads = await served.agent.store.conversations("owner", archived=True)
    assert said["choices"][0]["message"]["content"] == "all paid"
    assert len(threads) == 1


_HASTY = {"agents": {"shutdown_seconds": 0}}


async def test_who_repeats_a_message_on_purpose_has_another_turn_in_a_session_and_without(serve: Serve):
    ledger = Ledger()
    async with serve(pays_and(Say("paid")), tools=[ledger.tool]) as served:
        for headers in ({}, {"X-Everloop-Session": "api:mine"}):
            for _ in range(3):
                assert (await post(served, "/v1/chat/completions", HI, **headers))[0] == 200
    assert ledger.paid == 6


async def test_the_same_from_two_who_both_wait_are_two_turns(serve: Serve):
    ledger = Ledger()
    ledger.go.clear()
    async with serve(pays_and(Say("paid")), tools=[ledger.tool]) as served:
        first = asyncio.ensure_future(post(served, "/v1/chat/completions", HI))
        await ledger.began.wait()
        ledger.began.clear()
        second = asyncio.ensure_future(post(served, "/v1/chat/completions", HI))
        await ledger.began.wait()
        ledger.go.set()
        assert [(await first)[0], (await second)[0]] == [200, 200]
    assert ledger.paid == 2


async def test_another_token_another_session_or_another_word_is_another_request(serve: Serve):
    ledger = Ledger()
    async with serve(pays_and(Fail(HostFailed("gone"))), tools=[ledger.tool]) as served:
        for body, headers in (
            (HI, {}),
            (HI, {"X-Everloop-Session": "api:one"}),
            ({**HI, "temperature": 0.5}, {}),
            (HI, {"Authorization": f"Bearer {TOKEN}:owner"}),
        ):
            assert (await post(served, "/v1/chat/completions", body, **headers))[0] == 424
    assert ledger.paid == 4


async def test_a_request_that_falls_back_from_streaming_is_the_same(serve: Serve):
    ledger = Ledger()
    async with serve(pays_and(Fail(HostFailed("gone"))), tools=[ledger.tool]) as served:
        client = served.client()
        with pytest.raises(openai.APIError, match="stays done: pay"):
            async for _ in await client.chat.completions.create(**HI, stream=True):
                pass
        with pytest.raises(openai.APIStatusError, match="stays done: pay"):
            await client.chat.completions.create(**HI)
    assert ledger.paid == 1


async def test_the_real_client_with_its_own_retries_pays_once(serve: Serve):
    for failure in FAILURES:
        ledger = Ledger()
        async with serve(pays_and(Fail(failure)), tools=[ledger.tool]) as served:
            client = served.client(max_retries=2)
            with pytest.raises(openai.APIStatusError):
                await client.chat.completions.create(**HI, user=repr(failure))
        assert ledger.paid == 1


async def test_a_stopped_turn_is_not_asked_again_by_a_client_but_may_be_by_a_person(serve: Serve):
    ledger = Ledger(Effect.READ)
    ledger.go.clear()
    session = {"X-Everloop-Session": "api:stop"}
    async with serve(pays_and(Say("paid")), tools=[ledger.tool]) as served:
        asking = asyncio.ensure_future(post(served, "/v1/chat/completions", HI, **session))
        await ledger.began.wait()
        await served.agent.ask("/stop", "api:stop")
        status, _, told = await asking
        ledger.go.set()
        assert (status, told["error"]["code"], is_retried(status)) == (424, "turn_stopped", False)
        assert (await post(served, "/v1/chat/completions", HI, **session))[0] == 200


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/message"])
async def test_a_stop_that_is_said_again_stops_again(serve: Serve, path: str):
    ledger, name = Ledger(Effect.READ), "input" if path.endswith("responses") else "content"
    headers = {} if path == "/message" else {"X-Everloop-Session": "api:stop"}
    chats = path.endswith("completions")
    stop = {**BODIES[path], **({"messages": [{"role": "user", "content": "/stop"}]} if chats else {name: "/stop"})}
    async with serve(pays_and(Say("paid")), tools=[ledger.tool]) as served:
        for _ in range(3):
            ledger.go.clear()
            asking = asyncio.ensure_future(post(served, path, BODIES[path], **headers))
            await ledger.began.wait()
            ledger.began.clear()
            status, _, told = await post(served, path, stop, **headers)
            assert (status, "Stopped 1 task" in str(told)) == (200, True), told
            assert (await asking)[0] == 424
            ledger.go.set()


async def test_requests_without_a_session_never_stand_in_the_list_however_they_end(serve: Serve):
    ledger = Ledger()
    async with serve(pays_and(Fail(HostFailed("gone"))), tools=[ledger.tool]) as served:
        await post(served, "/v1/chat/completions", HI)
        await post(served, "/v1/responses", BODIES["/v1/responses"])
        ledger.go.clear()
        ledger.began.clear()
        body = {**HI, "user": "one who goes away"}
        await lose(served, ledger, "/v1/chat/completions", body)
        listed = await served.agent.store.conversations("owner")
        kept = await served.agent.store.conversations("owner", archived=True)
        ledger.go.set()
    assert (listed, len(kept)) == ([], 3)


def test_what_a_request_is_called_does_not_hang_on_the_order_of_its_fields():
    assert event_of("a", {"x": 1, "y": 2}) == event_of("a", {"y": 2, "stream": True, "x": 1})
    assert event_of("a", {"x": 1}) != event_of("b", {"x": 1})


def test_what_ran_in_a_turn_of_which_the_beginning_is_out_of_sight_is_not_known():
    assert effects_in([], 10, mail=3) is None
    assert effects_in([], 0, mail=3) == ()


async def test_whoever_waits_when_the_gateway_closes_is_told_what_has_run_and_later_of_what_came_of_it(serve: Serve):
    ledger = Ledger()
    gate = asyncio.Event()
    body = {**HI, "user": "at closing time"}
    async with serve(pays_and((Wait(gate), Say("all paid"))), tools=[ledger.tool], settings=_HASTY) as served:
        asking = asyncio.ensure_future(post(served, "/v1/chat/completions", body))
        await ledger.began.wait()
        await served.agent.put_down()
        status, _, told = await asking
    assert (status, told["error"]["code"], told["error"]["ran"]) == (424, "closing", ["pay"])
    async with serve(pays_and(Say("all paid")), tools=[ledger.tool]) as served:
        status, _, told = await post(served, "/v1/chat/completions", body)
    assert (status, told["choices"][0]["message"]["content"], ledger.paid) == (200, "all paid", 1)


async def test_a_request_with_a_key_is_told_in_the_same_way(serve: Serve):
    ledger = Ledger()
    async with serve(pays_and(Fail(RateLimited("slow down"))), tools=[ledger.tool]) as served:
        said = [await post(served, "/v1/responses", BODIES["/v1/responses"], **{"Idempotency-Key": "k"}) for _ in "ab"]
    assert [(status, told["error"]["ran"]) for status, _, told in said] == [(424, ["pay"])] * 2
    assert ledger.paid == 1
