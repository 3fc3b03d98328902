"""MCP servers and their tools as people see them: on the command line, in the API and on the page."""

from typing import Literal

from msgspec import Struct

from ..core.tool import Effect
from .mcp import McpState, McpTransport

# Allowed and offered; another than was allowed; of a server that is set up otherwise than it was then; not there any
# more; never allowed; left out by the setting `tools`; with the name of another tool.
McpToolState = Literal["allowed", "changed", "setup", "gone", "new", "hidden", "collides"]


class McpToolRow(Struct, frozen=True, kw_only=True):
    """A tool of a server. `name` is what models call it; `digest` names what would be allowed now, "" where there is
    nothing to allow; `difference` is what would change with that. `hints` are the server's own words."""

    tool: str
    name: str
    state: McpToolState
    effect: Effect
    description: str = ""
    hints: dict[str, bool] = {}
    definition: str = ""  # the whole description, as JSON
    digest: str = ""
    difference: str = ""
    used: int = 0
    last_used: float = 0.0

    @property
    def is_tool(self) -> bool:
        """What else a server has is allowed as tools are, under names that no tool has."""
        return not self.tool.startswith("@")


class McpRow(Struct, frozen=True, kw_only=True):
    """A server: how it is reached (`where`, without secrets), how it stands, and how many of its tools are allowed,
    have to be looked at again, or are new. `resources` is how that stands which it has to be read, `login` whether one
    is kept or `wanted`: by a server that has asked for one, or refuses the one that there is."""

    name: str
    transport: McpTransport
    where: str
    state: McpState
    why: str = ""
    todo: str = ""
    since: float = 0.0
    restarts: int = 0
    allowed: int = 0
    changed: int = 0
    new: int = 0
    resources: McpToolState | None = None
    login: tuple[Literal["kept", "wanted"], ...] = ()
    permission: str = "owner"
    network: tuple[str, ...] = ()
    workspace: bool = False
    sandbox: bool = True
    is_known: bool = False  # whether this process has heard what it offers


class McpShown(Struct, frozen=True):
    """A server with its tools, and what it says of itself, as far as that is known here."""

    server: McpRow
    tools: list[McpToolRow]
    title: str = ""
    version: str = ""
    protocol: str = ""
    instructions: str = ""


class McpReview(Struct, frozen=True):
    """What a server offers that is not set up yet. `pin` names exactly this, for whoever allows it."""

    name: str
    where: str
    tools: list[McpToolRow]
    pin: str
    title: str = ""
    version: str = ""
    instructions: str = ""
    secrets: tuple[str, ...] = ()  # the names under which they would be kept in the vault
