"""Slack as the conformance suite knows a platform: over a socket, and by signed posts."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from everloop.channels.slack import MANIFEST, check_settings
from everloop.channels.slack.emoji import NAMES
from everloop.channels.slack.wire import SlackChannel
from everloop.net.trusted import TrustedHttp
from everloop.ports.channel import HookRequest
from everloop.testing import Trouble
from everloop.testing.conformance import Platform
from everloop.testing.slack_server import SlackFault, SlackServer

CHAT = "D0ANNA"


def settings_of(slack: SlackServer, **more: object) -> dict[str, object]:
    tokens = {"bot_token": slack.bot_token, "app_token": slack.app_token, "signing_secret": slack.signing_secret}
    return {**tokens, "api_url": slack.api_url, "files_url": slack.url, **more}


class WithoutDrafts(SlackChannel):
    """The suite counts what is posted."""

    manifest = structs.replace(MANIFEST, traits=structs.replace(MANIFEST.traits, preview=0.0))


class SlackPlatform(Platform):
    """What is said is a direct message; each event of the suite is one message, told again by its timestamp."""

    resumes = True
    long = "First, this.\n\n" + "Then a good deal more of it. " * 400 + "\n\nAnd that is all."

    def __init__(self, slack: SlackServer, mode: str = "socket", *, drafts: bool = False) -> None:
        super().__init__()
        self._make = SlackChannel if drafts else WithoutDrafts
        self.slack = slack
        self.mode = mode
        self.opened: list[TrustedHttp] = []
        self._stamps: dict[str, str] = {}
        slack.judge = self._judge

    def channel(self) -> SlackChannel:
        self.opened.append(TrustedHttp())
        return self._make(check_settings(settings_of(self.slack, mode=self.mode)), self.opened[-1])

    async def say(self, event: str, text: str) -> None:
        stamp = self._stamps.setdefault(event, self.slack.workspace.stamp())
        await self.slack.say(text, stamp=stamp)
        if self.mode == "socket":
            await self.slack.acknowledged(stamp)
        if stamp in {name for name, ids in self.slack.told.items() if ids <= self.slack.acked}:
            self.acknowledged.append(event)

    async def say_with_file(self, event: str, text: str, name: str, data: bytes) -> bool:
        stamp = await self.slack.say(text, files=[self.slack.workspace.keep(name, data, "text/plain")])
        await self.slack.acknowledged(stamp)
        return True

    def visible(self) -> Sequence[str]:
        return self.slack.workspace.shown(CHAT)

    def files(self) -> Sequence[tuple[str, bytes]]:
        return [(file.name, file.data) for file in self.slack.workspace.files.values()]

    def reactions(self) -> Sequence[str]:
        emoji = {name: each for each, name in NAMES.items()}
        said = [each for each in self.slack.workspace.chats[CHAT].values() if "bot_id" not in each]
        return [emoji[name] for name in said[-1].get("reactions", ())]

    async def post(self, headers: Mapping[str, str], body: bytes) -> int:
        (hook,) = self.hooks
        return (await hook.answer(HookRequest("POST", headers, body))).status

    def _judge(self, method: str, given: dict[str, Any]) -> SlackFault | None:
        if method not in ("chat.postMessage", "files.completeUploadExternal"):
            return None
        match self.receive("", given.get("text", "")):
            case Trouble.DOWN:
                return SlackFault(503)
            case Trouble.LIMITED:
                return SlackFault(429, retry_after=self.retry_after)
            case Trouble.ACK_LOST:
                return SlackFault(arrives=True, cut=True)
        return None

    def forged(self) -> Sequence[HookRequest]:
        if self.mode == "socket":
            return ()
        body = json.dumps({"type": "event_callback", "event": {"type": "message", "text": "give me all"}}).encode()
        good = self.slack.signed(body)
        right = good["x-slack-signature"]
        now = float(good["x-slack-request-timestamp"])
        wrong = [
            "",
            "v0=",
            right[:-1],
            right.upper(),
            right.replace("v0=", "v1="),
            right[3:],
            f"{right} ",
            "ü",
            "\udcff",
        ]
        times = ["", "-1", "nan", "1e9", "１７９", f"{now}", f" {int(now)}", f"{int(now)}\n", str(int(now) + 1)]
        challenge = b'{"type": "url_verification", "challenge": "x"}'
        return [
            HookRequest("POST", {}, body),
            HookRequest("POST", {}, challenge),
            HookRequest("POST", good, body + b" "),
            HookRequest("POST", good, challenge),
            HookRequest("POST", self.slack.signed(body, secret="another secret"), body),
            HookRequest("POST", self.slack.signed(body, at=now - 301), body),
            HookRequest("POST", self.slack.signed(body, at=now + 302), body),
            *(HookRequest("POST", {**good, "x-slack-signature": each}, body) for each in wrong),
            *(HookRequest("POST", {**good, "x-slack-request-timestamp": each}, body) for each in times),
        ]

    async def close(self) -> None:
        for http in self.opened:
            await http.close()
        await asyncio.sleep(0)
