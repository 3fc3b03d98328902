"""A kept login on its way: the token with each request to the server, renewed where it is spent or refused.

Nobody is asked anything here. A server that wants a login where there is none, or another one, ends the call with a
sentence that says how to log in.
"""

import base64
from collections.abc import AsyncGenerator, Mapping
from typing import Any
from urllib.parse import quote

import httpx2
import msgspec
from msgspec import Struct, structs

from ...errors import HostFailed, McpLogin, RateLimited
from ...ports.mcp import McpServer
from .kept_logins import Challenge, Clock, KeptLogin, LoginKeeper

_LONGEST_CHALLENGE = 4000  # characters


class _Tokens(Struct):
    access_token: str
    expires_in: float | None = None
    refresh_token: str | None = None
    scope: str | None = None


class KeptAuth(httpx2.Auth):
    """For requests to the server alone. `http` is what the authorization server is asked with. Raises McpLogin."""

    def __init__(self, server: McpServer, keeper: LoginKeeper, http: httpx2.AsyncClient, now: Clock) -> None:
        self._server = server
        self._keeper = keeper
        self._http = http
        self._now = now

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        login = await self._keeper.fresh(self._renew)
        if login:
            request.headers["Authorization"] = f"Bearer {login.access}"
        response = yield request
        if response.status_code == 401 and login:
            login = await self._keeper.renewed(login, self._renew)
            if login:
                request.headers["Authorization"] = f"Bearer {login.access}"
                response = yield request
        if wants_login(response):
            await self._keeper.note(challenge_of(response))
            raise McpLogin(f"{self._server.name} {_reason(response)}: everloop mcp login {self._server.name}")

    async def _renew(self, old: KeptLogin) -> KeptLogin | None:
        """None: refused. Raises ProviderError where it may be given later."""
        response = await self._http.send(renewal_of(old, self._server))
        if response.status_code == 429:
            raise RateLimited(f"{response.request.url.host} gives no new token for {self._server.name} yet (429).")
        if response.status_code >= 500:
            raise HostFailed(
                f"{response.request.url.host} gives no new token for {self._server.name} ({response.status_code})."
            )
        if response.status_code != 200:
            return None
        try:
            given = msgspec.json.decode(response.content, type=_Tokens)
        except msgspec.DecodeError:
            return None
        return structs.replace(
            old,
            access=given.access_token,
            refresh=given.refresh_token or old.refresh,
            expires=self._now() + given.expires_in if given.expires_in else 0.0,
            scope=given.scope or old.scope,
        )


def wants_login(response: httpx2.Response) -> bool:
    """Whoever asks for more rights than a login has given wants another one."""
    header = response.headers.get("www-authenticate", "")
    return response.status_code == 401 or (response.status_code == 403 and "insufficient_scope" in header)


def challenge_of(response: httpx2.Response) -> Challenge:
    return Challenge(response.status_code, response.headers.get("www-authenticate", "")[:_LONGEST_CHALLENGE])


def renewal_of(login: KeptLogin, server: McpServer) -> httpx2.Request:
    """The request for new tokens: https://www.rfc-editor.org/rfc/rfc6749#section-6"""
    client: Mapping[str, Any] = login.client
    form = {"grant_type": "refresh_token", "refresh_token": login.refresh, "client_id": str(client.get("client_id"))}
    if login.resource.get("resource"):
        form["resource"] = str(login.resource["resource"])
    headers = _client_headers(client, form)
    return httpx2.Request("POST", _token_endpoint(login, server), data=form, headers=headers)


def _client_headers(client: Mapping[str, Any], form: dict[str, str]) -> dict[str, str]:
    secret = client.get("client_secret")
    match client.get("token_endpoint_auth_method"):
        case "client_secret_basic" if secret:
            pair = f"{quote(form['client_id'], safe='')}:{quote(str(secret), safe='')}"
            return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        case "client_secret_post" if secret:
            form["client_secret"] = str(secret)
    return {}


def _token_endpoint(login: KeptLogin, server: McpServer) -> str:
    """Servers of 2025-03-26 have no metadata, and this path."""
    named = login.metadata.get("token_endpoint")
    return str(named or httpx2.URL(server.url).join("/token"))


def _reason(response: httpx2.Response) -> str:
    if response.status_code == 403:
        return "wants more rights than its login has: log in again"
    return "wants you to log in"
