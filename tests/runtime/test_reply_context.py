"""By what an answer finds its thread stays, whatever is said there in between."""

import pytest

from everloop.core.mail import ReplyTo
from tests.runtime.test_admission import answering
from tests.runtime.test_reception import Heard, incoming


@pytest.mark.parametrize("command", ["/stop", "/approve nothing", "/help", "/compact"])
async def test_what_a_command_answers_goes_where_it_was_said(house, command):
    channel = Heard()
    async with house(answering(), channels=[channel], settings={"users": {"strangers": "guest"}}):
        deliver = await channel.listens.get()
        await deliver(incoming("e1", chat="anna", reply_to=ReplyTo("r1")))
        await channel.sent(1)
        await deliver(incoming("e2", chat="anna", text=command, reply_to=ReplyTo("r2")))
        await channel.sent(2)
    assert channel.parts[0].reply_to == "r1"
    assert channel.parts[1].reply_to in ("r1", "r2")  # a command that becomes another letter has no context of its own
