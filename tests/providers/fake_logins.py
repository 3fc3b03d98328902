"""A fake of the hosts at which people log in: OpenAI for Codex, GitHub for Copilot, in one server on loopback.

It gives out a code, is as undecided as the test says, and then hands out tokens that end after a while. A refresh
token of OpenAI is good for one time, as it is there.
"""

import asyncio
from base64 import urlsafe_b64encode
from collections import defaultdict, deque
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from aiohttp import web
from msgspec import Struct

USERCODE, POLL, OAUTH = "/api/accounts/deviceauth/usercode", "/api/accounts/deviceauth/token", "/oauth/token"
DEVICE, GRANT, COPILOT = "/login/device/code", "/login/oauth/access_token", "/copilot_internal/v2/token"

PAGE = "<html><body>Please sign in to the guest network SECRET</body></html>"


class Said(Struct, frozen=True):
    """One answer of the host; text is sent as a web page."""

    status: int
    body: dict[str, Any] | str
    headers: dict[str, str] = {}


class Seen(Struct, frozen=True):
    method: str
    path: str
    fields: dict[str, str]
    authorization: str = ""


def token_of(name: str, **claims: Any) -> str:
    """A token that says these things of itself, as OpenAI's do."""
    middle = urlsafe_b64encode(msgspec.json.encode(claims)).rstrip(b"=").decode()
    return f"SECRET-{name}.{middle}.signature"


class FakeLogins:
    """A handler for the server. `script` holds answers that come before the usual ones, by path."""

    def __init__(self, now: float) -> None:
        self.seen: list[Seen] = []
        self.script: dict[str, deque[Said]] = defaultdict(deque)
        self.now = now
        self.account = "acct-1"
        self.hold: asyncio.Event | None = None  # what a trade of tokens waits for, if anything
        self.trading = asyncio.Event()
        self._traded = 0
        self._refresh = ""

    def paths(self) -> list[str]:
        return [seen.path for seen in self.seen]

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        fields = _fields(request.content_type, await request.text())
        self.seen.append(Seen(request.method, request.path, fields, request.headers.get("Authorization", "")))
        if request.path in (OAUTH, COPILOT):
            self.trading.set()
            if self.hold:
                await self.hold.wait()
        said = self.script[request.path].popleft() if self.script[request.path] else self._usual(request.path, fields)
        if isinstance(said.body, str):
            return web.Response(status=said.status, text=said.body, content_type="text/html", headers=said.headers)
        return web.json_response(said.body, status=said.status, headers=said.headers)

    def _usual(self, path: str, fields: dict[str, str]) -> Said:
        match path:
            case "/api/accounts/deviceauth/usercode":
                return Said(200, {"device_auth_id": "SECRET-device", "user_code": "ABCD-1234", "interval": "5"})
            case "/api/accounts/deviceauth/token":
                code = {"authorization_code": "SECRET-code", "code_challenge": "c", "code_verifier": "SECRET-verifier"}
                return Said(200, code)
            case "/oauth/token":
                return self._trade(fields)
            case "/login/device/code":
                code = {"device_code": "SECRET-device", "user_code": "ABCD-1234"}
                place = {"verification_uri": "https://github.com/login/device", "expires_in": 899, "interval": 7}
                return Said(200, code | place)
            case "/login/oauth/access_token":
                return Said(200, {"access_token": "SECRET-github", "token_type": "bearer", "scope": "read:user"})
            case "/copilot_internal/v2/token":
                self._traded += 1
                return Said(200, {"token": f"tid=SECRET-copilot-{self._traded}", "expires_at": int(self.now) + 1800})
        return Said(404, {"message": "Not Found"})

    def _trade(self, fields: dict[str, str]) -> Said:
        granted = ("SECRET-code", "SECRET-verifier")
        code = fields["grant_type"] == "authorization_code" and (fields["code"], fields["code_verifier"]) == granted
        again = fields["grant_type"] == "refresh_token" and fields["refresh_token"] == self._refresh
        if not code and not again:
            return Said(401, {"error": {"code": "refresh_token_reused", "message": f"{fields} was used before"}})
        self._traded += 1
        self._refresh = f"SECRET-refresh-{self._traded}"
        claims = {"https://api.openai.com/auth": {"chatgpt_account_id": self.account}}
        return Said(
            200,
            {
                "access_token": token_of(f"access-{self._traded}", exp=int(self.now) + 3600),
                "refresh_token": self._refresh,
                "id_token": token_of("id", **claims),
            },
        )


def _fields(kind: str, body: str) -> dict[str, str]:
    if kind == "application/json":
        return msgspec.json.decode(body, type=dict[str, str])
    return dict(parse_qsl(body))


class Drawer:
    """A vault without a lock."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    async def get(self, name: str) -> str | None:
        return self.kept.get(name)

    async def set(self, name: str, value: str) -> None:
        self.kept[name] = value
