"""Servers of the Model Context Protocol (MCP): how one is set, what it offers, and what of that was allowed.

What a model may call is what was allowed, byte by byte, and kept: so prompts are made without asking any server, and a
server is started when one of its tools is first called. What it says of itself then is compared with what was allowed;
a tool that has become another is not called until a person has allowed it again.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from ..core.people import Role
from ..core.tool import Effect
from .tools import CallContext, Result

McpTransport = Literal["stdio", "http", "sse"]
McpState = Literal["off", "wrong", "idle", "starting", "running", "waiting", "login"]


class McpOAuth(Struct, frozen=True, kw_only=True):
    """What the owner has set about logging in to a server. Without a `client_id` we register there by ourselves; one
    that is a web address names a document that describes us. `issuers` are origins (`https://host[:port]`) of
    authorization servers to which the owner's word extends, so that they may be private."""

    client_id: str = ""
    client_secret: str = ""
    scopes: tuple[str, ...] = ()
    issuers: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"McpOAuth({self.client_id!r})"


class McpServer(Struct, frozen=True, kw_only=True):
    """A server as the owner has set it; in `env` and `headers` stand the values themselves, which nobody is shown.

    A command runs in the sandbox unless `sandbox` is off: it reaches the hosts of `network` and sees a folder of its
    own, with `workspace` the owner's, too. `tools` are patterns of those that may be offered, to people of `permission`
    and above; `effects` are the owner's word on what a tool does (patterns, the first that fits counts), and of one
    without a word nobody knows. `package` is the digest of what was installed for it, where something was.
    """

    name: str
    transport: McpTransport = "stdio"
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    url: str = ""
    headers: Mapping[str, str] = {}
    oauth: McpOAuth = McpOAuth()
    network: tuple[str, ...] = ()
    workspace: bool = False
    sandbox: bool = True
    package: str = ""
    seconds: float = 60.0  # for one call
    tools: tuple[str, ...] = ("*",)
    permission: Role = Role.OWNER
    effects: Mapping[str, Effect] = {}
    sampling: bool = False  # whether it may have a model asked, at the expense of whoever has called it
    secrets: frozenset[str] = frozenset()  # values in its command and elsewhere that nobody is shown

    def __repr__(self) -> str:
        return f"McpServer({self.name!r})"

    @property
    def setup(self) -> str:
        """A digest of who it is and how it runs: what was allowed of it was allowed of this."""
        who = (self.transport, self.command, sorted(self.env.items()), self.url, sorted(self.headers.items()))
        how = (sorted(self.network), self.workspace, self.sandbox, self.package)
        return sha256(msgspec.json.encode((who, how))).hexdigest()


class McpDefinition(Struct, frozen=True):
    """A tool as its server describes it; `body` is the whole description as JSON with its keys in order, so that any
    other byte is another description."""

    tool: str
    body: str

    @property
    def digest(self) -> str:
        return sha256(self.body.encode()).hexdigest()


class McpOffer(Struct, frozen=True):
    """What a server offers by its own account: strangers' words, all of it."""

    definitions: tuple[McpDefinition, ...] = ()
    title: str = ""
    version: str = ""
    protocol: str = ""
    instructions: str = ""
    has_resources: bool = False
    has_prompts: bool = False


class McpPin(Struct, frozen=True, kw_only=True):
    """A tool that a person has allowed: its description, its effect and the server's `setup` as they were then. `found`
    is what the server says instead by now, as long as nobody has allowed that: "" where it is the same, `gone` where
    there is no such tool. With any `found` it is not offered."""

    server: str
    definition: McpDefinition
    effect: Effect
    setup: str
    by: str
    at: float = 0.0
    found: str = ""
    used: int = 0
    last_used: float = 0.0


GONE = "gone"


class McpHealth(Struct, frozen=True):
    """How the connection to a server stands, since when (Unix time), and what was wrong last."""

    state: McpState
    since: float = 0.0
    why: str = ""
    restarts: int = 0


class McpPins(Protocol):
    """What of which server was allowed, for all processes. Raises StoreError."""

    async def mcp_pins(self, server: str = "") -> list[McpPin]:
        """Of one server or of all, by server and tool."""
        ...

    async def pin_mcp(self, pins: Sequence[McpPin]) -> None:
        """Allow these, each in the place of what was allowed of the same name; what was counted stays."""

    async def pin_mcp_first(self, server: str, pins: Sequence[McpPin]) -> bool:
        """Allow these if nothing was ever allowed or denied of this server; whether that was so."""
        ...

    async def mcp_seen(self) -> frozenset[str]:
        """The servers of which something was allowed or denied, and that are not forgotten."""
        ...

    async def note_mcp_found(self, server: str, found: Mapping[str, str]) -> bool:
        """What a server says by now, by tools that were allowed: "" or `gone` or a description; one that is what was
        allowed is the same as "". Whether that changes anything."""
        ...

    async def unpin_mcp(self, server: str, tools: Collection[str] | None = None) -> int:
        """Allow these no longer; without `tools` none of the server's, which is then as if it had never been there. How
        many that were."""
        ...

    async def note_mcp_use(self, server: str, tool: str, times: int = 1) -> None:
        """Count calls. No turn waits for this."""

    async def mcp_version(self) -> int:
        """Another one whenever a tool may be offered, or not, that was not so before."""
        ...


class McpWires(Protocol):
    """How servers are spoken with: the SDK's transports, each a context that yields its two streams."""

    def open(self, server: McpServer) -> AbstractAsyncContextManager[Any]:
        """Raises McpDown where it cannot be reached or started, McpLogin where somebody has to log in first."""
        ...

    def last_said(self, server: McpServer) -> str:
        """The end of what it has said beside its messages, where that is heard; a stranger's words."""
        ...


class McpQuestions(Protocol):
    """Whom a server may ask something in the middle of a call."""

    async def ask_person(
        self, context: CallContext, server: str, message: str, schema: dict[str, Any]
    ) -> dict[str, Any] | None:
        """What whoever has called it answers to its form; None: nothing (declined, nobody there, lapsed)."""
        ...

    async def ask_model(self, context: CallContext, server: str, request: dict[str, Any]) -> dict[str, Any] | None:
        """What a model answers, at the expense of whoever has called it; None: not allowed."""
        ...


class McpClient(Protocol):
    """The connections of this process, each begun when it is first needed and kept by the supervisor.

    Whatever a server does, its caller gets an answer within the server's seconds, or McpDown with a sentence for the
    model; nobody else waits for it.
    """

    async def look(self, server: McpServer) -> McpOffer:
        """What it offers now; it is connected for that. Raises McpDown, McpLogin."""
        ...

    async def call(self, server: McpServer, pin: McpPin, args: dict[str, Any], context: CallContext) -> Result:
        """Call a tool that was allowed. Raises ToolError: also where it is no longer what was allowed."""
        ...

    async def resources(self, server: McpServer) -> str:
        """What there is to read, as text for a model. Raises ToolError."""
        ...

    async def read(self, server: McpServer, uri: str) -> Result:
        """Raises ToolError."""
        ...

    async def prompts(self, server: McpServer) -> str: ...

    async def prompt(self, server: McpServer, name: str, args: Mapping[str, str]) -> Result:
        """Raises ToolError."""
        ...

    def changes(self) -> AsyncIterator[tuple[str, McpOffer]]:
        """By server, what it offers by now: after each connection, and whenever it says that its list has changed."""
        ...

    def health(self, name: str) -> McpHealth: ...

    async def end(self, name: str) -> None:
        """End its connection, and whatever runs for it."""

    async def close(self) -> None: ...
