"""A whole house behind a bot: what it asks is answered by a button, and what is sent along is there to be read."""

from pathlib import Path
from typing import Any

import everloop
from everloop.core.people import Role
from everloop.testing import Call, Say, ScriptedModel, Shown
from everloop.tools.decorator import tool
from tests.channels.telegram.stand import BERT, stand


def plays(shown: Shown) -> Any:
    last = shown.asked.splitlines()[-1]
    return Call("act", {}) if last == "act" and not shown.step else Say(f"then: {shown.messages[-1].text[-40:]}")


async def test_a_question_is_answered_by_its_button_and_by_who_may(tmp_path: Path):
    ran: list[str] = []

    @tool(permission=Role.GUEST, guarded=True)
    async def act() -> str:
        """Act."""
        ran.append("act")
        return "acted"

    async with stand() as platform:
        telegram, model = platform.server, ScriptedModel(plays)
        async with everloop.open(tmp_path, provider=model, channels=[platform.channel()], tools=[act]) as agent:
            await agent.store.link("telegram:1001", "owner")
            await telegram.say("act")
            await telegram.shown(1)
            [question] = [each for each in telegram.account.messages[1001].values() if each["from"]["is_bot"]]
            [[approve, deny]] = question["reply_markup"]["inline_keyboard"]
            assert question["text"].startswith("May I run act")
            await telegram.press(
                {**question, "chat": {**question["chat"], "id": 1002}}, deny["callback_data"], BERT, id="q0"
            )
            await telegram.press(question, approve["callback_data"])
            await telegram.queue.is_empty()
            await telegram.shown(3)
            waiting = await agent.approvals()
    assert (ran, waiting, "reply_markup" in question) == (["act"], [], False)
    assert telegram.account.seen(1001)[1:] == ["act is allowed.", "then: acted"]
    assert telegram.account.answered == {"q0": "You pressed Deny.", "q1": "You pressed Approve."}


async def test_a_file_that_is_sent_along_is_there_to_be_read(tmp_path: Path):
    async with stand() as platform:
        telegram, model = platform.server, ScriptedModel(lambda shown: Say("nice"))
        async with everloop.open(tmp_path, provider=model, channels=[platform.channel()]):
            kept = telegram.account.keep(b"some words", "notes.txt")
            await telegram.say(caption="what is this?", document={**kept, "file_name": "notes.txt"})
            await telegram.shown(1)
    assert "what is this?" in model.prompts[0].messages[-1].text
    assert "notes.txt" in str(model.prompts[0].messages[-1].parts)
