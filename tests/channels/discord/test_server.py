"""Our Discord on loopback, as discord.py finds it: what most bots are made with takes it for the real one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import discord
import pytest
import yarl

from everloop.testing.discord_server import DiscordFault, DiscordServer


class Bot(discord.Client):
    """`heard` are the messages that it was told, `ups` how often it was told that it listens."""

    def __init__(self) -> None:
        intents = discord.Intents.default()
        intents.message_content = True
        super().__init__(intents=intents, guild_ready_timeout=0.1)
        self.heard: asyncio.Queue[discord.Message] = asyncio.Queue()
        self.changed: asyncio.Queue[Any] = asyncio.Queue()
        self.ups: asyncio.Queue[str] = asyncio.Queue()

    async def on_ready(self) -> None:
        await self.ups.put("ready")

    async def on_resumed(self) -> None:
        await self.ups.put("resumed")

    async def on_message(self, message: discord.Message) -> None:
        if message.author != self.user:
            await self.heard.put(message)

    async def on_raw_message_edit(self, event: discord.RawMessageUpdateEvent) -> None:
        await self.changed.put(("edit", event.message_id))

    async def on_raw_message_delete(self, event: discord.RawMessageDeleteEvent) -> None:
        await self.changed.put(("delete", event.message_id))

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        await self.changed.put(interaction)


@asynccontextmanager
async def running(server: DiscordServer) -> AsyncIterator[Bot]:
    base, gateway = discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY
    discord.http.Route.BASE = server.api
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(server.gateway.url)
    bot = Bot()
    task = asyncio.create_task(bot.start("token"))
    try:
        up = asyncio.create_task(bot.ups.get())
        await asyncio.wait([up, task], timeout=40, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        assert up.result() == "ready"
        yield bot
    finally:
        await bot.close()
        await asyncio.gather(task, return_exceptions=True)
        discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = base, gateway


@pytest.mark.timeout(60)
async def test_discord_py_receives_sends_edits_reacts_and_exchanges_files():
    async with DiscordServer() as server:
        anna = server.world.user("anna")
        dm, home = server.world.dm(anna), server.world.guild("Home")
        room = server.world.channel(home, "general")
        thread = server.world.thread(room, "topic")
        async with running(server) as bot:
            await server.say(dm, anna, "hello", attachments=[server.attach("a.txt", b"abc")])
            message = await bot.heard.get()
            assert (message.content, message.author.name, message.guild) == ("hello", "anna", None)
            assert await message.attachments[0].read() == b"abc"
            async with message.channel.typing():
                pass
            answer = await message.reply("hi", mention_author=False)
            await answer.edit(content="hi!")
            await message.add_reaction("👍")
            await message.channel.send("here", file=discord.File(__file__, "b.txt"))
            assert server.seen(dm) == ["hi!", "here"]
            assert (server.typed, server.reactions) == ([dm], [(str(message.id), "👍")])
            assert [each["filename"] for each in server.sent(dm)[1]["attachments"]] == ["b.txt"]

            await server.say(room, anna, f"<@{bot.user.id}> you")
            asked = await bot.heard.get()
            assert (asked.guild.name, asked.channel.name, bot.user in asked.mentions) == ("Home", "general", True)
            await server.say(thread, anna, "in it")
            inside = await bot.heard.get()
            assert (str(inside.channel.id), str(inside.channel.parent_id)) == (thread, room)

            while not bot.changed.empty():
                bot.changed.get_nowait()
            said = server.world.messages[room][str(asked.id)]
            await server.edit(said, "changed")
            assert await bot.changed.get() == ("edit", asked.id)
            await server.delete(said)
            assert await bot.changed.get() == ("delete", asked.id)


@pytest.mark.timeout(60)
async def test_discord_py_waits_out_a_429_is_told_what_is_too_long_and_knows_a_nonce():
    async with DiscordServer() as server:
        anna = server.world.user("anna")
        dm = server.world.dm(anna)
        async with running(server) as bot:
            await server.say(dm, anna, "hello")
            chat = (await bot.heard.get()).channel
            server.fail(DiscordFault(status=429, retry_after=0.05, of="messages"))
            await chat.send("after a while", nonce=7)
            with pytest.raises(discord.HTTPException) as refused:
                await chat.send("x" * 2001)
            assert (refused.value.code, server.seen(dm)) == (50035, ["after a while"])
            params = discord.http.handle_message_parameters(content="again", nonce=7)
            params.payload["enforce_nonce"] = True
            same = await bot.http.send_message(chat.id, params=params)
            assert (same["content"], server.seen(dm)) == ("after a while", ["after a while"])


@pytest.mark.timeout(60)
async def test_discord_py_resumes_and_hears_what_it_missed():
    async with DiscordServer() as server:
        anna = server.world.user("anna")
        dm = server.world.dm(anna)
        async with running(server) as bot:
            await server.say(dm, anna, "one")
            assert (await bot.heard.get()).content == "one"
            server.gateway.cut()
            await server.say(dm, anna, "two")
            assert (await asyncio.wait_for(bot.heard.get(), 40)).content == "two"
            assert (await bot.ups.get(), server.gateway.identified) == ("resumed", 1)


@pytest.mark.timeout(60)
async def test_discord_py_answers_buttons_and_registers_commands():
    async with DiscordServer() as server:
        anna = server.world.user("anna")
        dm = server.world.dm(anna)
        async with running(server) as bot:
            await server.say(dm, anna, "hello")
            chat = (await bot.heard.get()).channel
            view = discord.ui.View()
            view.add_item(discord.ui.Button(label="Allow", custom_id="allow"))
            await chat.send("may I?", view=view)
            (asked,) = server.sent(dm)
            pressed = await server.press(asked, "allow", anna)
            interaction = await bot.changed.get()
            await interaction.response.edit_message(view=None)
            assert (server.callbacks[pressed]["type"], server.sent(dm)[0]["components"]) == (7, [])
            await bot.http.bulk_upsert_global_commands(bot.application_id, [{"name": "new", "description": "Begin"}])
            assert [each["name"] for each in server.commands] == ["new"]
            await server.command(dm, anna, "new", text="x")
            assert (await bot.changed.get()).data["name"] == "new"


async def test_a_wrong_token_is_refused_by_discord_py():
    async with DiscordServer("another") as server:
        with pytest.raises(discord.LoginFailure):
            async with running(server) as bot:
                await bot.login("token")
