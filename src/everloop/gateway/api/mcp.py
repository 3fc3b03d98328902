"""MCP servers: how they stand, how one is set up, and what of them is allowed. No secret is ever told."""

from typing import Any

import msgspec

from ...core.tool import Effect
from ...errors import EverloopError, McpDown, McpLogin, ToolError, VaultLocked
from ...ports.tools import Shown
from ..http.errors import Refused
from .mcp_ports import McpBook
from .mcp_shapes import (
    McpDetail,
    McpList,
    McpLoggedOut,
    McpLoginBegun,
    McpRemoved,
    McpReviewed,
    McpTested,
    McpValues,
)
from .refusals import Refusals
from .route import ApiAnswer, ApiCall

_REFUSALS = Refusals(
    (McpLogin, "mcp_login"), (McpDown, "mcp_down"), (ToolError, "mcp_refused"), (VaultLocked, "vault_locked")
)
_done = _REFUSALS.done


async def list_servers(call: ApiCall) -> ApiAnswer:
    return McpList(list(await _done(call.agent.mcp.rows())))


async def show_server(call: ApiCall) -> ApiAnswer:
    return McpDetail(await _done((await _desk_for(call)).show(call.path.name)))


async def review_server(call: ApiCall) -> ApiAnswer:
    desk, name = call.agent.mcp, call.body.name
    try:
        values = await _values(desk, name, call.body.values, call.body.install)
        return McpReviewed(await _done(desk.setup.review(name, values)))
    except Refused:
        await desk.setup.discard(name)
        raise


async def add_server(call: ApiCall) -> ApiAnswer:
    desk, name = call.agent.mcp, call.path.name
    values = await _values(desk, name, call.body.values, call.body.install)
    return McpDetail(await _done(desk.add(name, values, call.body.pin)))


async def remove_server(call: ApiCall) -> ApiAnswer:
    return McpRemoved(call.path.name, await _done((await _desk_for(call)).setup.remove(call.path.name)))


async def restart_server(call: ApiCall) -> ApiAnswer:
    return McpDetail(await _done((await _desk_for(call)).restart(call.path.name)))


async def allow_tools(call: ApiCall) -> ApiAnswer:
    effect = Effect(call.body.effect) if call.body.effect else None
    return McpDetail(await _done((await _desk_for(call)).allow(call.path.name, call.body.tools, effect)))


async def deny_tools(call: ApiCall) -> ApiAnswer:
    return McpDetail(await _done((await _desk_for(call)).deny(call.path.name, call.body.tools)))


async def test_tool(call: ApiCall) -> ApiAnswer:
    result = await _done((await _desk_for(call)).test(call.path.name, call.body.tool, call.body.args))
    told = result if isinstance(result, Shown) else Shown(result)
    return McpTested(told.text, len(told.pictures))


async def begin_login(call: ApiCall) -> ApiAnswer:
    """Whoever logs in comes back to where they came from, which the guard has checked."""
    origin = call.request.headers.get("Origin") or f"{call.request.scheme}://{call.request.host}"
    return McpLoginBegun(await _done((await _desk_for(call)).begin_login(call.path.name, origin)))


async def log_out(call: ApiCall) -> ApiAnswer:
    return McpLoggedOut(await _done((await _desk_for(call)).log_out(call.path.name)))


async def _desk_for(call: ApiCall) -> McpBook:
    """Raises Refused where there is no such server."""
    desk: McpBook = call.agent.mcp
    if not await _done(desk.is_there(call.path.name)):
        raise Refused(404, "not_found", "There is no MCP server of that name.")
    return desk


async def _values(desk: McpBook, name: str, given: McpValues, install: bool) -> dict[str, Any]:
    """The settings, with what they run installed. Raises Refused."""
    values: dict[str, Any] = msgspec.to_builtins(given)
    if "${" in str(values):  # it would send anything out of the environment or the vault wherever the address says
        raise Refused(409, "setting_refused", "A ${…} can only be written in the settings file.")
    try:
        question = desk.setup.question(name, values)
    except EverloopError as error:
        raise _REFUSALS.refused(error) from error
    if question and not install:
        raise Refused(409, "install_first", question)
    return await _done(desk.setup.install(name, values))
