"""Discord in front of a whole house: a question is answered by its button, in private and in a server."""

from pathlib import Path
from typing import Any

import pytest

import everloop
from everloop import Role
from everloop.testing import Call, Say, ScriptedModel, Shown
from everloop.tools.decorator import tool
from tests.channels.discord.platform import channel_to, discord


def plays(shown: Shown) -> Any:
    asked = shown.asked.splitlines()[-1]
    return Call("act", {}) if asked.endswith("act") and not shown.step else Say(f"then: {shown.messages[-1].text}")


@pytest.mark.parametrize("answer, ran", [("approve", ["act"]), ("deny", [])])
async def test_a_question_is_answered_by_its_button_and_by_who_may(tmp_path: Path, answer: str, ran: list[str]):
    acted: list[str] = []

    @tool(permission=Role.GUEST, guarded=True)
    async def act() -> str:
        """Act."""
        acted.append("act")
        return "acted"

    async with discord() as (server, http):
        anna, bert = server.world.user("anna"), server.world.user("bert")
        dm = server.world.dm(anna)
        channels = [channel_to(server, http)]
        async with everloop.open(tmp_path, provider=ScriptedModel(plays), channels=channels, tools=[act]) as agent:
            await agent.store.link(f"discord:{anna['id']}", "owner")
            await server.gateway.until_listening()
            await server.say(dm, anna, "act")
            await server.until(lambda: any(each.get("components") for each in server.sent(dm)))
            (question,) = [each for each in server.sent(dm) if each.get("components")]
            ids = {each["label"].lower(): each["custom_id"] for each in question["components"][0]["components"]}
            other = await server.press({**question, "channel_id": server.world.dm(bert)}, ids["approve"], bert)
            await server.until(lambda: other in server.callbacks)
            assert acted == []  # who is not asked decides nothing
            pressed = await server.press(question, ids[answer], anna)
            await server.until(lambda: pressed in server.callbacks)
            await server.until(lambda: any(text.startswith("then:") for text in server.seen(dm)))
            waiting = await agent.approvals()
        assert (acted, waiting, server.sent(dm)[0]["components"]) == (ran, [], [])
