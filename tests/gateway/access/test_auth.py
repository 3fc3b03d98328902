"""Who may come in, and who may not: the rules tried through every transport, each with a case that passes."""

import asyncio
import itertools
import re
import ssl
from collections.abc import Iterable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from http.cookies import SimpleCookie
from ipaddress import ip_address
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from everloop.app import serve
from everloop.app.access import new_invitation, new_token
from everloop.app.records import open_records
from everloop.core.people import Role
from everloop.errors import SettingsError
from everloop.gateway import page
from everloop.gateway.access.permissions import PUBLIC
from everloop.gateway.access.scopes import SCOPES
from everloop.gateway.access.secrets import fits_password, hash_of, hash_password
from everloop.gateway.access.throttle import SECONDS, TRIES, Throttle
from everloop.gateway.http.errors import Refused
from everloop.gateway.ws.connections import ClientConnections
from everloop.ports.directory import Person
from everloop.testing import Say, ScriptedModel
from tests.effort import in_full

from ..conftest import Wire

PASSWORD = "correct horse battery"
Cell = tuple[str, str, str]


async def logged_in(door) -> tuple[str, str]:
    """The cookie that the one-time link gives, and what the page is given for it."""
    async with door.client() as client:
        came = await client.get(door.link.removeprefix(door.url), allow_redirects=False)
        cookie = came.headers["Set-Cookie"].partition(";")[0]
        session = await client.post("/auth/session", headers={"Cookie": cookie, "Origin": door.url})
        return cookie, (await session.json())["token"]


class TestTheLink:
    async def test_it_logs_in_once_and_leaves_no_credential_in_the_address(self, openings):
        door = await openings(ScriptedModel([]))
        path = door.link.removeprefix(door.url)
        async with door.client() as client:
            first = await client.get(path, allow_redirects=False)
            second = await client.get(path, allow_redirects=False)
        assert (first.status, first.headers["Location"]) == (303, "/")
        assert (second.status, (await second.json())["error"]["code"]) == (401, "link")
        (morsel,) = SimpleCookie(first.headers["Set-Cookie"]).values()
        assert (morsel["samesite"], morsel["httponly"], morsel["path"]) == ("Strict", True, "/")

    async def test_looking_at_its_head_does_not_use_it_up(self, openings):
        door = await openings(ScriptedModel([]))
        path = door.link.removeprefix(door.url)
        async with door.client() as client:
            assert (await client.head(path, allow_redirects=False)).status == 401
            assert (await client.get(path, allow_redirects=False)).status == 303

    async def test_what_another_page_fetches_is_refused_and_uses_nothing_up(self, openings):
        door = await openings(ScriptedModel([]))
        path = door.link.removeprefix(door.url)
        async with open_records(door.home) as records:
            await records.store.keep_login("owner", "password", await asyncio.to_thread(hash_password, PASSWORD))
        kinds = ("image", "iframe", "script", "empty", "")
        sites = [
            {"Sec-Fetch-Site": site, **({"Sec-Fetch-Dest": dest} if dest else {})}
            for site in ("cross-site", "same-site")
            for dest in kinds
        ]
        async with door.client() as client:
            images = [(await client.get(f"/login?code=x{n}", headers=each)).status for n, each in enumerate(sites)]
            right = [(await client.get(path, headers=each, allow_redirects=False)).status for each in sites]
            wrong = [(await client.get(f"/login?code={n}", allow_redirects=False)).status for n in range(3 * TRIES)]
            by_password = await client.post("/auth/login", json={"password": PASSWORD})
            clicked = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate"}
            opened = await client.get(path, headers=clicked, allow_redirects=False)
        assert (images, right) == ([403] * 10, [403] * 10)
        assert wrong == [401] * 3 * TRIES
        assert (by_password.status, opened.status) == (200, 303)

    async def test_only_hashes_are_in_the_database(self, openings):
        door = await openings(ScriptedModel([]))
        cookie, page = await logged_in(door)
        token = await door.token()
        held = b"".join(path.read_bytes() for path in door.home.glob("everloop.db*"))
        secrets = [cookie.partition("=")[2], page, token]
        assert [secret for secret in secrets if secret.encode() in held] == []
        assert [secret for secret in secrets if hash_of(secret).encode() not in held] == []


class TestCookiesAndOrigins:
    async def test_a_cookie_counts_with_our_own_origin_and_never_without_one(self, openings):
        door = await openings(ScriptedModel([]))
        cookie, page = await logged_in(door)
        port = door.host.rpartition(":")[2]
        other = f"http://localhost:{port}"
        tried = {
            "our own": ({"Cookie": cookie, "Origin": door.url}, 200),
            "none": ({"Cookie": cookie}, 401),
            "null": ({"Cookie": cookie, "Origin": "null"}, 403),
            "empty": ({"Cookie": cookie, "Origin": ""}, 403),
            "another site": ({"Cookie": cookie, "Origin": "http://evil.example"}, 403),
            "another port": ({"Cookie": cookie, "Origin": "http://127.0.0.1:1"}, 403),
            "another scheme": ({"Cookie": cookie, "Origin": door.url.replace("http:", "https:")}, 403),
            "another name of ours": ({"Cookie": cookie, "Origin": other}, 403),
            "a longer name": ({"Cookie": cookie, "Origin": f"{door.url}.evil.example"}, 403),
            "with a path": ({"Cookie": cookie, "Origin": f"{door.url}/"}, 403),
            "a sub-domain": ({"Cookie": cookie, "Origin": door.url.replace("//", "//sub.")}, 403),
            "from elsewhere, says the browser": (
                {"Cookie": cookie, "Origin": door.url, "Sec-Fetch-Site": "same-site"},
                401,
            ),
            "a wrong token beside a good cookie": (
                {"Cookie": cookie, "Origin": door.url, "Authorization": "Bearer nonsense"},
                401,
            ),
            "Basic": ({"Authorization": f"Basic {page}"}, 401),
            "a token without an origin": ({"Authorization": f"Bearer {page}"}, 200),
            "a token from another site": ({"Authorization": f"Bearer {page}", "Origin": "http://evil.example"}, 403),
            "a cookie of nobody": ({"Cookie": f"{cookie}x", "Origin": door.url}, 401),
            "nothing": ({}, 401),
        }
        found = {}
        async with door.client() as client:
            for name, (headers, _) in tried.items():
                found[name] = (await client.get("/metrics", headers=headers)).status
        assert found == {name: status for name, (_, status) in tried.items()}

    async def test_the_same_holds_for_the_websocket(self, openings):
        door = await openings(ScriptedModel([]))
        cookie, _ = await logged_in(door)
        upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
        upgrade["Sec-WebSocket-Key"] = "dGhlIHNhbXBsZSBub25jZQ=="
        tried = {
            "our own": ({"Cookie": cookie, "Origin": door.url}, 101),
            "none": ({"Cookie": cookie}, 401),
            "null": ({"Cookie": cookie, "Origin": "null"}, 403),
            "another": ({"Cookie": cookie, "Origin": "http://evil.example"}, 403),
            "nobody": ({}, 401),
            "a token": ({"Authorization": f"Bearer {await door.token()}"}, 101),
        }
        found = {}
        async with door.client() as client:
            for name, (headers, _) in tried.items():
                async with client.get("/ws", headers={**upgrade, **headers}) as response:
                    found[name] = response.status
                    response.close()
        assert found == {name: status for name, (_, status) in tried.items()}

    async def test_the_name_it_is_called_by_must_be_its_own(self, openings):
        door = await openings(ScriptedModel([]), {"allowed_hosts": ["agent.example"]})
        port = door.host.rpartition(":")[2]
        tried = {
            f"127.0.0.1:{port}": 200,
            f"localhost:{port}": 200,
            f"LOCALHOST:{port}": 200,
            f"[::1]:{port}": 200,
            f"agent.example:{port}": 200,
            "agent.example": 421,
            "127.0.0.1": 421,
            "127.0.0.1:1": 421,
            f"evil.example:{port}": 421,
            f"127.0.0.1.evil.example:{port}": 421,
            f"localhost.:{port}": 421,
            f"0.0.0.0:{port}": 421,
            f"127.1:{port}": 421,
        }
        async with door.client() as client:
            found = {host: (await client.get("/health", headers={"Host": host})).status for host in tried}
        assert found == tried

    async def test_a_configured_origin_is_let_in_with_a_token(self, openings):
        door = await openings(ScriptedModel([]), {"allowed_origins": ["https://app.example"]})
        async with door.client(await door.token(), Origin="https://app.example") as client:
            answer = await client.get("/metrics")
        assert (answer.status, answer.headers.get("Access-Control-Allow-Origin")) == (200, None)


async def judged(client, method: str, path: str, headers: dict[str, str]) -> str:
    """How far a request came: why it was refused at the door, or that it was let in."""
    async with client.request(method, path, headers=headers, allow_redirects=False) as answer:
        if answer.status == 403 and "platform_not_named" in await answer.text():
            return "no bot"
        return {421: "host", 403: "origin", 401: "unauthorized"}.get(answer.status, "in")


def of_the_nth(nth: int, hosts: Iterable[str], origins: Iterable[str], shown: Iterable[str]) -> list[Cell]:
    """The cells that are tried of a route. With a wrong name, or a wrong page, all end alike: in the short form each
    route is tried with one of these, and the next route with another."""
    cells = list(itertools.product(hosts, origins, shown))
    well_named = [cell for cell in cells if cell[0] == "right"]
    telling = [cell for cell in well_named if cell[1] in ("none", "right")]
    badly_named = [cell for cell in cells if cell[0] != "right"]
    elsewhere = [cell for cell in well_named if cell not in telling]
    rotated = [badly_named[nth % len(badly_named)], elsewhere[nth % len(elsewhere)]]
    return in_full(cells, telling + rotated)


@pytest.mark.shortened
async def test_every_route_keeps_to_the_same_matrix_of_names_pages_and_credentials(openings, routes_of):
    """Taken from the router: every method and path × what it is called × which page calls × what it shows."""
    door = await openings(ScriptedModel([]))
    port = int(door.host.rpartition(":")[2])
    cookie, _ = await logged_in(door)
    table = {**await routes_of(), **{(route.method, route.path): route.permission for route in page.routes()}}
    public = {path for (_, path), needs in table.items() if needs == PUBLIC}
    of_bots = {path for (_, path), needs in table.items() if needs.names_platform}
    routes = sorted(table, key=lambda route: route[1] == "/auth/logout")  # which ends the cookie
    hosts = {"right": door.host, "another port": f"127.0.0.1:{port + 1}", "another": f"evil.example:{port}"}
    origins = {
        "none": None,
        "right": door.url,
        "null": "null",
        "another": "http://evil.example",
        "another port": f"http://127.0.0.1:{port + 1}",
        "another scheme": f"https://{door.host}",
    }
    shown = {"nothing": {}, "token": {"Authorization": f"Bearer {await door.token()}"}, "cookie": {"Cookie": cookie}}

    def expected(path: str, host: str, origin: str, credentials: str) -> str:
        if host != "right":
            return "host"
        if origin not in ("none", "right"):
            return "origin"
        if path.startswith("/hooks/"):  # no channel is open here that would know its callers
            return "unauthorized"
        known = credentials == "token" or (credentials == "cookie" and origin == "right")
        if known and credentials == "cookie" and path in of_bots:
            return "no bot"
        return "in" if path in public or known else "unauthorized"

    wrong, tried = [], set[Cell]()
    async with door.client() as client:
        for nth, (method, path) in enumerate(routes):
            for cell in of_the_nth(nth, hosts, origins, shown):
                host, origin, credentials = cell
                headers = {"Host": hosts[host], **shown[credentials]}
                if origins[origin] is not None:
                    headers["Origin"] = origins[origin]
                found = await judged(client, method, path, headers)
                tried.add(cell)
                if found != expected(path, *cell):
                    wrong.append((method, path, *cell, found))
    assert wrong == []
    assert len(tried) == 3 * 6 * 3


class TestTokensHoldWhatTheyName:
    async def test_the_first_password_is_not_set_by_a_token_that_lacks_a_scope(self, openings):
        door = await openings(ScriptedModel([]))
        partial = [set(SCOPES) - {lacking} for lacking in SCOPES] + [{"admin"}]
        found = []
        for scopes in partial:
            async with door.client(await door.token(*scopes)) as client:
                found.append((await client.post("/auth/password", json={"password": PASSWORD})).status)
        async with door.client() as client:
            login = (await client.post("/auth/login", json={"password": PASSWORD})).status
        async with door.client(await door.token()) as client:
            whole = (await client.post("/auth/password", json={"password": PASSWORD})).status
        assert (found, login, whole) == ([403] * 5, 401, 200)

    async def test_with_the_password_that_there_is_admin_is_enough(self, openings):
        door = await openings(ScriptedModel([]))
        async with open_records(door.home) as records:
            await records.store.keep_login("owner", "password", await asyncio.to_thread(hash_password, PASSWORD))
        async with door.client(await door.token("admin")) as client:
            asked = {"password": PASSWORD + "2", "current": PASSWORD}
            found = [
                (await client.post("/auth/password", json=each)).status for each in ({**asked, "current": ""}, asked)
            ]
        assert found == [403, 200]

    async def test_a_token_makes_none_that_holds_more_or_longer_than_itself(self, openings):
        door = await openings(ScriptedModel([]))
        async with open_records(door.home) as records:
            short = await new_token(records.store, "owner", "short", ("admin", "read"), 10 * 86_400)
        wanted = [
            ({"scopes": ["admin"]}, 403),
            ({"scopes": ["admin"], "days": 11}, 403),
            ({"scopes": ["chat"], "days": 1}, 403),
            ({"scopes": ["admin", "read"], "days": 9}, 201),
        ]
        async with door.client(short) as client:
            found = [
                (await client.post("/api/tokens", json={"name": f"n{n}", **asked})).status
                for n, (asked, _) in enumerate(wanted)
            ]
        assert found == [status for _, status in wanted]


class TestPasswords:
    async def test_a_password_that_was_set_lets_in_and_ends_other_logins(self, openings):
        door = await openings(ScriptedModel([]))
        cookie, _ = await logged_in(door)
        mine = {"Cookie": cookie, "Origin": door.url}
        async with door.client() as client:
            short = await client.post("/auth/password", json={"password": "short"}, headers=mine)
            done = await client.post("/auth/password", json={"password": PASSWORD}, headers=mine)
            wrong = await client.post("/auth/login", json={"password": "wrong"}, headers={"Origin": door.url})
            right = await client.post("/auth/login", json={"password": PASSWORD}, headers={"Origin": door.url})
            fresh = right.headers["Set-Cookie"].partition(";")[0]
            newer = {"Cookie": fresh, "Origin": door.url}
            other = {"password": PASSWORD + "2", "current": "no"}
            refused = await client.post("/auth/password", json=other, headers=newer)
            other["current"] = PASSWORD
            changed = await client.post("/auth/password", json=other, headers=newer)
            left = [(await client.post("/auth/session", headers=each)).status for each in (mine, newer)]
        statuses = [each.status for each in (short, done, wrong, right, refused, changed)]
        assert statuses == [400, 200, 401, 200, 403, 200]
        assert fresh != cookie
        assert left == [401, 200]

    async def test_others_come_in_by_an_invitation_and_then_by_their_name_and_password(self, openings):
        door = await openings(ScriptedModel([]))
        async with open_records(door.home) as records:
            for name, role in (("Anna", Role.USER), ("Ben", Role.USER)):
                await records.store.introduce(Person(name.lower(), name, role))
            path = await new_invitation(records.store, "anna", 60)
        async with door.client() as client:
            heads = await client.head(path, allow_redirects=False)  # as a messenger looks at it
            came = [await client.get(path, allow_redirects=False) for _ in range(2)]
            hers = {"Cookie": came[0].headers["Set-Cookie"].partition(";")[0], "Origin": door.url}
            known = await (await client.post("/auth/session", headers=hers)).json()
            done = await client.post("/auth/password", json={"password": PASSWORD}, headers=hers)
            tried = {}
            for user in ("Anna", "anna", "Ben", "owner", "nobody", ""):
                asked = {"password": PASSWORD, "user": user}
                answer = await client.post("/auth/login", json=asked, headers={"Origin": door.url})
                tried[user] = answer.status, (await answer.json()).get("user")
            async with open_records(door.home) as records:
                await records.store.change_person("anna", blocked=True)
            blocked = await client.post("/auth/session", headers=hers)
        assert (heads.status, [each.status for each in came], done.status) == (401, [303, 401], 200)
        assert (known["user"], known["name"], known["role"], known["has_password"]) == ("anna", "Anna", "user", False)
        wrong = (401, None)
        assert tried == {
            "Anna": (200, "anna"),
            "anna": (200, "anna"),
            "Ben": wrong,
            "owner": wrong,
            "nobody": wrong,
            "": wrong,
        }
        assert blocked.status == 401

    async def test_a_planted_cookie_is_worth_nothing_after_a_login(self, openings):
        door = await openings(ScriptedModel([]))
        planted = f"everloop_{door.host.rpartition(':')[2]}=planted"
        async with door.client() as client:
            path = door.link.removeprefix(door.url)
            came = await client.get(path, headers={"Cookie": planted}, allow_redirects=False)
            after = await client.post("/auth/session", headers={"Cookie": planted, "Origin": door.url})
        assert (came.status, "planted" in came.headers["Set-Cookie"], after.status) == (303, False, 401)

    async def test_after_logging_out_neither_cookie_nor_page_token_count(self, openings):
        door = await openings(ScriptedModel([]))
        cookie, page = await logged_in(door)
        mine = {"Cookie": cookie, "Origin": door.url}
        async with door.client() as client:
            out = await client.post("/auth/logout", headers=mine)
            after = await client.post("/auth/session", headers=mine)
            by_page = await client.get("/metrics", headers={"Authorization": f"Bearer {page}"})
        assert [out.status, after.status, by_page.status] == [200, 401, 401]
        assert re.search(r"Max-Age=0.*SameSite=Strict", out.headers["Set-Cookie"])

    async def test_a_form_of_another_page_cannot_log_anyone_in(self, openings):
        door = await openings(ScriptedModel([]))
        async with door.client() as client:
            form = await client.post("/auth/login", data={"password": "x"})
            elsewhere = await client.post(
                "/auth/login", json={"password": "x"}, headers={"Origin": "http://evil.example"}
            )
        assert [form.status, elsewhere.status] == [415, 403]

    async def test_guessing_is_slowed_down_on_this_machine_too(self, openings):
        door = await openings(ScriptedModel([]))
        async with open_records(door.home) as records:
            await records.store.keep_login("owner", "password", await asyncio.to_thread(hash_password, PASSWORD))
        async with door.client() as client:
            guesses = [
                await client.post(
                    "/auth/login",
                    json={"password": f"guess {n}", "device": n, "current": "x"},
                    headers={"X-Forwarded-For": f"10.0.0.{n}", "User-Agent": str(n)},
                )
                for n in range(30)
            ]
            right = await client.post("/auth/login", json={"password": PASSWORD})
        assert [guess.status for guess in guesses] == [401] * TRIES + [429] * (30 - TRIES)
        assert (right.status, "Retry-After" in right.headers) == (429, True)

    async def test_many_guesses_at_once_are_counted_before_they_are_looked_at(self, openings):
        door = await openings(ScriptedModel([]))
        async with door.client() as client:
            tries = [client.post("/auth/login", json={"password": "x"}) for _ in range(40)]
            statuses = sorted([answer.status for answer in await asyncio.gather(*tries)])
        assert statuses == [401] * TRIES + [429] * (40 - TRIES)

    def test_a_password_fits_its_hash_and_no_other(self):
        kept = hash_password(PASSWORD)
        assert (fits_password(PASSWORD, kept), fits_password(PASSWORD + " ", kept), PASSWORD in kept) == (
            *(True, False),
            False,
        )


def test_a_throttle_opens_again_and_forgets_tries_that_succeeded():
    now = 0.0
    throttle = Throttle(lambda: now)
    for _ in range(3 * TRIES):
        throttle.begin("good")
        throttle.succeed("good")
    for _ in range(TRIES):
        throttle.begin("bad")
    with pytest.raises(Refused, match="wait 61 seconds"):
        throttle.begin("bad")
    throttle.begin("other")
    now = SECONDS
    throttle.begin("bad")


def test_who_has_a_password_of_their_own_does_not_guess_anothers_the_faster_for_it():
    throttle = Throttle(lambda: 0.0)
    for _ in range(TRIES - 1):
        throttle.begin("anna")  # at the owner's
    for _ in range(TRIES):
        throttle.begin("anna")  # at her own
        throttle.succeed("anna")
    throttle.begin("anna")
    with pytest.raises(Refused, match="too many tries"):
        throttle.begin("anna")


class TestTokens:
    async def test_a_token_that_was_revoked_is_refused_at_once(self, openings):
        door = await openings(ScriptedModel([]))
        async with door.client(await door.token(name="mine")) as client:
            before = await client.get("/metrics")
            assert await door.revoke("mine")
            after = await client.get("/metrics")
        assert [before.status, after.status] == [200, 401]

    async def test_an_open_websocket_is_closed_when_its_token_is_revoked(self, openings):
        door = await openings(ScriptedModel([Say("hello")]))
        async with door.socket(await door.token(name="kept")) as kept:
            async with door.socket(await door.token(name="mine")) as wire:
                await wire.ask("hi")
                assert await door.revoke("mine")
                closed = await wire.raw.receive(timeout=60)
            assert (closed.data, wire.raw.closed) == (1008, True)
            await kept.send("status")
            assert (await kept.next())["type"] == "status_result"

    async def test_a_frame_after_the_revocation_does_nothing(self, openings):
        spoken = ScriptedModel([Say("hello")])
        door = await openings(spoken)
        async with door.socket(await door.token(name="mine")) as wire:
            assert await door.revoke("mine")
            await wire.send("message", id="m1", content="hi")
            assert (await wire.raw.receive(timeout=60)).data == 1008
        assert spoken.prompts == []

    async def test_what_many_clients_of_one_token_send_after_its_revocation_does_nothing(self, openings):
        spoken = ScriptedModel([Say("hello")] * 20)
        door = await openings(spoken)
        token = await door.token(name="mine")
        async with AsyncExitStack() as stack, door.socket(await door.token(name="kept")) as kept:
            wires = [await stack.enter_async_context(door.socket(token)) for _ in range(10)]
            await asyncio.gather(*(wire.ask("hi", session=f"api:{n}") for n, wire in enumerate(wires)))
            assert await door.revoke("mine")
            await asyncio.gather(*(wire.send("message", id="m2", session="api:0", content="again") for wire in wires))
            closed = [(await wire.raw.receive(timeout=60)).data for wire in wires]
            await kept.send("status")
            assert (await kept.next())["type"] == "status_result"
        assert (closed, len(spoken.prompts)) == ([1008] * 10, 10)

    async def test_a_look_at_credentials_counts_for_one_round_of_the_event_loop_alone(self):
        sockets = ClientConnections(cast(Any, None))
        look = sockets.judged()
        again = sockets.judged()
        await asyncio.sleep(0)  # a round
        later = sockets.judged()
        assert (again is look, later is look, later) == (True, False, {})

    async def test_each_scope_opens_its_frames_and_no_others(self, openings):
        door = await openings(ScriptedModel([Say("hello")] * 9))
        frames = {
            "message": {"id": "m", "content": "hi"},
            "resume": {"session": "api:default"},
            "stop": {"session": "api:default"},
            "approve": {"approval": "none", "allow": True},
            "status": {},
            "history": {"session": "api:default"},
        }
        found = {}
        for scope in ("read", "chat", "approve", "admin"):
            async with door.socket(await door.token(scope)) as wire:
                for type, fields in frames.items():
                    await wire.send(type, **fields)
                    frame = await wire.next()
                    while frame["type"] not in ("ack", "error", "history_result", "status_result"):
                        frame = await wire.next()
                    if frame.get("code") != "forbidden":
                        found.setdefault(scope, []).append(type)
        assert found == {
            "read": ["resume", "status", "history"],
            "chat": ["message", "stop"],
            "approve": ["approve"],
        }


class TestRoutes:
    async def test_nobody_gets_anything_but_what_is_public(self, openings):
        door = await openings(ScriptedModel([]))
        paths = [
            "/health",
            "/ready",
            "/metrics",
            "/ws",
            "/auth/session",
            "/api/tokens",
            "/v1/models",
            "/nothing",
            "/.git",
        ]
        async with door.client() as client:
            found = {path: (await client.get(path)).status for path in paths}
            bodies = [await (await client.get(path)).json() for path in ("/health", "/ready")]
        assert found == {path: 200 if path in ("/health", "/ready") else 401 for path in paths}
        assert bodies == [{"status": "ok"}, {"status": "ready"}]

    async def test_a_scoped_token_is_refused_where_its_scope_does_not_reach(self, openings, routes_of):
        door = await openings(ScriptedModel([]))
        tokens = {scope: await door.token(scope) for scope in ("read", "chat", "approve", "admin")}
        wrong = []
        for (method, path), needs in (await routes_of()).items():
            if not needs.scopes:
                continue
            whole = method == "DELETE" and path.startswith("/api/me/")  # by who has all scopes
            for scope, token in tokens.items():
                async with door.client(token) as client:
                    status = (await client.request(method, path)).status
                if (status == 403) != (whole or (scope,) != needs.scopes):
                    wrong.append((method, path, scope, status))
        assert wrong == []

    async def test_answers_protect_the_page_and_errors_are_sentences(self, openings):
        door = await openings(ScriptedModel([]))
        async with door.client(await door.token()) as client:
            missing = await client.get("/api/nothing")
            method = await client.delete("/metrics")
        assert [missing.status, method.status] == [404, 405]
        assert await missing.json() == {"error": {"code": "not_found", "message": "there is nothing here"}}
        assert "default-src 'none'" in missing.headers["Content-Security-Policy"]
        assert missing.headers["Referrer-Policy"] == "no-referrer"


class TestPlaces:
    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "agent.example"])
    async def test_another_interface_without_encryption_is_refused_with_a_sentence(self, tmp_path: Path, host: str):
        with pytest.raises(SettingsError, match="would be reached from elsewhere"):
            async with serve(tmp_path, {"gateway": {"host": host, "port": 0}}, provider=ScriptedModel([])):
                pass

    async def test_a_proxy_that_was_named_is_enough(self, openings):
        door = await openings(
            ScriptedModel([]), {"host": "0.0.0.0", "behind_proxy": True, "allowed_hosts": ["a.example"]}
        )
        async with door.client() as client:
            given = {"Host": "a.example", "Origin": "https://a.example"}
            plain = {"Host": "a.example", "Origin": "http://a.example"}
            path = door.link.removeprefix(door.url)
            came = await client.get(path, headers={"Host": "a.example"}, allow_redirects=False)
            statuses = [(await client.get("/health", headers=each)).status for each in (given, plain)]
        assert statuses == [200, 403]
        assert came.headers["Set-Cookie"].startswith("__Host-everloop=")
        assert "Secure" in came.headers["Set-Cookie"]

    async def test_half_a_certificate_is_refused(self, tmp_path: Path):
        with pytest.raises(SettingsError, match="belong together"):
            async with serve(tmp_path, {"gateway": {"tls_cert": "c.pem"}}, provider=ScriptedModel([])):
                pass

    async def test_with_a_certificate_it_speaks_tls_on_any_interface(self, openings, tmp_path: Path):
        make_certificate(tmp_path / "home")
        given = {"host": "0.0.0.0", "tls_cert": "cert.pem", "tls_key": "key.pem"}
        door = await openings(ScriptedModel([Say("hello")]), given)
        trusts = ssl.create_default_context(cafile=tmp_path / "home" / "cert.pem")
        token = await door.token()
        connector = aiohttp.TCPConnector(ssl=trusts)
        async with aiohttp.ClientSession(door.url, connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as client:
            came = await client.get(door.link.removeprefix(door.url), allow_redirects=False)
            async with client.ws_connect("/ws", headers={"Authorization": f"Bearer {token}"}) as wire:
                assert (await Wire(wire).ask("hi"))[-1]["content"] == "hello"
        assert door.url.startswith("https://127.0.0.1:")
        assert came.headers["Set-Cookie"].startswith("__Host-everloop=")

    async def test_a_certificate_that_cannot_be_used_is_named(self, tmp_path: Path):
        (tmp_path / "cert.pem").write_text("nonsense")
        given = {"gateway": {"port": 0, "tls_cert": "cert.pem", "tls_key": "cert.pem"}}
        with pytest.raises(SettingsError, match=r"gateway\.tls_cert .*cert\.pem .*cannot be used"):
            async with serve(tmp_path, given, provider=ScriptedModel([])):
                pass


def make_certificate(folder: Path) -> None:
    """For 127.0.0.1, signed by nobody else."""
    folder.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    here = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = made.add_extension(here, critical=False).sign(key, hashes.SHA256())
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pem, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, pem, plain))
