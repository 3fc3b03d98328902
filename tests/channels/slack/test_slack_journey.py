"""Whole stories in Slack: an answer that grows, a question with buttons, files both ways."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import everloop
from everloop.app import open_desk
from everloop.core.people import OWNER
from everloop.core.tool import Effect
from everloop.testing import Call, Pause, Say, ScriptedModel, counting_tool, runs_in
from everloop.testing.slack_server import SlackServer
from everloop.testing.slack_workspace import BOT
from tests.channels.slack.open import open_slack
from tests.channels.slack.platform import settings_of

GENERAL = "C0GENERAL"


@asynccontextmanager
async def house(home: Path, model: ScriptedModel, tools: Any = ()) -> AsyncIterator[SlackServer]:
    async with open_slack() as (slack, channel):
        slack.echoes = True
        async with everloop.open(home, provider=model, channels=[channel], tools=tools) as agent:
            await agent.store.link("slack:U0ANNA", OWNER)
            await slack.linked()
            yield slack


@asynccontextmanager
async def gateway(home: Path, model: ScriptedModel, **more: object) -> AsyncIterator[SlackServer]:
    """As the settings name it: with the rules that hold for every channel."""
    async with SlackServer() as slack:
        settings = {"channels": {"slack": settings_of(slack, **more)}, "users": {"strangers": "guest"}}
        async with open_desk(home, settings, provider=model):
            await slack.linked()
            yield slack


def ours(slack: SlackServer, chat: str) -> list[dict[str, Any]]:
    return [each for each in slack.workspace.chats[chat].values() if each.get("bot_id") == BOT]


async def test_in_a_thread_an_answer_grows_and_is_whole_in_the_end(tmp_path):
    model = ScriptedModel([[Say("**Once** upon"), Pause(0.05), Say(" a time, <!channel>.")]])
    async with house(tmp_path, model) as slack:
        stamp = await slack.say("<@U0BOT> tell me a story", chat=GENERAL)
        await slack.until(lambda: "*Once* upon a time, &lt;!channel&gt;." in slack.workspace.shown(GENERAL))
        [message] = ours(slack, GENERAL)
        assert (message["thread_ts"], message["streaming"], slack.workspace.notified) == (stamp, False, [])
        methods = [method for method, _ in slack.calls]
        assert [methods.count(each) for each in ("chat.startStream", "chat.update", "chat.postMessage")] == [1, 1, 0]


async def test_a_question_is_answered_by_a_button(tmp_path):
    effects = tmp_path / "effects"
    acting = counting_tool(effects, "act", Effect.UNSAFE, guarded=True)
    model = ScriptedModel([Call("act"), Say("done"), Call("act"), Say("as you like")])
    async with house(tmp_path / "home", model, [acting]) as slack:

        def question(number: int) -> dict[str, Any] | None:
            asked = [each for each in ours(slack, "D0ANNA") if each["text"].startswith("May I run act")]
            return asked[number] if len(asked) > number else None

        for number, (action, answer) in enumerate([("everloop_approve", "done"), ("everloop_deny", "as you like")]):
            await slack.say("act")
            await slack.until(lambda: question(number) is not None)  # noqa: B023
            asked = question(number)
            assert asked is not None
            assert "Answer with !approve" in asked["text"]
            await slack.press("D0ANNA", asked["ts"], action)
            await slack.until(lambda: answer in slack.workspace.shown("D0ANNA"))  # noqa: B023
        notes = [each["blocks"][-1]["elements"][0]["text"] for number in (0, 1) if (each := question(number))]
    assert ([ran.name for ran in runs_in(effects)], notes) == (["act"], ["Anna pressed Approve.", "Anna pressed Deny."])


async def test_a_file_comes_along_and_is_read(tmp_path):
    model = ScriptedModel([Say("thank you")])
    async with house(tmp_path, model) as slack:
        await slack.say("look", files=[slack.workspace.keep("wishes.txt", b"three wishes", "text/plain")])
        await slack.until(lambda: "thank you" in slack.workspace.shown("D0ANNA"))
        assert slack.strangers == []
    assert "wishes.txt" in str(model.prompts[0])


async def test_in_a_channel_it_answers_whom_it_is_named_by_and_who_goes_on_in_the_thread(tmp_path):
    model = ScriptedModel(lambda shown: Say(f"You said: {shown.asked.split('|')[-1]}"))
    async with gateway(tmp_path, model) as slack:
        await slack.acknowledged(await slack.say("|not for you", chat=GENERAL))
        stamp = await slack.say("<@U0BOT> |one", chat=GENERAL)
        await slack.until(lambda: "You said: one" in slack.workspace.shown(GENERAL))
        await slack.say("|two", chat=GENERAL, thread_ts=stamp)
        await slack.until(lambda: "You said: two" in slack.workspace.shown(GENERAL))
        threads = {each["thread_ts"] for each in ours(slack, GENERAL)}
    assert (threads, model.calls) == ({stamp}, 2)
    assert "one" in str(model.prompts[-1].messages)


async def test_what_is_changed_or_taken_back_in_time_was_never_said_otherwise(tmp_path):
    model = ScriptedModel(lambda shown: Say(f"You said: {shown.asked}"))
    async with gateway(tmp_path, model, gather=3) as slack:  # in which all four come in, however slow
        bens = slack.workspace.direct_chat("U0BEN")
        wrong, gone = await slack.say("onne"), await slack.say("never mind", user="U0BEN", chat=bens)
        await slack.edit("D0ANNA", wrong, "one")
        await slack.delete(bens, gone)
        await slack.until(lambda: "You said: one" in slack.workspace.shown("D0ANNA"))
    assert (model.calls, slack.workspace.shown(bens)) == (1, [])
