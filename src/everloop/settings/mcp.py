"""The shape of a server of the Model Context Protocol in the settings: `tools.mcp_servers.<name>`.

What one of them has wrong keeps nothing else from being read: it is noted in `wrong`, and told wherever servers are
listed. In what refers to the vault or to a variable (`${…}`), the reference stands here; `app` looks it up.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

TABLE = "mcp_servers"

# Through an API these would have a program run here, or what is secret sent elsewhere; `mcp add` asks for them anew.
_RUNS = "says what runs here, and what that can see and reach"
_SENT = "says where something is sent that may be secret"
Runs = Annotated[str, Meta(extra={"references": True, "by_hand": _RUNS})]
RunsWith = Annotated[tuple[str, ...], Meta(extra={"arguments": True, "references": True, "by_hand": _RUNS})]
Reaches = Annotated[tuple[str, ...], Meta(extra={"by_hand": _RUNS})]
Confines = Annotated[bool, Meta(extra={"by_hand": _RUNS})]
Named = Annotated[dict[str, str], Meta(extra={"secret": True, "references": True, "by_hand": _SENT})]
Address = Annotated[str, Meta(extra={"url": True, "references": True, "by_hand": _SENT})]
Issuers = Annotated[tuple[str, ...], Meta(extra={"by_hand": _SENT})]
ClientSecret = Annotated[str, Meta(extra={"secret": True, "references": True, "by_hand": _SENT})]
ClientId = Annotated[str, Meta(extra={"references": True})]
Installed = Annotated[str, Meta(extra={"by_hand": _RUNS})]
Noted = Annotated[str, Meta(extra={"kept": True})]
EffectName = Literal["read", "idempotent", "unsafe"]  # no server knows our keys, or can be asked whether it happened


class _Hidden(Struct, frozen=True):
    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"  # secrets may stand in it


class McpOAuthSection(_Hidden, frozen=True):
    """How one logs in at an HTTP server, where it does not say all of that itself."""

    client_id: ClientId = ""  # "": everloop registers itself
    client_secret: ClientSecret = ""
    scopes: tuple[str, ...] = ()
    issuers: Issuers = ()  # addresses of who gives out tokens, where these are private


class McpServerSection(_Hidden, frozen=True):
    command: Runs = ""  # a program, with its `args`; or a `url`
    args: RunsWith = ()
    env: Named = {}
    url: Address = ""
    headers: Named = {}
    transport: Literal["auto", "stdio", "http", "sse"] = "auto"
    network: Reaches = ()  # hosts that a program may reach
    workspace: Confines = False  # whether a program sees the owner's workspace
    sandbox: Confines = True
    package: Installed = ""  # the digest of what was installed for an npx or uvx command
    timeout: Annotated[float, Meta(ge=1, le=86400)] = 60.0  # seconds for one call
    tools: tuple[str, ...] = ("*",)  # names or patterns of those that may be offered
    permission: Literal["guest", "user", "admin", "owner"] = "owner"  # the lowest role that may use them
    effects: dict[str, EffectName] = {}  # by names or patterns: the owner's word on what a tool does
    sampling: bool = False  # whether it may have a model asked
    oauth: McpOAuthSection = McpOAuthSection()
    enabled: bool = True
    wrong: Noted = ""
