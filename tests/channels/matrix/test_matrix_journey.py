"""From nothing to an answer, as somebody does it: the commands as they are typed, a real gateway, a real homeserver."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everloop.testing import Call, Say, Shown
from everloop.testing.model_server import ModelServer
from tests.channels.matrix.somebody import Somebody
from tests.channels.matrix.synapse import PASSWORD, Synapse
from tests.cli.person import Person
from tests.cli.test_gateway_command import start


def lines(shown: Shown) -> list[object]:
    asked = shown.asked.partition("\n\nCurrent time:")[0].rpartition("\n")[2]  # in a group, who speaks stands above it
    if shown.said[-1][0] == "tool":
        return [Say("It is done.")]
    if asked == "please":
        return [Call("exec", {"command": "sudo true"})]
    return [Say(f"**you said** {asked}")]


def question_in(me: Somebody, room: str) -> str:
    asked = [each for where, each in me.events if where == room and "org.everloop.approval" in str(each["content"])]
    return asked[-1]["event_id"] if asked else ""


@pytest.fixture
async def owner(tmp_path: Path) -> AsyncIterator[Person]:
    async with ModelServer(lines) as model:
        person = Person(tmp_path, model)
        yield person
        await person.leave()


async def test_from_a_login_to_a_group(owner: Person, synapse: Synapse, anna: Somebody, ben: Somebody):
    bot = synapse.register("bot")
    given = (
        "channels",
        "login",
        "matrix",
        f"homeserver={synapse.url}",
        f"user_id={bot.user}",
        "--set-file",
        "password=-",
    )
    logged_in = await owner.run(*given, typed=PASSWORD.encode())
    assert (logged_in.status, PASSWORD in (owner.home / "config.toml").read_text()) == (0, False)
    assert f"It answers: {bot.user}" in logged_in.out
    gateway = await start(owner, 0)

    room = await anna.make_room(bot.user, direct=True)
    await anna.say(room, "hello")
    (greeting,) = await anna.answers(room, bot.user, 1)
    (code,) = re.findall(r"users pair (\w+)", greeting)
    paired = await owner.run("users", "pair", code)
    assert paired.status == 0, paired.err
    await anna.say(room, "hello again")
    assert (await anna.answers(room, bot.user, 2))[1:] == ["you said hello again"]
    assert anna.said(room, bot.user)[-1].get("m.new_content", anna.said(room, bot.user)[-1])["formatted_body"] == (
        "<p><strong>you said</strong> hello again</p>"
    )

    group = await anna.make_room(bot.user, ben.user)
    await anna.say(group, "not for you")
    await anna.say(group, f"{bot.user}: for you", **{"m.mentions": {"user_ids": [bot.user]}})
    assert await anna.answers(group, bot.user, 1) == ["you said for you"]

    linked = await owner.run("users", "link", "owner", f"matrix:{ben.user}")
    assert linked.status == 0, linked.err
    alone = await ben.make_room(bot.user, direct=True)
    await ben.say(alone, "please")
    question = await ben.until(lambda me: question_in(me, alone))
    relation = {"rel_type": "m.annotation", "event_id": question, "key": "✅"}
    await ben.send(alone, {"m.relates_to": relation}, "m.reaction")
    await ben.until(lambda me: "It is done." in me.shown(alone, bot.user))

    ran = await owner.run("channels", "status")
    assert re.search(r"matrix +listening", ran.out), ran.out
    stopped = await gateway.stop()
    assert (stopped.status, bot.token in stopped.err) == (0, False)
