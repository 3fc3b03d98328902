"""Who may ask for what stands on each route, once; whatever nobody has said it of is refused."""

from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from everloop.core.people import Role
from everloop.gateway import hooks
from everloop.gateway.access.permissions import KNOWN, PUBLIC, READ, Permission, Permissions, Route
from everloop.gateway.access.principal import Principal
from everloop.gateway.access.scopes import SCOPES
from everloop.gateway.server import PERMISSIONS
from everloop.ports.channel import Hook, HookAnswer, HookRequest

from ..guarded import guarded

USER = Role.USER


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
