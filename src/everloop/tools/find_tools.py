"""find_tools and call_tool: the tools that the prompt has no room for. They are offered only where there are such."""

from collections.abc import Callable, Mapping
from typing import Annotated

from ..core.people import Role
from ..core.tool import Effect, ToolSpec, may_use
from ..errors import ToolError
from ..ports.tools import CallContext, Tool
from ..readings.found_tools import CALL_SPEC, FINDERS, described, found
from .decorator import tool

Specs = Callable[[str], Mapping[str, ToolSpec]]  # all that there are, for a principal


def finding_tools(specs: Specs) -> tuple[Tool, ...]:
    @tool(Effect.READ, permission=Role.USER)
    async def find_tools(query: Annotated[str, "What it should do"], context: CallContext) -> str:
        """Find further tools, which call_tool calls."""
        there = [spec for spec in specs(context.principal).values() if spec.name not in FINDERS]
        usable = [spec for spec in there if may_use(context.role, spec)]
        shown = found(query, usable)
        if not shown:
            names = ", ".join(spec.name for spec in usable[:100])
            return f"[no tool says that it does this; there are: {names}]"
        return described(shown)

    async def call_tool(args: dict[str, object], context: CallContext) -> str:
        raise ToolError(f"there is no tool {str(args.get('name'))[:100]!r}; find_tools tells which there are")

    return find_tools, Tool(CALL_SPEC, call_tool)
