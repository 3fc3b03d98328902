"""Slash commands and buttons: Discord is told that they came when they are committed, and not before."""

import pytest

from everloop.channels.discord.interactions import buttons
from everloop.core.mail import Address
from everloop.errors import StoreError
from everloop.ports.channel import Incoming, OutgoingPart
from everloop.readings.commands import COMMANDS
from everloop.testing.discord_server import DiscordFault
from tests.channels.discord.heard import Heard, listening
from tests.channels.discord.platform import channel_to, discord


async def test_the_houses_commands_are_registered_and_what_is_given_comes_in_as_text():
    async with discord() as (server, http):
        heard, anna = Heard(), server.world.user("anna")
        home = server.world.guild("Home")
        room, dm = server.world.channel(home, "general"), server.world.dm(anna)
        thread = server.world.thread(room, "topic")
        async with listening(channel_to(server, http), heard):
            await heard.until_saved()
            assert [f"/{each['name']}" for each in server.commands] == [*COMMANDS]
            in_dm = await server.command(dm, anna, "new")
            in_thread = await server.command(thread, anna, "session", text="rename The sea")
            got = await heard.until(2)
            await server.until(lambda: len(server.callbacks) == 2)
        who = {"account": anna["id"], "name": "Anna", "mentioned": True}
        assert got == [
            Incoming(event=in_dm, chat=dm, text="/new", **who),
            Incoming(
                event=in_thread,
                chat=room,
                thread=thread,
                server=home,
                direct=False,
                text="/session rename The sea",
                **who,
            ),
        ]
        told = {"flags": 64, "allowed_mentions": {"parse": []}}
        assert server.callbacks == {
            in_dm: {"type": 4, "data": {"content": "`/new`", **told}},
            in_thread: {"type": 4, "data": {"content": "`/session rename The sea`", **told}},
        }


async def test_a_button_answers_a_question_and_goes_away_where_nobody_else_could_press_it():
    async with discord() as (server, http):
        heard, anna, channel = Heard(), server.world.user("anna"), channel_to(server, http)
        room, dm = server.world.channel(server.world.guild("Home"), "general"), server.world.dm(anna)
        for chat in (dm, room):
            asks = OutgoingPart(key=chat, address=Address("discord", chat), text="May I?", approval="kind-otter")
            await channel.send(asks)
        async with listening(channel, heard):
            await heard.until_saved()
            (private,), (shared,) = server.sent(dm), server.sent(room)
            yes = await server.press(private, "allow:kind-otter", anna)
            no = await server.press(shared, "deny:kind-otter", anna)
            await server.press(shared, "somebody-elses", anna)
            got = await heard.until(2)
            await server.until(lambda: len(server.callbacks) == 2)
        assert [(each.event, each.text, each.chat, each.account) for each in got] == [
            (yes, "/approve kind-otter", dm, anna["id"]),
            (no, "/deny kind-otter", room, anna["id"]),
        ]
        assert server.callbacks == {yes: {"type": 7, "data": {"components": []}}, no: {"type": 6}}
        assert server.sent(dm)[0]["components"] == []
        assert buttons("x" * 200) == []


async def test_what_cannot_be_committed_is_not_acknowledged():
    async with discord() as (server, http):
        heard, anna = Heard(), server.world.user("anna")
        async with listening(channel_to(server, http), heard) as running:
            await heard.until_saved()
            heard.full = True
            await server.command(server.world.dm(anna), anna, "new")
            with pytest.raises(StoreError):
                await running
        assert server.callbacks == {}


async def test_a_command_that_nobody_wants_is_told_so_and_one_that_cannot_be_acknowledged_is_done():
    async with discord() as (server, http):
        heard, anna = Heard(), server.world.user("anna")
        dm = server.world.dm(anna)
        async with listening(channel_to(server, http), heard):
            await heard.until_saved()
            server.fail(DiscordFault(status=500, of="callback"))
            await server.command(dm, anna, "new")
            await heard.until(1)
            heard.refused = "a stranger"
            refused = await server.command(dm, anna, "stop")
            await server.until(lambda: server.callbacks)
        assert heard.texts == ["/new", "/stop"]
        assert server.callbacks[refused]["data"]["content"] == "Nothing comes of this here."


async def test_commands_of_chats_that_the_bot_is_not_in_are_nobodys():
    async with discord() as (server, http):
        heard, anna = Heard(), server.world.user("anna")
        dm = server.world.dm(anna)
        async with listening(channel_to(server, http), heard):
            await heard.until_saved()
            told = {"id": "1", "token": "t", "type": 2, "channel_id": dm, "user": anna, "data": {"name": "new"}}
            await server.gateway.emit("INTERACTION_CREATE", {**told, "context": 2})
            await server.gateway.emit("INTERACTION_CREATE", {"id": "2"})  # which cannot be read
            await server.say(dm, anna, "hello")
            await heard.until(1)
        assert heard.texts == ["hello"]


async def test_commands_are_left_alone_when_the_settings_say_so():
    async with discord() as (server, http):
        heard = Heard()
        async with listening(channel_to(server, http, commands=False), heard):
            await heard.until_saved()
        assert server.commands == []
