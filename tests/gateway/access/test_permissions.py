"""Who may ask for what stands on each route, once; whatever nobody has said it of is refused."""

from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from everloop.core.channel import Hook, HookAnswer, HookRequest
from everloop.core.people import Role
from everloop.gateway import hooks, page
from everloop.gateway.access.permissions import CHAT, KNOWN, PUBLIC, READ, Permission, Permissions, Route
from everloop.gateway.access.principal import SCOPES, Principal
from everloop.gateway.server import PERMISSIONS

from ..guarded import guarded

USER = Role.USER
OWNERS = Permission(("admin",), Role.OWNER)
ADMINS = Permission(("admin",), Role.ADMIN)
INTRODUCES = Permission(("admin", "read", "chat", "approve"), Role.ADMIN)
INVITES = Permission(("admin", "read", "chat", "approve"), Role.OWNER)
READS = Permission(("read",), USER)
CHATS = Permission(("chat",), USER)
MOVES = Permission(("chat", "read"), USER)
APPROVES = Permission(("approve",), USER)

TABLE = {
    ("GET", "/health"): PUBLIC,
    ("GET", "/ready"): PUBLIC,
    ("GET", "/login"): PUBLIC,
    ("POST", "/auth/login"): PUBLIC,
    ("POST", "/auth/session"): KNOWN,
    ("POST", "/auth/logout"): KNOWN,
    ("POST", "/auth/password"): KNOWN,
    ("GET", "/metrics"): Permission(("read",), Role.ADMIN),
    ("GET", "/ws"): KNOWN,
    ("POST", "/v1/chat/completions"): CHAT,
    ("POST", "/v1/responses"): CHAT,
    ("GET", "/v1/models"): READ,
    ("GET", "/v1/models/{name}"): READ,
    ("GET", "/v1/{rest}"): READ,
    ("POST", "/v1/{rest}"): CHAT,
    ("POST", "/message"): CHAT,
    ("POST", "/message/stream"): CHAT,
    ("GET", "/openapi.json"): KNOWN,
    ("GET", "/api/me"): READ,
    ("GET", "/api/commands"): READ,
    ("GET", "/api/sessions"): READS,
    ("GET", "/api/search"): READS,
    ("GET", "/api/sessions/{id}"): READS,
    ("PATCH", "/api/sessions/{id}"): CHATS,
    ("DELETE", "/api/sessions/{id}"): MOVES,
    ("GET", "/api/sessions/{id}/entries"): READS,
    ("GET", "/api/sessions/{id}/trace"): READS,
    ("POST", "/api/sessions/{id}/fork"): MOVES,
    ("POST", "/api/sessions/{id}/resume"): MOVES,
    ("POST", "/api/sessions/{id}/undo"): CHATS,
    ("POST", "/api/sessions/{id}/edit"): CHATS,
    ("POST", "/api/sessions/{id}/regenerate"): CHATS,
    ("GET", "/api/approvals"): READS,
    ("POST", "/api/approvals/{id}"): APPROVES,
    ("GET", "/api/grants"): READS,
    ("DELETE", "/api/grants/{id}"): APPROVES,
    ("GET", "/api/usage"): READS,
    ("GET", "/api/models"): READS,
    ("GET", "/api/models/providers"): OWNERS,
    ("POST", "/api/models/look"): OWNERS,
    ("POST", "/api/models/connect"): Permission(("admin", "read"), Role.OWNER),
    ("GET", "/api/models/embedded"): READS,
    ("POST", "/api/models/embedded/fetch"): OWNERS,
    ("POST", "/api/models/embedded/leave"): OWNERS,
    ("GET", "/api/hosts"): READS,
    ("GET", "/api/hosts/{name}/models"): READS,
    ("POST", "/api/models/test"): OWNERS,
    ("GET", "/api/settings"): Permission(("read",), Role.ADMIN),
    ("PATCH", "/api/settings"): OWNERS,
    ("GET", "/api/keys"): OWNERS,
    ("PUT", "/api/keys/{name}"): Permission(("admin", "read"), Role.OWNER),
    ("DELETE", "/api/keys/{name}"): OWNERS,
    ("GET", "/api/tokens"): ADMINS,
    ("POST", "/api/tokens"): ADMINS,
    ("DELETE", "/api/tokens/{id}"): ADMINS,
    ("GET", "/api/personas"): ADMINS,
    ("POST", "/api/personas"): INVITES,
    ("PATCH", "/api/personas/{name}"): INVITES,
    ("DELETE", "/api/personas/{name}"): INVITES,
    ("POST", "/api/personas/{name}/use"): INVITES,
    ("GET", "/api/sessions/{id}/persona"): Permission(("read",), Role.USER),
    ("GET", "/api/users"): ADMINS,
    ("POST", "/api/users"): INTRODUCES,
    ("POST", "/api/pairings"): INTRODUCES,
    ("PATCH", "/api/users/{id}"): INTRODUCES,
    ("POST", "/api/users/{id}/invite"): INVITES,
    ("GET", "/api/users/{id}/export"): READS,
    ("POST", "/api/users/{id}/erase"): INTRODUCES,
    ("POST", "/api/users/{id}/accounts"): INVITES,
    ("DELETE", "/api/users/{id}/accounts"): INVITES,
    ("GET", "/api/budget"): READ,
    ("GET", "/api/users/{id}/budget"): ADMINS,
    ("PUT", "/api/users/{id}/budget"): ADMINS,
    ("DELETE", "/api/users/{id}/budget"): ADMINS,
    ("GET", "/api/audit"): OWNERS,
    ("GET", "/api/audit/check"): OWNERS,
    ("GET", "/api/outbox"): OWNERS,
    ("POST", "/api/outbox/{id}/retry"): OWNERS,
    ("DELETE", "/api/outbox/{id}"): OWNERS,
    ("GET", "/api/tasks"): OWNERS,
    ("POST", "/api/files"): CHATS,
    ("GET", "/api/files/{ref}"): READS,
    ("GET", "/api/files/{ref}/{name}"): READS,
    ("GET", "/api/workspace"): MOVES,
    ("GET", "/api/workspace/file"): MOVES,
    ("PUT", "/api/workspace/file"): CHATS,
    ("DELETE", "/api/workspace/file"): CHATS,
    ("POST", "/api/workspace/frame"): MOVES,
}


def known_routes(app: web.Application) -> set[tuple[str, str]]:
    """All that the router would answer."""
    return {(r.method, r.resource.canonical) for r in app.router.routes() if r.resource is not None}


async def ok(request: web.Request) -> web.Response:
    return web.json_response({})


def named(token: str) -> Principal | None:
    """`role:scope+scope`."""
    role, _, scopes = token.partition(":")
    return Principal(role, Role[role.upper()], frozenset(filter(None, scopes.split("+"))), "token") if role else None


def bearing(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


async def test_the_whole_table_is_as_it_is_written_here(mounted: Any):
    table = dict((await mounted())[PERMISSIONS].table)
    for each in page.routes():
        assert table.pop(("GET", each.path)) == table.pop(("HEAD", each.path)) == PUBLIC
    heads = {("HEAD", path): needs for (method, path), needs in TABLE.items() if method == "GET" and path != "/ws"}
    assert table == TABLE | heads


async def test_every_route_that_the_router_knows_has_its_permission(mounted: Any):
    app = await mounted()
    assert known_routes(app) == set(app[PERMISSIONS].table)
    app.router.add_get("/brand/new", ok)  # the control: one that was not mounted with the others
    assert known_routes(app) - set(app[PERMISSIONS].table) == {("GET", "/brand/new"), ("HEAD", "/brand/new")}


async def test_what_was_not_mounted_with_a_permission_is_refused_to_the_owner_too():
    app = guarded([Route("GET", "/mounted", ok, READ)], named)
    app.router.add_get("/unlisted", ok)
    owner = f"owner:{'+'.join(SCOPES)}"
    async with TestClient(TestServer(app)) as client:
        found = {
            (path, token): (await client.get(path, headers=bearing(token))).status
            for path in ("/mounted", "/unlisted", "/nothing", "/mounted/../unlisted", "/unlisted/")
            for token in ("", owner)
        }
        wrong = [(await client.delete("/mounted", headers=bearing(token))).status for token in ("", owner)]
    assert found == {
        ("/mounted", ""): 401,
        ("/mounted", owner): 200,
        ("/unlisted", ""): 401,
        ("/unlisted", owner): 404,
        ("/nothing", ""): 401,
        ("/nothing", owner): 404,
        ("/mounted/../unlisted", ""): 401,
        ("/mounted/../unlisted", owner): 404,
        ("/unlisted/", ""): 401,
        ("/unlisted/", owner): 404,
    }
    assert wrong == [401, 405]


@pytest.mark.parametrize(
    "token, status",
    [
        ("owner:admin+read", 200),
        ("owner:admin", 403),
        ("owner:read", 403),
        ("owner:", 403),
        ("admin:admin+read", 403),  # the scopes, and too low a role
        ("guest:admin+read", 403),
        ("", 401),
    ],
)
async def test_every_scope_and_the_role_are_needed(token: str, status: int):
    app = guarded([Route("POST", "/both", ok, Permission(("admin", "read"), Role.OWNER))], named)
    async with TestClient(TestServer(app)) as client:
        assert (await client.post("/both", headers=bearing(token))).status == status


async def test_the_role_that_is_lacking_is_named():
    app = guarded([Route("GET", "/owners", ok, Permission(("read",), Role.OWNER))], named)
    async with TestClient(TestServer(app)) as client:
        answer = await (await client.get("/owners", headers=bearing("user:read"))).json()
    assert answer == {"error": {"code": "forbidden", "message": "this needs the role owner, which you do not have"}}


async def test_a_channel_s_hooks_are_open_and_nothing_beside_them_is():
    async def answer(request: HookRequest) -> HookAnswer:
        return HookAnswer(200, b"{}")

    app = guarded(hooks.routes({"bell": [Hook("POST", "/in", answer)]}), named)
    async with TestClient(TestServer(app)) as client:
        found = [
            (await client.request(method, path)).status
            for method, path in (
                ("POST", "/hooks/bell/in"),
                ("GET", "/hooks/bell/in"),
                ("POST", "/hooks/bell"),
                ("POST", "/hooks/bell/in/x"),
                ("POST", "/hooks/other/in"),
            )
        ]
    assert found == [200, 401, 401, 401, 401]


async def test_nobody_is_looked_up_where_everybody_may_come():
    asked = []

    def looked_up(token: str) -> Principal | None:
        asked.append(token)
        return named(token)

    routes = [Route("GET", "/open", ok, PUBLIC), Route("GET", "/known", ok, KNOWN)]
    async with TestClient(TestServer(guarded(routes, looked_up))) as client:
        found = [(await client.get(path, headers=bearing("guest:"))).status for path in ("/open", "/known")]
    assert (found, asked) == ([200, 200], ["guest:"])


def test_a_route_without_a_permission_cannot_be_made():
    with pytest.raises(TypeError, match="permission"):
        Route("GET", "/x", ok)  # type: ignore[call-arg]
    assert Permissions().table == {}
