"""The gateway is killed while people write in Slack: each message has its answer in the end, and none has two unless
the second says that it may be one."""

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from everloop.testing import Pause, Say, Shown
from everloop.testing.model_server import ModelServer
from everloop.testing.slack_server import SlackFault, SlackServer
from tests.channels.slack.platform import settings_of
from tests.cli.person import Person
from tests.cli.test_gateway_command import start
from tests.effort import in_full
from tests.ports import free_port

CHATS, MESSAGES, KILLS = 6, 3, in_full(3, 2)
REPEATED = "(may be repeated) "


def lines(shown: Shown) -> list[object]:
    return [Say(["you said ", shown.asked.split()[0]]), Pause(0.01)]


def answers_in(slack: SlackServer) -> Counter[str]:
    """Without drafts of which nothing has become: those are streams that nobody has changed into an answer."""
    messages = [each for chat in slack.workspace.chats.values() for each in chat.values() if each.get("bot_id")]
    return Counter(each["text"] for each in messages if "streaming" not in each or "edited" in each)


@pytest.mark.shortened
@pytest.mark.timeout(120)
async def test_each_message_is_answered_however_often_the_gateway_is_killed(tmp_path: Path):
    chosen, port = random.Random(1), free_port()

    def judge(method: str, given: dict[str, object]) -> SlackFault | None:
        return SlackFault(503) if method == "chat.postMessage" and chosen.random() < 0.2 else None

    async with ModelServer(lines) as model, SlackServer(again=1.0) as slack:
        slack.judge = judge
        person = Person(tmp_path, model)
        for name, value in settings_of(slack).items():
            person.environment[f"EVERLOOP_CHANNELS__SLACK__{name.upper()}"] = str(value)
        person.environment["EVERLOOP_USERS__STRANGERS"] = "guest"
        people = {f"U0P{number}": f"D0P{number}" for number in range(CHATS)}
        slack.workspace.people |= dict.fromkeys(people, "Somebody")
        slack.workspace.chats |= {chat: {} for chat in people.values()}

        def is_answered(event: str) -> bool:
            seen = answers_in(slack)
            return bool(seen[f"you said {event}"] + seen[f"{REPEATED}you said {event}"])

        asked: set[str] = set()

        async def talk(user: str, chat: str) -> None:
            for number in range(MESSAGES):
                event = f"{chat}-{number}"
                asked.add(event)
                stamp = await slack.say(event, user=user, chat=chat, thread_ts="1.0")
                if chosen.random() < 0.5:
                    await slack.say(event, user=user, chat=chat, thread_ts="1.0", stamp=stamp)
                await slack.until(lambda: is_answered(event))  # noqa: B023 — it is waited for in the same turn

        try:
            gateway = await start(person, port)
            async with asyncio.TaskGroup() as group:
                for user, chat in people.items():
                    group.create_task(talk(user, chat))
                interrupted: set[str] = set()
                for kill in range(KILLS):
                    few = (kill + 1) * CHATS * MESSAGES // (KILLS + 2)
                    await slack.until(lambda: len(answers_in(slack)) >= few)  # noqa: B023
                    for event in interrupted:  # a turn that is interrupted three times in a row is given up
                        await slack.until(lambda: is_answered(event))  # noqa: B023
                    interrupted = {*asked}
                    await gateway.kill()
                    gateway = await start(person, port)
            await gateway.stop()
        finally:
            await person.leave()
    events = [f"{chat}-{number}" for chat in people.values() for number in range(MESSAGES)]
    seen = answers_in(slack)
    assert {text.removeprefix(REPEATED) for text in seen} == {f"you said {event}" for event in events}
    assert [text for text, times in seen.items() if times > 1 and not text.startswith(REPEATED)] == []
