"""Logins to servers: made by a person, kept in the vault, renewed by themselves, and never begun inside a call."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from mcp import Client
from mcp.shared.auth import OAuthClientInformationFull
from msgspec import structs
from pydantic import AnyUrl
from tests.tools.mcp.authorization import agree, guarded_server, visit
from tests.tools.mcp.hosts import Asked, Network, answer, network, saying, server_at

from everloop.errors import McpDown, McpLogin
from everloop.ports.mcp import McpOAuth, McpServer
from everloop.tools.mcp.callback import Redirected, loopback_redirect, read_redirect
from everloop.tools.mcp.http import http_wire
from everloop.tools.mcp.kept_logins import KeptLogin
from everloop.tools.mcp.oauth import McpLogins
from everloop.tools.mcp.page_login import PageLogins

REDIRECT = "http://127.0.0.1:9/callback"
LATER = 1e10  # when every token has come to its end


def logins(net: Network) -> McpLogins:
    return McpLogins(vault=net.vault, trusted=net.trusted, open=net.open)


async def log_in(net: Network, server: McpServer, change: Any = str) -> str:
    """As a person does who pastes what their browser shows, maybe changed on the way. Gives what they were shown."""
    shown: list[str] = []

    async def show(url: str) -> None:
        shown.append(url)

    async def paste() -> str:
        return change(await asyncio.to_thread(agree, shown[0]))

    await logins(net).log_in(server, redirect=REDIRECT, show_url=show, wait_for_code=paste)
    return shown[0]


async def use(net: Network, server: McpServer, now: float | None = None) -> str:
    more = {} if now is None else {"now": lambda: now}
    wire = http_wire(server, trusted=net.trusted, open=net.open, vault=net.vault, **more)
    async with Client(wire, mode="legacy") as client:
        return (await client.call_tool("add", {"a": 1, "b": 2})).content[0].text


def kept(net: Network, name: str = "demo") -> KeptLogin:
    return msgspec.json.decode(net.vault.kept_values[f"mcp:{name}"], type=KeptLogin)


@asynccontextmanager
async def logged_in(**more: Any):
    async with guarded_server() as place, network() as net:
        server = server_at(place.url, **more)
        await log_in(net, server)
        yield place, net, server


async def test_without_a_login_a_call_says_how_to_log_in_and_begins_none():
    async with guarded_server() as place, network() as net:
        with pytest.raises(McpLogin) as raised:
            await use(net, server_at(place.url))
        assert str(raised.value) == "demo wants you to log in: everloop mcp login demo"
        assert (place.desk.clients, place.desk.codes) == ({}, {})
        assert not await logins(net).is_logged_in(server_at(place.url))


@pytest.mark.parametrize("sse", [False, True])
async def test_after_a_login_calls_are_let_in(sse: bool):
    async with guarded_server(sse=sse) as place, network() as net:
        server = server_at(place.url, transport="sse" if sse else "http")
        url = await log_in(net, server)
        assert await use(net, server) == "3"
        assert await logins(net).is_logged_in(server)
    assert "code_challenge_method=S256" in url
    assert [*net.vault.kept_values] == ["mcp:demo"]


async def test_the_browser_comes_back_to_this_machine():
    async with guarded_server() as place, network() as net, loopback_redirect() as back:
        pages: list[tuple[int, str]] = []

        async def show(url: str) -> None:
            pages.append(await asyncio.to_thread(visit, await asyncio.to_thread(agree, url)))

        server = server_at(place.url)
        await logins(net).log_in(server, redirect=back.url, show_url=show, wait_for_code=back.wait)
        assert await use(net, server) == "3"
    assert [(status, "go back to everloop" in page) for status, page in pages] == [(200, True)]


async def test_the_place_where_the_browser_comes_back_answers_once_and_for_nothing_else():
    async with loopback_redirect() as back:
        asked = [
            back.url,
            f"{back.url}?x=1",
            back.url.replace("callback", "other?code=c"),
            f"{back.url}?code=c&state=s",
        ]
        statuses = [(await asyncio.to_thread(visit, url))[0] for url in [*asked, asked[-1]]]
        assert statuses == [404, 404, 404, 200, 410]
        assert await back.wait() == "code=c&state=s"


async def test_nobody_who_comes_back_is_not_waited_for_for_ever():
    async with loopback_redirect(seconds=0.05) as back:
        with pytest.raises(McpDown, match=r"Nobody has logged in within 0\.05 s"):
            await back.wait()


@pytest.mark.parametrize(
    "text, read",
    [
        ("http://127.0.0.1:9/callback?code=c&state=s&iss=i", Redirected("c", "s", "i")),
        ("?code=c&state=s", Redirected("c", "s")),
        ("code=c", Redirected("c", "")),
        (" SplxlOBeZQQYbYS6WxSbIA\n", Redirected("SplxlOBeZQQYbYS6WxSbIA")),
        ("error=access_denied&state=s", Redirected("", "s", None, "access_denied")),
    ],
)
def test_what_came_back_is_read_from_an_address_a_query_or_a_code(text: str, read: Redirected):
    found = read_redirect(text)
    assert structs.astuple(found) == structs.astuple(read)


@pytest.mark.parametrize("text", ["", "http://127.0.0.1:9/callback", "yes please", "c\u00f6de"])
def test_what_is_neither_is_refused(text: str):
    with pytest.raises(McpDown, match="neither the address that the browser was sent to nor a code"):
        read_redirect(text)


async def test_a_code_that_was_pasted_alone_is_enough():
    async with guarded_server() as place, network() as net:
        await log_in(net, server_at(place.url), lambda url: read_redirect(url).code)
        assert await use(net, server_at(place.url)) == "3"


@pytest.mark.parametrize(
    "change, why",
    [
        (lambda url: url.partition("&state")[0], "belongs to another login"),
        (lambda url: url[:-5] + "xxxxx", "belongs to another login"),
        (lambda url: "error=access_denied", "was refused: access_denied"),
        (lambda url: url.replace("code=code", "code=guess"), "Token exchange failed"),
    ],
)
async def test_what_came_back_wrong_is_no_login(change: Any, why: str):
    async with guarded_server() as place, network() as net:
        with pytest.raises(McpDown, match=why):
            await log_in(net, server_at(place.url), change)
        assert net.vault.kept_values == {}


async def test_a_code_of_another_login_is_of_no_use():
    """An attacker's code, slipped to a person to paste: PKCE binds it to the attacker's own login."""
    async with guarded_server() as place, network() as net, network() as theirs:
        stolen: list[str] = []
        with pytest.raises(McpDown):
            await log_in(theirs, server_at(place.url), lambda url: stolen.append(read_redirect(url).code) or "error=x")
        with pytest.raises(McpDown, match="Token exchange failed"):
            await log_in(net, server_at(place.url), lambda url: stolen[0])


async def test_tokens_that_have_come_to_their_end_are_renewed():
    async with logged_in() as (place, net, server):
        before = kept(net)
        assert await use(net, server, LATER) == "3"
        after = kept(net)
    assert place.desk.renewals >= 1
    assert (before.access, before.refresh) != (after.access, after.refresh)
    assert structs.replace(after, access=before.access, refresh=before.refresh, expires=before.expires) == before


async def test_a_token_that_was_taken_back_is_renewed_before_anybody_is_asked():
    async with logged_in() as (place, net, server):
        place.desk.accesses.clear()
        assert await use(net, server) == "3"
    assert place.desk.renewals == 1


async def test_a_login_that_was_taken_back_wants_another():
    async with logged_in() as (place, net, server):
        place.desk.accesses.clear()
        place.desk.refreshes.clear()
        with pytest.raises(McpLogin, match="demo wants you to log in: everloop mcp login demo"):
            await use(net, server)
        await log_in(net, server)
        assert await use(net, server) == "3"


async def test_two_processes_that_renew_at_once_both_go_on():
    """Each refresh token is good for one time, and nothing but the vault is between them."""
    async with logged_in() as (place, net, server):
        place.desk.accesses.clear()
        assert await asyncio.gather(*(use(net, server) for _ in range(4))) == ["3"] * 4
        assert kept(net).refresh in place.desk.refreshes
    assert place.desk.renewals == 1


async def test_a_renewal_is_kept_although_its_call_was_cancelled():
    async with logged_in() as (place, net, server):
        place.desk.accesses.clear()
        exchange = place.desk.exchange_refresh_token
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def slowly(*args: Any) -> Any:
            begun.set()
            await go_on.wait()
            return await exchange(*args)

        place.desk.exchange_refresh_token = slowly  # type: ignore[method-assign]
        call = asyncio.create_task(use(net, server))
        await begun.wait()
        call.cancel()
        go_on.set()
        await asyncio.gather(call, return_exceptions=True)
        assert kept(net).refresh in place.desk.refreshes


async def test_a_login_is_forgotten_by_logging_out():
    async with logged_in() as (_, net, server):
        assert await logins(net).log_out("demo")
        assert not await logins(net).log_out("demo")
        with pytest.raises(McpLogin):
            await use(net, server)


async def test_another_server_under_the_same_name_is_not_given_the_token():
    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(401))

    async with logged_in() as (_, net, server), saying(say) as (heard, origin):
        with pytest.raises(McpLogin):
            await use(net, structs.replace(server, url=f"{origin}/mcp"))
        assert not await logins(net).is_logged_in(structs.replace(server, url=f"{origin}/mcp"))
    assert [each.headers.get("authorization") for each in heard.asked if "authorization" in each.headers] == []


async def test_the_clients_own_name_and_secret_are_used_where_the_owner_has_set_them():
    async with guarded_server() as place, network() as net:
        place.desk.clients["ours"] = OAuthClientInformationFull(
            client_id="ours",
            client_secret="s3cret",
            redirect_uris=[AnyUrl(REDIRECT)],
            token_endpoint_auth_method="client_secret_basic",
            scope="use more",
        )
        oauth = McpOAuth(client_id="ours", client_secret="s3cret", scopes=("use", "more"))
        server = server_at(place.url, oauth=oauth)
        url = await log_in(net, server, str)
        assert await use(net, server, LATER) == "3"
        assert [*place.desk.clients] == ["ours"]
    assert "scope=use+more" in url
    assert "s3cret" not in repr(server) + repr(oauth) + repr(kept(net))


async def test_an_authorization_server_of_the_owners_network_is_asked_when_the_owner_has_named_it():
    async with guarded_server(apart=True) as place, network() as net:
        with pytest.raises(McpDown) as raised:
            await log_in(net, server_at(place.url))
        assert str(raised.value) == (
            f"The login to demo failed: demo points at {place.issuer}, which is not encrypted and not its own address. "
            f"If that is its authorization server, name it in the server's oauth.issuers."
        )
        server = server_at(place.url, oauth=McpOAuth(issuers=(place.issuer,)))
        await log_in(net, server)
        assert await use(net, server, LATER) == "3"
    assert place.desk.renewals >= 1


async def test_the_servers_headers_go_to_its_own_origin_alone():
    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(404))

    async with saying(say) as (issuer, issuer_origin):
        metadata = msgspec.json.encode({"resource": "", "authorization_servers": [f"{issuer_origin}/"]})

        async def challenge(asked: Asked, writer: asyncio.StreamWriter) -> None:
            if asked.method == "GET":
                url = f"http://{asked.headers['host']}/mcp".encode()
                writer.write(answer(200, metadata.replace(b'"resource":""', b'"resource":"%b"' % url)))
            else:
                writer.write(answer(401, WWW_Authenticate="Bearer"))

        async with saying(challenge) as (host, origin), network() as net:
            oauth = McpOAuth(issuers=(issuer_origin,))
            with pytest.raises(McpDown):
                await log_in(net, server_at(f"{origin}/mcp", headers={"X-Key": "k3y"}, oauth=oauth))
    assert {each.headers.get("x-key") for each in host.asked} == {"k3y"}
    assert issuer.asked
    assert {each.headers.get("x-key") for each in issuer.asked} == {None}


async def test_a_server_that_asks_for_no_login_gets_none():
    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(200, b'{"jsonrpc":"2.0","id":1,"result":{}}'))

    async with saying(say) as (_, origin), network() as net:
        with pytest.raises(McpDown, match="demo does not ask for a login: it has answered"):
            await log_in(net, server_at(f"{origin}/mcp"))


async def test_a_page_logs_in_by_an_address_of_the_gateway():
    async with guarded_server() as place, network() as net, PageLogins(logins(net)) as pages:
        server = server_at(place.url)
        url = await pages.begin(server, "https://everloop.test/api/mcp/callback")
        query = (await asyncio.to_thread(agree, url)).partition("?")[2]
        assert await pages.finish(query) == "demo"
        assert await use(net, server) == "3"
        with pytest.raises(McpDown, match="No login waits for this"):
            await pages.finish(query)


async def test_a_page_hears_why_a_login_failed():
    async with guarded_server() as place, network() as net, PageLogins(logins(net)) as pages:
        url = await pages.begin(server_at(place.url), "https://everloop.test/api/mcp/callback")
        query = (await asyncio.to_thread(agree, url)).partition("?")[2]
        with pytest.raises(McpDown, match="Token exchange failed"):
            await pages.finish(query.replace("code=code", "code=guess"))
        with pytest.raises(McpDown, match=r"The login to demo failed: 127\.0\.0\.1:1 cannot be reached"):
            await pages.begin(server_at("http://127.0.0.1:1/mcp"), "https://everloop.test/api/mcp/callback")
        with pytest.raises(McpDown, match="No login waits for this"):
            await pages.finish("code=c&state=guessed")


class Patient:
    """Shows an address, and waits for whoever comes back."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    async def log_in(self, server: McpServer, *, redirect: str, show_url: Any, wait_for_code: Any) -> None:
        try:
            await show_url("https://issuer.test/authorize?state=s")
            await wait_for_code()
        finally:
            self.ended.set()


async def test_a_login_that_nobody_finishes_lapses():
    patient = Patient()
    async with PageLogins(patient, seconds=0.05) as pages:
        await pages.begin(server_at("https://demo.test/mcp"), "https://everloop.test/api/mcp/callback")
        await patient.ended.wait()
        with pytest.raises(McpDown, match="No login waits for this"):
            await pages.finish("code=c&state=s")


async def test_so_many_logins_wait_and_no_more_and_all_end_with_the_house():
    patient, server = Patient(), server_at("https://demo.test/mcp")
    async with PageLogins(patient) as pages:
        for _ in range(20):
            await pages.begin(server, "https://everloop.test/callback")
        with pytest.raises(McpDown, match="Too many logins wait"):
            await pages.begin(server, "https://everloop.test/callback")
        assert not patient.ended.is_set()
    assert patient.ended.is_set()


async def test_a_redirect_within_the_servers_origin_is_followed_and_no_other():
    async with network() as net:
        async with saying(redirecting("https://elsewhere.test/mcp")) as (_, origin):
            with pytest.raises(McpDown, match=r"demo redirects to https://elsewhere\.test, which is not followed"):
                await log_in(net, server_at(f"{origin}/mcp"))
        async with saying(redirecting("/moved")) as (heard, origin):
            with pytest.raises(McpDown, match="The login to demo failed"):
                await log_in(net, server_at(f"{origin}/mcp"))
        assert [each.target for each in heard.asked][:2] == ["/mcp", "/moved"]


def redirecting(to: str) -> Any:
    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target == "/mcp":
            writer.write(answer(307, Location=to))
        else:
            writer.write(answer(401 if asked.method == "POST" else 503))

    return say
