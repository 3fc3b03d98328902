"""ChatGPT subscriptions: OpenAI's login by code for Codex, as github.com/openai/codex does it.

The code is exchanged in two steps: whoever polls is given an authorization code together with its verifier, and that
is traded for tokens. A refresh token is good for one time.
"""

import asyncio
import time
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ...errors import KeyRefused
from ...ports import Http, Vault
from ..dialects import Name
from . import DeviceCode, Login, Sleep
from .tokens import Clock, LoginTokens, TokenKeeper, again
from .waiting import NotYet, judge, until_granted
from .wire import LoginAnswer, post_form, post_json

AUTH = "https://auth.openai.com"
BASE = "https://chatgpt.com/backend-api/codex"

_CLIENT = "app_EMoamEEZ73f0CkXaXp7hrann"  # that of the Codex CLI; the login by code is open to no other
_CODE_SECONDS = 900.0
_ACCESS_SECONDS = 3600.0  # if neither the host nor the token says how long it is good for
_PENDING = (403, 404)


class _Code(Struct, frozen=True):
    code: str
    verifier: str

    def __repr__(self) -> str:
        return "_Code()"


class CodexLogin:
    name = "openai-codex"
    dialect: Name = "openai_responses"

    def __init__(
        self,
        http: Http,
        vault: Vault,
        *,
        now: Clock = time.time,
        auth: str = AUTH,
        base: str = BASE,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.base = base
        self._http = http
        self._now = now
        self._auth = auth.rstrip("/")
        self._kept = TokenKeeper(self.name, vault, now, self._renew, sleep)

    async def begin(self) -> DeviceCode:
        answer = await post_json(self._http, f"{self._auth}/api/accounts/deviceauth/usercode", {"client_id": _CLIENT})
        if not answer.good:
            raise KeyRefused(
                f"{answer.host} gives no code for {self.name} ({answer.error or answer.status}). Check that the login "
                f"by device code is switched on in ChatGPT's security settings, and try again."
            )
        return DeviceCode(
            f"{self._auth}/codex/device",
            answer.word("user_code", "usercode"),
            self._now() + _CODE_SECONDS,
            answer.number("interval", 5.0),
            answer.word("device_auth_id"),
        )

    async def finish(self, asking: DeviceCode, sleep: Sleep = asyncio.sleep) -> None:
        async def ask() -> _Code | NotYet:
            answer = await post_json(
                self._http,
                f"{self._auth}/api/accounts/deviceauth/token",
                {"device_auth_id": asking.device, "user_code": asking.code},
            )
            if not answer.good:
                return judge(self.name, answer, _PENDING)
            return _Code(answer.word("authorization_code"), answer.word("code_verifier"))

        code = await until_granted(self.name, asking, ask, sleep, self._now)
        answer = await self._trade(
            {
                "grant_type": "authorization_code",
                "code": code.code,
                "code_verifier": code.verifier,
                "redirect_uri": f"{self._auth}/deviceauth/callback",
            }
        )
        answer.word("refresh_token")
        await self._kept.keep(self._tokens(answer))

    async def headers(self) -> dict[str, str]:
        tokens = await self._kept.fresh()
        account = {"chatgpt-account-id": tokens.account} if tokens.account else {}
        return {"Authorization": f"Bearer {tokens.access}", "originator": "everloop", **account}

    async def _renew(self, old: LoginTokens) -> LoginTokens:
        answer = await self._trade({"grant_type": "refresh_token", "refresh_token": old.refresh})
        return self._tokens(answer, old.refresh, old.account)

    async def _trade(self, fields: Mapping[str, str]) -> LoginAnswer:
        answer = await post_form(self._http, f"{self._auth}/oauth/token", {"client_id": _CLIENT, **fields})
        if not answer.good:
            raise KeyRefused(
                f"{answer.host} no longer accepts the login to {self.name} ({answer.error or answer.status}). "
                f"{again(self.name)}"
            )
        return answer

    def _tokens(self, answer: LoginAnswer, refresh: str = "", account: str = "") -> LoginTokens:
        access = answer.word("access_token")
        claims = _claims(access)
        named = _account(_claims(answer.maybe("id_token"))) or _account(claims) or account
        return LoginTokens(access, self._end(answer, claims), answer.maybe("refresh_token") or refresh, named)

    def _end(self, answer: LoginAnswer, claims: Mapping[str, Any]) -> float:
        match claims:
            case {"exp": int(end) | float(end)}:
                told = end - self._now()
            case _:
                told = _ACCESS_SECONDS
        return self._now() + answer.number("expires_in", told)


def make(http: Http, vault: Vault) -> Login:
    return CodexLogin(http, vault)


def _claims(token: str) -> dict[str, Any]:
    """What a token says of itself. The signature is not looked at: it has come from its issuer a moment ago."""
    middle = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = msgspec.json.decode(urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
    except (msgspec.DecodeError, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _account(claims: Mapping[str, Any]) -> str:
    match claims:
        case {"https://api.openai.com/auth": {"chatgpt_account_id": str(account)}} | {
            "chatgpt_account_id": str(account)
        } if account.isascii() and account.isprintable():
            return account
    return ""
