"""Logging in to a server: authorization code with PKCE, as the SDK does it, over our `net`.

A login begins when a person asks for it and never inside a turn. It asks the server as a stranger would, so that it
says who may let us in; takes its last words from a call that was refused where it lets strangers in; and keeps what it
was given in the vault, with all that a renewal needs after a restart.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl, BaseModel

from ...errors import AddressRefused, EverloopError, McpDown
from ...ports import Hops, Vault
from ...ports.mcp import McpServer
from ...ports.vault import MCP_LOGIN
from ...readings.visible import in_one_line
from .callback import read_redirect
from .http import plain_client, quiet_sdk
from .kept_auth import challenge_of, wants_login
from .kept_logins import Challenge, Clock, KeptLogin, LoginKeeper
from .transport import EVENTS, NetTransport, Reach, origin_of

ShowUrl = Callable[[str], Awaitable[None]]
WaitForCode = Callable[[], Awaitable[str]]

_LONGEST_REASON = 300  # characters of what an authorization server says went wrong
_PERMIT = " If that is its authorization server, name it in the server's oauth.issuers."
_MOST_REDIRECTS = 5
_BASIC, _POST = "client_secret_basic", "client_secret_post"
_STRANGE = (OAuthFlowError, httpx2.HTTPError, httpx2.InvalidURL, ValueError)  # metadata that is none is a ValueError


class McpLogins:
    """The logins of the house to its servers. Each raises VaultLocked and StoreError, too."""

    def __init__(self, *, vault: Vault, trusted: Hops, open: Hops, now: Clock = time.time) -> None:
        self._vault = vault
        self._trusted = trusted
        self._open = open
        self._now = now

    async def log_in(self, server: McpServer, *, redirect: str, show_url: ShowUrl, wait_for_code: WaitForCode) -> None:
        """`show_url` is given what a person has to open in a browser; `wait_for_code` gives the address that the
        browser was sent to afterwards, its query, or the code that a person has copied from it. Raises McpDown."""
        quiet_sdk()
        keeper = LoginKeeper(server.name, server.url, self._vault, self._now)
        reach = Reach(server, self._trusted, self._open)
        login = _LoginAttempt(server, reach, redirect, await keeper.read(), show_url, wait_for_code)
        await keeper.keep(login.kept(await login.run(), self._now()))

    async def log_out(self, name: str) -> bool:
        """Also of a server that is no longer set. Whether there was a login to forget."""
        return await self._vault.forget(MCP_LOGIN + name)

    async def is_logged_in(self, server: McpServer) -> bool:
        login = await LoginKeeper(server.name, server.url, self._vault, self._now).read()
        return bool(login and login.access)


class _LoginAttempt:
    """One attempt, from the first question to the tokens."""

    def __init__(
        self,
        server: McpServer,
        reach: Reach,
        redirect: str,
        before: KeptLogin | None,
        show_url: ShowUrl,
        wait_for_code: WaitForCode,
    ) -> None:
        self._server = server
        self._reach = reach
        self._before = before or KeptLogin(url=server.url)
        self._show_url = show_url
        self._wait_for_code = wait_for_code
        self._state = ""
        client_id = server.oauth.client_id
        self._provider = OAuthClientProvider(
            server.url,
            _described(redirect),
            _InMemory(_client_of(server, redirect, self._before), _tokens_of(self._before)),
            redirect_handler=self._show,
            callback_handler=self._hear,
            client_metadata_url=client_id if client_id.startswith("https://") else None,
        )

    async def run(self) -> OAuthToken:
        """Raises McpDown."""
        client = plain_client(NetTransport(self._server, self._reach))
        try:
            response = await client.send(_question(self._server), stream=True, auth=_AskedToLogIn(self))
            await response.aclose()
        except McpDown:
            raise
        except EverloopError as error:
            hint = _PERMIT if isinstance(error, AddressRefused) and "oauth.issuers" not in str(error) else ""
            raise McpDown(f"The login to {self._server.name} failed: {error}{hint}") from error
        except _STRANGE as error:
            raise McpDown(f"The login to {self._server.name} failed: {_reason(error)}") from error
        tokens = self._provider.context.current_tokens
        if wants_login(response) or tokens is None:
            raise McpDown(f"{self._server.name} does not accept the login that it has asked for. Nothing was kept.")
        return tokens

    def kept(self, tokens: OAuthToken, now: float) -> KeptLogin:
        context = self._provider.context
        return KeptLogin(
            url=self._server.url,
            access=tokens.access_token,
            refresh=tokens.refresh_token or "",
            expires=now + tokens.expires_in if tokens.expires_in else 0.0,
            scope=tokens.scope or "",
            client=_dumped(context.client_info),
            metadata=_dumped(context.oauth_metadata),
            resource={"resource": context.get_resource_url()} if context.protected_resource_metadata else {},
        )

    def flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        return self._provider.async_auth_flow(request)

    def challenged(self, response: httpx2.Response) -> httpx2.Response:
        """The server's words as those of a server that wants a login: its own, or those of a call that it has
        refused. Raises McpDown where it has never asked for one."""
        before = self._before.challenge
        if response.next_request:
            raise McpDown(
                f"{self._server.name} redirects to {origin_of(response.next_request.url)}, which is not followed. If "
                f"it has moved there, set that as its address."
            )
        if wants_login(response):
            said = challenge_of(response)
        elif before != Challenge():
            said = before
        else:
            raise McpDown(
                f"{self._server.name} does not ask for a login: it has answered ({response.status_code}) without one."
            )
        scopes = " ".join(self._server.oauth.scopes)
        header = f'Bearer scope="{scopes}", {said.header}' if scopes else said.header
        return httpx2.Response(said.status, headers={"www-authenticate": header}, request=response.request)

    async def _show(self, url: str) -> None:
        self._reach.door(httpx2.URL(url))
        self._choose_method()
        self._state = parse_qs(urlsplit(url).query).get("state", [""])[0]
        await self._show_url(url)

    async def _hear(self) -> AuthorizationCodeResult:
        came = read_redirect(await self._wait_for_code())
        if came.error:
            raise McpDown(f"The login to {self._server.name} was refused: {_cut(came.error)}.")
        # What a person has copied is theirs to say, and of no use to a login with another verifier (PKCE).
        state = self._state if came.state is None else came.state
        return AuthorizationCodeResult(code=came.code, state=state, iss=came.issuer)

    def _choose_method(self) -> None:
        """How the owner's secret is told; what we have registered ourselves says how."""
        client, metadata = self._provider.context.client_info, self._provider.context.oauth_metadata
        if client and self._server.oauth.client_secret:
            known = (metadata and metadata.token_endpoint_auth_methods_supported) or [_BASIC]
            client.token_endpoint_auth_method = _POST if _POST in known and _BASIC not in known else _BASIC


class _AskedToLogIn(httpx2.Auth):
    """The SDK's flow, which is told that the server wants a login also where it has said so earlier."""

    requires_response_body = True

    def __init__(self, login: _LoginAttempt) -> None:
        self._login = login

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        flow = self._login.flow(request)
        try:
            response = yield await anext(flow)
            for _ in range(_MOST_REDIRECTS):
                following = _following(response)
                if following is None:
                    break
                response = yield following
            heard = self._login.challenged(response)
            while True:
                response = yield await flow.asend(heard)
                heard = response
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()


def _following(response: httpx2.Response) -> httpx2.Request | None:
    """After a redirect within the server's origin the same is asked there, as the SDK does."""
    there, asked = response.next_request, response.request
    stays = there and there.method == asked.method and origin_of(there.url) == origin_of(asked.url)
    return there if stays else None


class _InMemory:
    """The SDK's TokenStorage for one login: what it was given is kept as a whole, when it is known to be of use."""

    def __init__(self, client: OAuthClientInformationFull | None, tokens: OAuthToken | None) -> None:
        self._client = client
        self._tokens = tokens

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


def _described(redirect: str) -> OAuthClientMetadata:
    return OAuthClientMetadata(
        redirect_uris=[AnyUrl(redirect)],
        client_name="everloop",
        application_type="native" if _is_loopback(redirect) else "web",
    )


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _client_of(server: McpServer, redirect: str, before: KeptLogin) -> OAuthClientInformationFull | None:
    """Who we are there: as the owner has set it, or as we have registered, if that was with the same redirect."""
    oauth = server.oauth
    if oauth.client_id and not oauth.client_id.startswith("https://"):
        return OAuthClientInformationFull(
            client_id=oauth.client_id,
            client_secret=oauth.client_secret or None,
            redirect_uris=[AnyUrl(redirect)],
            token_endpoint_auth_method=_BASIC if oauth.client_secret else "none",
        )
    if oauth.client_id or redirect not in before.client.get("redirect_uris", ()):
        return None
    return OAuthClientInformationFull.model_validate(before.client)


def _tokens_of(before: KeptLogin) -> OAuthToken | None:
    """Only a login that had too few rights is of use to the next: they are asked for together."""
    if not before.access or before.challenge.status != 403:
        return None
    return OAuthToken(access_token=before.access, scope=before.scope or None)


def _question(server: McpServer) -> httpx2.Request:
    """One that does nothing, and that a stranger is not answered where a login is wanted."""
    if server.transport == "sse":
        return httpx2.Request("GET", server.url, headers={"accept": EVENTS})
    headers = {"accept": f"application/json, {EVENTS}"}
    return httpx2.Request("POST", server.url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers)


def _dumped(model: BaseModel | None) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True) if model else {}


def _reason(error: Exception) -> str:
    text = str(error)
    if text.startswith("State parameter mismatch"):
        return "what came back belongs to another login (state). Try again."
    return f"{_cut(text)} ({type(error).__name__})"


def _cut(text: str) -> str:
    return in_one_line(text[:_LONGEST_REASON])
