"""A channel of a stranger's package, found by its entry point: it is set up with a token, or by a login."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from everloop.errors import ChannelDown, ChannelRefused, HostUnreachable, SettingsError
from everloop.ports import Deliver, Http
from everloop.ports.channel import Manifest, OutgoingPart, Probed, Setup, SetupField, Traits

SETUP = Setup(
    title="Parrot",
    steps=("Ask the parrot for a token, which it tells whoever feeds it.",),
    fields=(
        SetupField("url", "Where the parrot lives"),
        SetupField("token", "What the parrot told you", secret=True),
        SetupField("nickname", "What it calls you", optional=True),
    ),
)
LOGIN = (SetupField("url", "Where the parrot lives"), SetupField("password", "Its password", secret=True))
KEYS = ("url", "token", "nickname", "enabled", "volume")
NEEDED = {"speak": "the parrot may not speak: give it the scope speak", "fly": "the parrot may not fly: open its cage"}


class Parrot:
    manifest = Manifest("parrot", Traits(once=True))

    def __init__(self, url: str, token: str, http: Http) -> None:
        self._url, self._token, self._http = url, token, http

    async def run(self, deliver: Deliver, resume: str) -> None:
        await self.probe()
        await asyncio.Event().wait()

    async def send(self, part: OutgoingPart) -> str:
        raise ChannelDown("the parrot sleeps")

    async def probe(self) -> Probed:
        status, told = await ask(self._http, self._url, {"Authorization": f"Bearer {self._token}"})
        if status == 401:
            raise ChannelRefused(f"the parrot does not know the token {self._token}; ask it for another")
        missing = tuple(NEEDED[each] for each in NEEDED if each not in told["scopes"])
        return Probed(account=told["name"], missing=missing, link="https://parrot.example/polly")


async def ask(http: Http, url: str, headers: Mapping[str, str]) -> tuple[int, Any]:
    try:
        async with http.request("GET", f"{url}/me", headers=headers, seconds=10) as answer:
            return answer.status, json.loads(await answer.read(10_000) or b"{}")
    except HostUnreachable as error:
        raise ChannelDown(str(error)) from error


def open_channel(values: Mapping[str, Any], http: Http) -> Parrot:
    if unknown := [key for key in values if key not in KEYS]:
        raise SettingsError(f"there is no setting channels.parrot.{unknown[0]}")
    if len(values.get("token", "")) < 8:
        raise SettingsError(f"channels.parrot.token is too short: {values.get('token', '')}")
    return Parrot(values["url"], values["token"], http)


async def log_in(values: Mapping[str, str], http: Http) -> dict[str, str]:
    status, told = await ask(http, values["url"], {"X-Password": values["password"]})
    if status == 401:
        raise ChannelRefused(f"the parrot does not know the password {values['password']}")
    return {"url": values["url"], "token": told["token"]}
