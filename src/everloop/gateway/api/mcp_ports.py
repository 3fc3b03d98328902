"""What the API needs of MCP servers."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ...core.tool import Effect
from ...ports.mcp_questions import McpQuestion
from ...ports.mcp_rows import McpReview, McpRow, McpShown
from ...ports.tools import Result


class McpAnswering(Protocol):
    """What servers ask people in the middle of calls. Raises StoreError."""

    async def waiting(self, person: str) -> Sequence[McpQuestion]: ...

    async def answer(self, id: str, line: str, person: str) -> str:
        """What came of it. Raises MailRefused."""
        ...


class McpSettingUp(Protocol):
    """Raises EverloopError with a way out, and StoreError; no secret is told."""

    def question(self, name: str, given: Mapping[str, Any]) -> str: ...

    async def install(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]: ...

    async def discard(self, name: str) -> None: ...

    async def review(self, name: str, given: Mapping[str, Any]) -> McpReview: ...

    async def remove(self, name: str) -> list[str]: ...


class McpLoggingIn(Protocol):
    """Raises as McpSettingUp."""

    async def begin_login(self, name: str, origin: str) -> str:
        """The address that a person opens; `origin` is the gateway's own, to which they come back."""
        ...

    async def log_out(self, name: str) -> bool: ...


class McpBook(McpLoggingIn, Protocol):
    """MCP servers, and what was allowed of them. Raises as McpSettingUp."""

    @property
    def setup(self) -> McpSettingUp: ...

    async def is_there(self, name: str) -> bool: ...

    async def rows(self) -> Sequence[McpRow]: ...

    async def show(self, name: str) -> McpShown: ...

    async def restart(self, name: str) -> McpShown: ...

    async def add(
        self, name: str, given: Mapping[str, Any], pin: str, effects: Mapping[str, Effect] = {}
    ) -> McpShown: ...

    async def allow(self, name: str, tools: Mapping[str, str], effect: Effect | None = None) -> McpShown: ...

    async def deny(self, name: str, tools: Sequence[str] | None = None) -> McpShown: ...

    async def test(self, name: str, tool: str, args: dict[str, Any]) -> Result: ...
