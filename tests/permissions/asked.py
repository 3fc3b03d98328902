"""The registries of an open house, and people of each role who come to it."""

from pathlib import Path

from everloop.app import open_desk
from everloop.app.access import new_token, token_scopes
from everloop.app.recall import NO_EMBEDDER
from everloop.app.tools import build_tools
from everloop.bus.local import LocalBus
from everloop.core.people import Role
from everloop.core.tool import ToolSpec
from everloop.files.attachments import Attachments
from everloop.files.folder import Folder
from everloop.gateway.access.auth import Auth
from everloop.gateway.access.permissions import Permission
from everloop.gateway.metrics import Metrics
from everloop.gateway.server import PERMISSIONS, application
from everloop.gateway.transport.limits import ConnectionLimits
from everloop.gateway.transport.origins import Origins
from everloop.gateway.ws.connection import ConnectionContext
from everloop.gateway.ws.connections import ClientConnections
from everloop.gateway.ws.hub import Hub
from everloop.memory.recall import Recall
from everloop.ports.directory import Person
from everloop.settings import load
from everloop.settings.shape import GatewaySection
from everloop.testing import ScriptedModel

from .matrix import ROLES, Row, command_rows, frame_rows, route_rows, setting_rows, tool_rows, view_rows

SEARCH = {"tools": {"web": {"search": {"url": "http://search.example"}}}}
PEOPLE = {role: "owner" if role is Role.OWNER else f"web:{role.name.lower()}" for role in ROLES}


async def routes(folder: Path) -> dict[tuple[str, str], Permission]:
    async with open_desk(home=folder / "routes", provider=ScriptedModel([])) as agent:
        auth = Auth(agent.store, Origins(frozenset(), frozenset(), 0))
        context = ConnectionContext(agent, Hub(agent, Metrics()), auth, Metrics(), "")
        sockets, limits = ClientConnections(context), ConnectionLimits(GatewaySection())
        return dict(application(agent, auth, context.metrics, sockets, limits)[PERMISSIONS].table)


async def specs(folder: Path) -> dict[str, ToolSpec]:
    """Every tool that a house can have."""
    home = folder / "tools"
    async with open_desk(home=home, provider=ScriptedModel([])) as agent:
        made = build_tools(
            home,
            folder / "ws",
            load(home, {}, SEARCH),
            Folder(folder / "files"),
            LocalBus(),
            8000,
            agent.store,
            keeper=Attachments(Folder(folder / "files"), agent.store, lambda: 1000),
            credentials=agent.credentials,
            facts=Recall(agent.store, NO_EMBEDDER),
            specs=lambda principal: {},
        )
        return {tool.spec.name: tool.spec for tool in (*made.tools, *made.personal)}


async def all_rows(folder: Path) -> list[Row]:
    table = await routes(folder)
    lifted = load(folder, {}).users.guest_tools
    return [
        *tool_rows(await specs(folder), lifted),
        *command_rows(),
        *route_rows(table),
        *frame_rows(),
        *view_rows(),
        *setting_rows(table["PATCH", "/api/settings"]),
    ]


async def introduce(store, *, named: str = "theirs") -> dict[Role, str]:
    """Somebody of each role, and a token of theirs with every scope."""
    for role, person in PEOPLE.items():
        if role is not Role.OWNER:
            await store.introduce(Person(person, role.name.lower(), role, accounts=(person,)))
    return {
        role: await new_token(store, person, named, token_scopes(), platforms=["discord"])
        for role, person in PEOPLE.items()
    }
