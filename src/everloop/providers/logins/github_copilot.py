"""GitHub Copilot: a login by code at GitHub, and a token of half an hour that GitHub hands out for it again and again.

The host answers editors only, so we say of ourselves what the plugin for VS Code says.
"""

import asyncio
import time

from ...errors import KeyRefused, LoginDenied
from ...ports import Http, Vault
from ..dialects import Name
from . import DeviceCode, Login, Sleep
from .tokens import Clock, LoginTokens, TokenKeeper, again
from .waiting import NotYet, judge, until_granted
from .wire import get, post_form

GITHUB = "https://github.com"
API = "https://api.github.com"
BASE = "https://api.githubcopilot.com"

_CLIENT = "Iv1.b507a08c87ecfe98"  # that of the Copilot plugins; tokens of other clients are not traded
_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_CODE_SECONDS = 900.0
_ACCESS_SECONDS = 1500.0
_EDITOR = {
    "User-Agent": "GitHubCopilotChat/0.35.0",
    "Editor-Version": "vscode/1.107.0",
    "Editor-Plugin-Version": "copilot-chat/0.35.0",
    "Copilot-Integration-Id": "vscode-chat",
}


class CopilotLogin:
    name = "github-copilot"
    dialect: Name = "openai_chat"

    def __init__(
        self,
        http: Http,
        vault: Vault,
        *,
        now: Clock = time.time,
        github: str = GITHUB,
        api: str = API,
        base: str = BASE,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.base = base
        self._http = http
        self._now = now
        self._github = github.rstrip("/")
        self._api = api.rstrip("/")
        self._kept = TokenKeeper(self.name, vault, now, lambda old: self._trade(old.refresh), sleep)

    async def begin(self) -> DeviceCode:
        fields = {"client_id": _CLIENT, "scope": "read:user"}
        answer = await post_form(self._http, f"{self._github}/login/device/code", fields, _EDITOR)
        if not answer.good or answer.error:
            raise KeyRefused(
                f"{answer.host} gives no code for {self.name} ({answer.error or answer.status}). Try again later."
            )
        return DeviceCode(
            answer.word("verification_uri"),
            answer.word("user_code"),
            self._now() + answer.number("expires_in", _CODE_SECONDS),
            answer.number("interval", 5.0),
            answer.word("device_code"),
        )

    async def finish(self, asking: DeviceCode, sleep: Sleep = asyncio.sleep) -> None:
        fields = {"client_id": _CLIENT, "device_code": asking.device, "grant_type": _GRANT}

        async def ask() -> str | NotYet:
            answer = await post_form(self._http, f"{self._github}/login/oauth/access_token", fields, _EDITOR)
            return judge(self.name, answer) if answer.error or not answer.good else answer.word("access_token")

        granted = await until_granted(self.name, asking, ask, sleep, self._now)
        await self._kept.keep(await self._trade(granted))

    async def headers(self) -> dict[str, str]:
        tokens = await self._kept.fresh()
        return {"Authorization": f"Bearer {tokens.access}", **_EDITOR}

    async def _trade(self, granted: str) -> LoginTokens:
        """A token for Copilot in exchange for what GitHub has granted."""
        headers = {"Authorization": f"token {granted}", **_EDITOR}
        answer = await get(self._http, f"{self._api}/copilot_internal/v2/token", headers)
        if answer.status == 401:
            raise KeyRefused(f"{answer.host} no longer accepts the login to {self.name} (401). {again(self.name)}")
        if not answer.good:
            raise LoginDenied(
                f"{answer.host} does not let this GitHub account use Copilot ({answer.status}). Check its "
                f"subscription. To use another account, log in again with: everloop models login {self.name}"
            )
        return LoginTokens(answer.word("token"), answer.number("expires_at", self._now() + _ACCESS_SECONDS), granted)


def make(http: Http, vault: Vault) -> Login:
    return CopilotLogin(http, vault)
