"""What could not be followed because the store was away is followed when it is back."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from everloop.app.configured_channels import ConfiguredChannels
from everloop.app.opening import opened_home
from everloop.app.secrets import keep_secret
from everloop.errors import StoreUnreachable
from everloop.ports import Vault
from tests.channels.platform import Receiver


class AwayOnce:
    """A vault whose store is away when it is first asked for something."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self.is_away = False

    async def get(self, name: str) -> str | None:
        if self.is_away:
            self.is_away = False
            raise StoreUnreachable("the database does not answer")
        return await self._vault.get(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vault, name)


class Opened:
    """Which channels were opened and ended, in order."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.more = asyncio.Event()

    def start(self, channel: Any, admission: Any, hide: Any) -> None:
        self.told.append(f"start {channel.manifest.name}")
        self.more.set()

    async def end(self, name: str) -> None:
        self.told.append(f"end {name}")

    def unhook(self, name: str) -> None: ...

    def put_off(self, name: str) -> None: ...


async def test_a_change_that_met_an_outage_is_followed_afterwards(tmp_path: Path):
    def write(url: str) -> None:
        table = {"url": url, "secret": "${vault:hook}"}
        (tmp_path / "config.json").write_text(json.dumps({"channels": {"webhook": table}}))

    write("http://127.0.0.1:1/x")
    async with opened_home(tmp_path) as home:
        await keep_secret(home.vault, "hook", "a secret that is long enough")
        vault, channels = AwayOnce(home.vault), Opened()
        parts: Any = (replace(home, vault=vault), channels, Receiver, lambda channel, policy: None)
        configured = ConfiguredChannels(*parts)
        async with configured.open():
            assert channels.told == ["start webhook"]
            write("http://127.0.0.1:2/another")
            os.utime(tmp_path / "config.json", (1e9, 1e9))  # what was written just now is looked at twice in any case
            vault.is_away = True
            with pytest.raises(StoreUnreachable):
                await configured.follow()
            channels.more.clear()
            watching = asyncio.ensure_future(configured.watch())
            await asyncio.wait_for(channels.more.wait(), 60)
            watching.cancel()
            await asyncio.wait([watching])
    assert channels.told == ["start webhook", "end webhook", "start webhook"]
