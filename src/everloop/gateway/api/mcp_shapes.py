"""What is asked and told about MCP servers."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from ...ports.mcp_rows import McpReview, McpRow, McpShown
from .shapes import ApiInput

_Name = Annotated[str, Meta(min_length=1, max_length=50)]
_Key = Annotated[str, Meta(min_length=1, max_length=200)]
_Text = Annotated[str, Meta(max_length=10_000)]
_Tool = Annotated[str, Meta(min_length=1, max_length=500)]
_Digest = Annotated[str, Meta(min_length=1, max_length=64)]
_Texts = Annotated[tuple[_Text, ...], Meta(max_length=200)]
_Named = Annotated[dict[_Key, _Text], Meta(max_length=100)]
_Effect = Literal["read", "idempotent", "unsafe"]


class OfMcpServer(ApiInput, frozen=True):
    name: _Name


class McpLoginValues(ApiInput, frozen=True, omit_defaults=True):
    client_id: _Text = ""
    client_secret: _Text = ""
    scopes: _Texts = ()


class McpValues(ApiInput, frozen=True, omit_defaults=True):
    """The settings of a server: a `command` with its `args`, or a `url`. Secrets go to the vault. What is to run
    without a sandbox is set up on the command line."""

    command: _Text = ""
    args: _Texts = ()
    env: _Named = field(default_factory=dict)
    url: _Text = ""
    headers: _Named = field(default_factory=dict)
    transport: Literal["auto", "stdio", "http", "sse"] = "auto"
    network: _Texts = ()
    workspace: bool = False
    timeout: Annotated[float, Meta(ge=1, le=86400)] = 60.0
    tools: _Texts = ("*",)
    permission: Literal["guest", "user", "admin", "owner"] = "owner"
    effects: Annotated[dict[_Key, _Effect], Meta(max_length=200)] = field(default_factory=dict)
    sampling: bool = False
    oauth: McpLoginValues = McpLoginValues()


class ReviewingMcp(ApiInput, frozen=True):
    """`install`: what an npx or uvx command fetches may be fetched; without that it is refused, with the question."""

    name: _Name
    values: McpValues
    install: bool = False


class AddingMcp(ApiInput, frozen=True):
    """`pin` is that of the review: exactly what was shown is allowed."""

    values: McpValues
    pin: _Digest
    install: bool = False


class AllowingMcp(ApiInput, frozen=True):
    """`tools` are those that are allowed, by name, each with the `digest` that was shown."""

    tools: Annotated[dict[_Tool, _Digest], Meta(min_length=1, max_length=500)]
    effect: _Effect | None = None


class DenyingMcp(ApiInput, frozen=True):
    """Without `tools`, all of them."""

    tools: Annotated[list[_Tool], Meta(min_length=1, max_length=500)] | None = None


class TestingMcp(ApiInput, frozen=True):
    tool: _Tool
    args: dict[str, Any] = field(default_factory=dict)


class McpList(Struct, frozen=True):
    servers: list[McpRow]


class McpDetail(Struct, frozen=True):
    mcp: McpShown


class McpReviewed(Struct, frozen=True):
    review: McpReview


class McpRemoved(Struct, frozen=True):
    """`left` are secrets in the vault that it referred to and that may be others', too."""

    name: str
    left: list[str]


class McpTested(Struct, frozen=True):
    """What the server has answered: a stranger's words."""

    text: str
    pictures: int


class McpLoginBegun(Struct, frozen=True):
    """The address that a person opens in a browser."""

    url: str


class McpLoggedOut(Struct, frozen=True):
    """Whether there was a login."""

    gone: bool
