"""The files that came of a turn are told to OpenAI's clients as signed links, in a field of our own."""

import json
from typing import Any

import pytest

from everloop.testing import Call, Say, ScriptedModel
from tests.gateway.conftest import Door

WRITE = Call("write_file", {"path": "made.txt", "content": "made for you"})


async def told(door: Door, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The answer, or the events of its stream."""
    async with door.client(await door.token()) as client, client.post(path, json=body) as answer:
        text = await answer.text()
    if not body.get("stream"):
        return [json.loads(text)]
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


ASKED = {"/v1/chat/completions": {"messages": [{"role": "user", "content": "go"}]}, "/v1/responses": {"input": "go"}}


def attachments_in(path: str, last: list[dict[str, Any]]) -> list[list[dict[str, str]]]:
    places = [last_of["choices"][0] for last_of in last if last_of.get("choices")] if "chat" in path else last
    inner = [each.get("message") or each.get("delta") or each.get("response") or each for each in places]
    return [each["attachments"] for each in inner if "attachments" in each]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ASKED)
async def test_a_file_that_was_made_comes_with_the_answer_once_and_opens_without_a_token(openings, path, stream):
    door = await openings(ScriptedModel([WRITE, Say("done")]))
    found = attachments_in(path, await told(door, path, {**ASKED[path], "model": "everloop", "stream": stream}))
    ((file,),) = found
    async with door.client() as client, client.get(file["url"]) as answer:
        assert (file["name"], answer.status, await answer.text()) == ("made.txt", 200, "made for you")


@pytest.mark.parametrize("path", ASKED)
async def test_an_answer_without_files_is_as_it_was(openings, path):
    door = await openings(ScriptedModel([Say("done")]))
    assert "attachments" not in str(await told(door, path, {**ASKED[path], "model": "everloop"}))
