"""Checks: channels, what waits to be sent there, MCP servers."""

import asyncio
import shutil
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from yarl import URL

from ...errors import EverloopError
from ...net.proxies import find_proxy
from ...ports.doctor import Diagnosis
from ...ports.listening import ChannelRow
from ...ports.mcp import McpPin, McpServer
from ...settings.editor import SettingsEditor
from ..channel_desk import ChannelDesk
from ..channel_status import ChannelStatus
from ..mcp_servers import servers_of
from .check import Check, Patient, advice, broken, found_or_fine, many, skipped
from .network import unreachable

STUCK = 600.0  # seconds that an answer waits, without anybody having given it up
SHOWN = 3


async def look_at_channels(patient: Patient) -> Sequence[Diagnosis]:
    assert patient.settings is not None
    rows = await ChannelStatus(patient.home, patient.house.store, patient.house.vault).rows(patient.settings)
    set_up = [row for row in rows if row.state not in ("unset", "off") and row.by]  # of others the settings are told
    found = [each for row in set_up if (each := _standing(row))]
    names = ", ".join(f"{row.name} ({row.state})" for row in set_up)
    return found_or_fine(found, f"channels: {names}" if set_up else "no channel is set up")


def _standing(row: ChannelRow) -> Diagnosis | None:
    match row.state:
        case "wrong" | "failed":
            return broken(f"the channel {row.name} does not work: {row.why}", row.todo)
        case "stopped":
            return advice(f"nobody listens at the channel {row.name}", row.todo)
    return None


async def try_channels(patient: Patient) -> Sequence[Diagnosis]:
    assert patient.settings is not None
    if not patient.live:
        return skipped("platforms are asked whether they take our tokens with --live")
    found, names = [], []
    desk = ChannelDesk(patient.house, SettingsEditor(patient.home, patient.environ), patient.http, _unchanged)
    for row in [row for row in await desk.rows() if row.state not in ("unset", "off", "wrong")]:
        names.append(row.name)
        try:
            await desk.test(row.name)
        except EverloopError as error:
            found.append(
                broken(f"{row.name} does not let us in: {error}", f"Set it up anew: everloop channels add {row.name}")
            )
    return found_or_fine(found, f"platforms that know us: {', '.join(names) or 'none is set up'}")


async def _unchanged() -> None:
    """Nobody changes anything here."""


async def look_at_outbox(patient: Patient) -> Sequence[Diagnosis]:
    rows = [row for row in await patient.house.store.undelivered() if not row.polled]
    given_up = [row for row in rows if row.state == "failed"]
    stuck = [row for row in rows if row.state != "failed" and time.time() - row.queued > STUCK]
    found = []
    if given_up:
        found.append(
            advice(
                f"{many(len(given_up), 'answer')} could not be delivered and given up; the last at "
                f"{given_up[-1].channel}: {given_up[-1].why or 'no reason is known'}",
                "everloop outbox list shows them; everloop outbox retry ID sends one again, drop ID forgets it",
            )
        )
    if stuck:
        found.append(
            advice(
                f"{many(len(stuck), 'answer')} could not be sent for more than 10 minutes at "
                f"{', '.join(sorted({row.channel for row in stuck})[:SHOWN])}"
                + (f": {stuck[-1].why}" if stuck[-1].why else ""),
                "See that everloop gateway runs and the channel listens: everloop channels status",
            )
        )
    return found_or_fine(found, "nothing waits to be delivered")


async def look_at_servers(patient: Patient) -> Sequence[Diagnosis]:
    assert patient.settings is not None
    servers = await servers_of(patient.settings.tools.mcp_servers, patient.house.vault, patient.environ)
    found = [each for name, server in servers.items() if (each := _wrong(name, server))]
    asked = [each for each in servers.values() if isinstance(each, McpServer) and each.url]
    found += [each for each in await asyncio.gather(*(_away(each, patient) for each in asked)) if each]
    return found_or_fine(found, f"MCP servers: {', '.join(servers) or 'none is set up'}")


def _wrong(name: str, server: McpServer | str) -> Diagnosis | None:
    if isinstance(server, str):
        return broken(
            f"the MCP server {name} is set up wrongly: {server}",
            f"Mend it in the settings, or set it up anew: everloop mcp add {name}",
        )
    if server.transport == "stdio" and not shutil.which(server.command[0]):
        return broken(
            f"the program {server.command[0]} of the MCP server {name} is not there, or cannot be run",
            "Install it, or name it by its whole path; chmod +x makes a file of yours one that can be run",
        )
    return None


async def _away(server: McpServer, patient: Patient) -> Diagnosis | None:
    address = urlsplit(server.url)
    if find_proxy(URL(server.url), patient.chosen.net.proxy):
        return None
    why = await unreachable(address.hostname or "", address.port or (443 if address.scheme == "https" else 80))
    if not why:
        return None
    return broken(
        f"the MCP server {server.name} cannot be reached at {address.netloc.rpartition('@')[2]} ({why})",
        f"See that it runs and its address is right: everloop mcp show {server.name}; everloop mcp remove takes it out",
    )


async def look_at_pins(patient: Patient) -> Sequence[Diagnosis]:
    """What was allowed, as it was seen last; no server is asked."""
    assert patient.settings is not None
    store = patient.house.store
    servers = await servers_of(patient.settings.tools.mcp_servers, patient.house.vault, patient.environ)
    pins = await store.mcp.mcp_pins()
    found = [
        each
        for name, server in servers.items()
        if isinstance(server, McpServer) and (each := _unallowed(server, [pin for pin in pins if pin.server == name]))
    ]
    return found_or_fine(found, f"of MCP servers {many(len(pins), 'tool')} may be used")


def _unallowed(server: McpServer, pins: Sequence[McpPin]) -> Diagnosis | None:
    todo = f"Look at it and allow it: everloop mcp allow {server.name}"
    if not pins:
        return advice(f"no tool of the MCP server {server.name} is allowed yet, so none is offered", todo)
    changed = [pin.definition.tool for pin in pins if pin.found]
    if changed:
        names = ", ".join(changed[:SHOWN])
        return advice(f"tools of the MCP server {server.name} are others than were allowed: {names}", todo)
    if any(pin.setup != server.setup for pin in pins):
        return advice(f"the MCP server {server.name} is set up otherwise than when its tools were allowed", todo)
    return None


CHECKS = (
    Check("channels", "channels: set up rightly, listening, what failed last", look_at_channels, "store"),
    Check("channel-tokens", "with `--live`: platforms take our tokens", try_channels, "store", 120),
    Check("outbox", "answers that were given up, or wait for long to be sent", look_at_outbox, "store"),
    Check(
        "mcp-servers",
        "MCP servers are set up rightly; programs are there, addresses answer",
        look_at_servers,
        "store",
    ),
    Check("mcp-tools", "tools of MCP servers that nobody has allowed, or that have changed", look_at_pins, "store"),
)
