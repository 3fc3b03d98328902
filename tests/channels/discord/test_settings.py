"""Setting Discord up: what is wrong is told in a sentence, what is missing with what to do, and the token to nobody."""

import logging
import subprocess
import sys

import pytest
from msgspec.structs import replace

from everloop.channels.discord import check_settings, open_channel
from everloop.core.mail import Address
from everloop.errors import ChannelDown, ChannelRefused, EverloopError, SettingsError, Undeliverable
from everloop.net.trusted import TrustedHttp
from everloop.ports.channel import (
    Fetches,
    OpensChats,
    OutgoingPart,
    Previews,
    Probed,
    Probes,
    Reacts,
    Renders,
    Replaces,
    Signals,
)
from everloop.testing.discord_server import DiscordFault
from tests.channels.discord.heard import Heard, listening
from tests.channels.discord.platform import TOKEN, channel_to, discord


@pytest.mark.parametrize(
    "values, sentence",
    [
        ({}, "token is missing"),
        ({"token": ""}, "channels.discord.token must be the bot's token"),
        ({"token": "a b"}, "channels.discord.token must be the bot's token"),
        ({"token": "a\nb"}, "channels.discord.token must be the bot's token"),
        ({"token": "secret-x", "shards": 2}, "there is no setting channels.discord.shards; the keys here are token"),
        ({"token": ["secret-x"]}, "channels.discord.token: Expected `str`"),
        ({"token": "secret-x", "api_url": "http://discord.example"}, "api_url must begin with https://"),
        ({"token": "secret-x", "gateway_url": "https://discord.example"}, "gateway_url must begin with wss://"),
        ({"token": "secret-x", "gateway_url": "ws://discord.example"}, "gateway_url must begin with wss://"),
        ({"token": "secret-x", "cdn_url": "http://[::"}, "cdn_url must begin with https://"),
        ({"token": "secret-x", "commands": "perhaps"}, "channels.discord.commands is true or false"),
    ],
)
def test_wrong_settings_are_told_in_a_sentence(values, sentence):
    with pytest.raises(SettingsError) as wrong:
        check_settings(values)
    assert (sentence in str(wrong.value), "secret-x" in str(wrong.value)) == (True, False)


def test_settings_as_people_write_them_are_taken():
    chosen = check_settings({"token": " Bot abc ", "gateway_url": "wss://gateway.example/?v=9", "commands": "false"})
    assert (chosen.token, chosen.commands, "abc" in repr(chosen)) == ("abc", False, False)


async def test_the_channel_can_do_what_its_traits_say():
    http = TrustedHttp()
    channel = open_channel({"token": "abc"}, http)
    await http.close()
    abilities = (Renders, Previews, Signals, Fetches, Reacts, Replaces, OpensChats, Probes)
    assert [each for each in abilities if not isinstance(channel, each)] == []
    with pytest.raises(SettingsError, match="opens WebSockets"):
        open_channel({"token": "abc"}, object())


def test_importing_it_loads_neither_the_wire_nor_the_text():
    heavy = "{'everloop.channels.discord.wire', 'websockets', 'markdown_it', 'aiohttp'}"
    used = "import sys, everloop.channels.discord as discord; discord.check_settings({'token': 'x'})"
    code = f"{used}; print({heavy} & {{*sys.modules}})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"


async def test_a_trial_tells_who_we_are_and_what_is_missing():
    async with discord() as (server, http):
        world, channel = server.world, channel_to(server, http)
        link = (
            "https://discord.com/oauth2/authorize?client_id=1400000000000000000&scope=bot+applications.commands"
            "&permissions=274878008384"
        )
        who = f"everbot ({world.bot['id']})"
        nowhere = f"It is in no server yet, so that nobody can write to it: open {link} and let it into one."
        assert await channel.probe() == Probed(account=who, missing=(nowhere,), link=link)
        world.guild("Home")
        world.guild("Admins", str(1 << 3))
        assert await channel.probe() == Probed(account=who, link=link)
        world.guild("Strict", str((1 << 10) | (1 << 11)))
        world.application["flags"] = 0
        assert await channel.probe() == Probed(
            account=who,
            missing=(
                "It may not read messages: switch on MESSAGE CONTENT INTENT at "
                "https://discord.com/developers/applications/1400000000000000000/bot and save.",
                "In the server Strict it lacks: Send Messages in Threads, Read Message History, Attach Files, Add "
                "Reactions. Give them to its role (Server Settings, Roles), or invite it again with the link.",
            ),
            link=link,
        )
        with pytest.raises(ChannelRefused):
            await channel_to(server, http, token="another").probe()
        server.fail(DiscordFault(status=503))
        with pytest.raises(ChannelDown):
            await channel.probe()


async def test_no_secret_is_told_in_a_log_line_or_an_error_whatever_fails(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    errors: list[BaseException] = []

    async def attempt(call) -> None:
        try:
            await call
        except EverloopError as error:
            errors.append(error)

    async with discord() as (server, http):
        heard, anna, channel = Heard(), server.world.user("anna"), channel_to(server, http)
        dm = server.world.dm(anna)
        part = OutgoingPart(key="k", address=Address("discord", dm), text="hello")
        async with listening(channel, heard) as running:
            await heard.until_saved()
            server.fail(DiscordFault(status=500, of="callback"), DiscordFault(half=True, of="callback"))
            await server.command(dm, anna, "new")
            await server.command(dm, anna, "new")
            await server.gateway.emit("MESSAGE_CREATE", {"id": 7, "content": "canary"})
            await server.say(dm, anna, "file", attachments=[server.attach("a.txt", b"abc")])
            ref = (await heard.until(3))[2].files[0]
            server.world.files.clear()
            await attempt(channel.fetch(ref, 100))
            await attempt(channel.fetch(ref, 1))
            server.gateway.cut()
            await server.gateway.until_left()
            await server.gateway.until_listening()
            await server.gateway.close(4004, TOKEN)
            await attempt(running)
        for fault in (DiscordFault(status=500), DiscordFault(half=True), DiscordFault(status=429, retry_after=0.01)):
            for of, call in (("POST channels/", channel.send(part)), ("GET users/@me", channel.probe())):
                server.fail(replace(fault, of=of))
                await attempt(call)
        away = channel_to(server, http, api_url="http://127.0.0.1:9/api", cdn_url="http://127.0.0.1:9")
        await attempt(away.send(part))
        await attempt(away.fetch(ref.replace(server.cdn, "http://127.0.0.1:9"), 100))
        await attempt(channel_to(server, http, token="canary-wrong").send(part))
    told = [record.getMessage() for record in caplog.records if not record.name.startswith("aiohttp")]
    told += [f"{error!r} {error} {error.__cause__!r}" for error in errors]
    assert len(errors) > 8
    assert [line for line in told if "canary" in line] == []


async def test_files_are_fetched_from_discord_alone():
    async with discord() as (server, http):
        heard, anna, channel = Heard(), server.world.user("anna"), channel_to(server, http)
        async with listening(channel, heard):
            await heard.until_saved()
            await server.say(server.world.dm(anna), anna, "", attachments=[server.attach("a.txt", b"abc")])
            (ref,) = (await heard.until(1))[0].files
        away = ref.replace(server.cdn, "http://127.0.0.1:9")
        with pytest.raises(Undeliverable, match="does not lie where Discord keeps files"):
            await channel.fetch(away, 100)
        channel = channel_to(server, http, cdn_url="http://127.0.0.1:9")
        with pytest.raises(ChannelDown):
            await channel.fetch(away, 100)
