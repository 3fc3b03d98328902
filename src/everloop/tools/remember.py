"""remember and forget: what is known in every later conversation of the same person, or group.

Both change what models are told from then on. Where strangers' words were read they may be behind it, so a person is
asked first, as for the files that stand in every prompt.
"""

from collections.abc import Callable
from typing import Annotated, Any, Protocol

from msgspec import Meta

from ..core.people import Role
from ..core.tool import Circumstances, Effect, Risk
from ..ports.tools import CallContext, Tool
from .decorator import tool

WHY = "strangers' words were read in this conversation, and what is remembered is told in every later one"


class KeepsMemory(Protocol):
    """What is remembered, as tools change it. Raises ToolError."""

    async def remember(self, text: str, topic: str, importance: int, replaces: str, context: CallContext) -> str: ...

    async def forget(self, query: str, context: CallContext) -> str: ...


def risk_of_remembering(args: dict[str, Any], situation: Circumstances) -> Risk:
    if situation.outside:
        return Risk("medium", mutates=True, privileged=True, why=WHY)
    return Risk(mutates=True)


def memory_tools(memory: Callable[[], KeepsMemory]) -> tuple[Tool, ...]:
    """`memory` is asked for with each use."""
    return remember_tool(memory), forget_tool(memory)


def remember_tool(memory: Callable[[], KeepsMemory]) -> Tool:
    @tool(Effect.KEYED, permission=Role.USER, risk=risk_of_remembering)
    async def remember(
        text: Annotated[str, "One sentence"],
        context: CallContext,
        topic: Annotated[str, "Its heading"] = "",
        importance: Annotated[int, Meta(ge=1, le=5, description="5: most")] = 3,
        replaces: Annotated[str, "What is no longer true"] = "",
    ) -> str:
        """Remember for all later conversations."""
        return await memory().remember(text, topic, importance, replaces, context)

    return remember


def forget_tool(memory: Callable[[], KeepsMemory]) -> Tool:
    @tool(Effect.IDEMPOTENT, permission=Role.USER, risk=risk_of_remembering)
    async def forget(query: Annotated[str, "Its words"], context: CallContext) -> str:
        """Forget for good. Tell the user where it stays."""
        return await memory().forget(query, context)

    return forget
