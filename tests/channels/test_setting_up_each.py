"""Channels of ours, set up as `everloop channels add` does it: tried at their platforms, kept, open without a restart;
a token that is refused is neither kept nor told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from msgspec import Struct

from everloop.app import open_desk
from everloop.app.desk import GatewayDesk
from everloop.errors import ChannelRefused
from everloop.testing import ScriptedModel
from everloop.testing.discord_server import DiscordServer
from everloop.testing.slack_server import SlackServer
from everloop.testing.telegram_server import TelegramServer
from tests.channels.discord.platform import TOKEN as DISCORD_TOKEN

PATIENCE = 60.0


class Given(Struct, frozen=True):
    """What sets up a channel, and what would, were it not refused."""

    values: dict[str, str]
    wrong: dict[str, str]


@asynccontextmanager
async def telegram() -> AsyncIterator[Given]:
    async with TelegramServer() as server:
        values = {"api_url": server.url, "token": server.token}
        yield Given(values, {**values, "token": "123456:AAE-canary-of-a-wrong-one"})


@asynccontextmanager
async def slack() -> AsyncIterator[Given]:
    async with SlackServer() as server:
        tokens = {"bot_token": server.bot_token, "app_token": server.app_token}
        values = {"api_url": server.api_url, "files_url": f"{server.url}/", **tokens}
        yield Given(values, {**values, "bot_token": "xoxb-canary-of-a-wrong-one"})


@asynccontextmanager
async def discord() -> AsyncIterator[Given]:
    async with DiscordServer(DISCORD_TOKEN) as server:
        values = {"api_url": server.api, "cdn_url": server.cdn, "token": DISCORD_TOKEN}
        yield Given(values, {**values, "token": f"{DISCORD_TOKEN[:-9]}canary-xx"})


PLATFORMS = {"telegram": telegram, "slack": slack, "discord": discord}


async def until(desk: GatewayDesk, name: str, state: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            if (await desk.channels.row(name)).state == state:
                return
            await asyncio.sleep(0.05)


async def test_they_are_tried_kept_and_open_without_a_restart(tmp_path: Path):
    async with open_desk(tmp_path, provider=ScriptedModel([])) as desk, AsyncExitStack() as stack:
        given = {name: await stack.enter_async_context(platform()) for name, platform in PLATFORMS.items()}
        for name, each in given.items():
            with pytest.raises(ChannelRefused) as refused:
                await desk.channels.add(name, each.wrong)
            assert (str(refused.value).endswith("Nothing was written"), "canary" in str(refused.value)) == (True, False)
        assert not (tmp_path / "config.toml").exists()
        added = {name: await desk.channels.add(name, each.values) for name, each in given.items()}
        written = (tmp_path / "config.toml").read_text()
        secrets = [value for each in given.values() for key, value in each.values.items() if "token" in key]
        assert [secret for secret in secrets if secret in written] == []
        for name in given:
            await until(desk, name, "listening")
            assert await desk.channels.test(name) == added[name].probed
        for name in given:
            await desk.channels.remove(name)
        assert [(await desk.channels.row(name)).state for name in given] == ["unset"] * len(given)
