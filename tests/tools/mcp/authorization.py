"""A server that wants a login, and an authorization server that lets everybody in who asks: the SDK's own, on loopback,
with PKCE, dynamic registration, and refresh tokens that are good for one time."""

import http.client
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    ProviderTokenVerifier,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from tests.ports import free_port
from tests.tools.mcp.hosts import demo_server, serving

LIFETIME = 3600


class Desk:
    """The SDK's OAuthAuthorizationServerProvider over some dicts."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.refreshes: dict[str, RefreshToken] = {}
        self.accesses: dict[str, AccessToken] = {}
        self.renewals = 0
        self._given = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=self._new("code"),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: AuthorizationCode) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._grant(authorization_code.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        return self.refreshes.get(refresh_token)

    async def exchange_refresh_token(self, client: Any, refresh_token: RefreshToken, scopes: list[str]) -> OAuthToken:
        del self.refreshes[refresh_token.token]
        self.renewals += 1
        return self._grant(refresh_token.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.accesses.get(token)

    async def revoke_token(self, token: Any) -> None:
        self.accesses.pop(token.token, None)

    def _grant(self, client: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = self._new("access"), self._new("refresh")
        self.accesses[access] = AccessToken(token=access, client_id=client, scopes=scopes, resource=resource)
        self.refreshes[refresh] = RefreshToken(token=refresh, client_id=client, scopes=scopes, resource=resource)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=LIFETIME, scope=" ".join(scopes))

    def _new(self, kind: str) -> str:
        self._given += 1
        return f"{kind}-{self._given}"


class Place:
    """Where a server and its authorization server are."""

    def __init__(self, desk: Desk, server: str, issuer: str) -> None:
        self.desk = desk
        self.url = f"{server}/mcp"
        self.issuer = issuer


@asynccontextmanager
async def guarded_server(apart: bool = False, sse: bool = False) -> AsyncIterator[Place]:
    """`apart`: its authorization server has an origin of its own."""
    desk, port = Desk(), free_port()
    origin = f"http://127.0.0.1:{port}"
    issuer = f"http://127.0.0.1:{free_port()}" if apart else origin
    registration = ClientRegistrationOptions(enabled=True, valid_scopes=["use", "more"], default_scopes=["use"])
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(issuer),
        client_registration_options=registration,
        required_scopes=["use"],
        resource_server_url=AnyHttpUrl(f"{origin}/mcp"),
        validate_token_resource=True,
    )
    guard: Any = {"token_verifier": ProviderTokenVerifier(desk)} if apart else {"auth_server_provider": desk}
    server = demo_server(auth=settings, **guard)
    app = server.sse_app(sse_path="/mcp") if sse else server.streamable_http_app()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(serving(app, port))
        if apart:
            routes = create_auth_routes(desk, AnyHttpUrl(issuer), client_registration_options=registration)
            await stack.enter_async_context(serving(Starlette(routes=routes), urlsplit(issuer).port or 0))
        yield Place(desk, origin, issuer)


def agree(url: str) -> str:
    """What a browser is sent to when a person opens this address and agrees. It waits: run it in a thread."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=20)
    try:
        connection.request("GET", f"{place.path}?{place.query}")
        return connection.getresponse().getheader("Location") or ""
    finally:
        connection.close()


def visit(url: str) -> tuple[int, str]:
    """The status and the page at an address. It waits: run it in a thread."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=20)
    try:
        connection.request("GET", f"{place.path}?{place.query}")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
