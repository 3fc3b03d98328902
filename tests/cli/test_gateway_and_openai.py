"""The real `openai` package against `everloop gateway`, a process of its own that is killed in the middle of a turn."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from tests.cli.test_gateway_command import new_token, start
from tests.ports import free_port

from everloop.app.records import open_records
from everloop.testing import Call, Http, Say, Shown, Wait
from everloop.testing.model_server import ModelServer

HI = [{"role": "user", "content": "hi"}]


@pytest.fixture
async def gate() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
async def model(gate: asyncio.Event) -> AsyncIterator[ModelServer]:
    async with ModelServer(lambda shown: (Say("half "), Wait(gate), Say("whole"))) as server:
        yield server


async def test_a_request_with_a_key_that_is_sent_again_after_a_kill_is_the_same_turn(person, model, gate):
    port = free_port()
    gateway = await start(person, port)
    token = await new_token(person, "laptop")
    client = openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=token, max_retries=0)
    asked = {"model": "everloop", "messages": HI}
    headers = {"Idempotency-Key": "k1", "X-Everloop-Session": "api:mine"}
    stream = await client.chat.completions.create(**asked, stream=True, extra_headers=headers)
    first = await anext(aiter(stream))
    await gateway.kill()
    with pytest.raises(openai.APIConnectionError):
        async for _ in stream:
            pass
    gate.set()
    gateway = await start(person, port, links=False)
    again = await client.chat.completions.create(**asked, stream=True, extra_headers=headers)
    told = "".join([chunk.choices[0].delta.content or "" async for chunk in again])
    with pytest.raises(openai.ConflictError):
        await client.chat.completions.create(**{**asked, "messages": [*HI, *HI]}, extra_headers=headers)
    await gateway.stop()
    async with open_records(person.home) as records:
        row = await records.store.session("api:mine")
        written = await records.store.read(row.id)
    assert (first.choices[0].delta.content, told) == ("half ", "half whole")
    kinds = [type(entry).__name__ for entry in written]
    assert (kinds.count("UserSaid"), kinds.count("ModelSaid"), kinds.count("Resumed")) == (1, 1, 1)


@pytest.mark.parametrize("fails", [False, True])
async def test_a_client_that_asks_again_by_itself_after_a_kill_has_the_work_done_once(person, gate, model, fails: bool):
    reached = asyncio.Event()

    def lines(shown: Shown) -> Any:
        if shown.step == 0:
            return Call("exec", {"command": "echo paid >> ledger.txt"})
        reached.set()
        return [Wait(gate), Http(400, {"error": {"message": "not like this"}}) if fails else Say("all paid")]

    model.play(lines)
    port = free_port()
    gateway = await start(person, port)
    token = await new_token(person, "laptop")
    client = openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=token, max_retries=10)
    asking = asyncio.ensure_future(client.chat.completions.create(model="everloop", messages=HI))
    await reached.wait()
    await gateway.kill()
    gate.set()
    gateway = await start(person, port, links=False)
    if fails:
        with pytest.raises(openai.APIStatusError, match="This had been run by then and stays done: exec"):
            await asking
    else:
        assert (await asking).choices[0].message.content == "all paid"
    await gateway.stop()
    assert (person.home / "workspace" / "ledger.txt").read_text() == "paid\n"
    async with open_records(person.home) as records:
        assert await records.store.conversations("owner") == []
        assert len(await records.store.conversations("owner", archived=True)) == 1
