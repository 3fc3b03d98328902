"""spawn: hand a task on to a sub-agent, which works at it in a conversation of its own.

It is never run: what it hands on is posted with its start (runtime/children.py).
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from ..core.people import Role
from ..core.tool import Effect
from ..errors import ToolError
from ..ports.tools import Assignment, CallContext, Tool
from ..readings.visible import in_one_line
from .decorator import tool

LONGEST = 50_000
SHOWN = 60  # characters of what a profile is for


class AgentProfile(Struct, frozen=True):
    """Who may work at a task: for what, by which model, with which tools (patterns; None: all but those that no task
    has unless they are named), in how many steps, for how much at most."""

    description: str = ""
    model: str = ""
    tools: tuple[str, ...] | None = None
    steps: int = 15
    tokens: int | None = None
    money: int | None = None  # billionths of a dollar


class _Args(Struct):
    task: str
    agent: str = ""
    wait: bool = False


def spawn_tool(profiles: Mapping[str, AgentProfile], plain: AgentProfile) -> Tool:
    """`profiles` are those who can be named, `plain` works where nobody is."""

    @tool(Effect.KEYED, permission=Role.USER)
    async def spawn(
        task: Annotated[str, "All it needs to know: it sees nothing of this"],
        wait: bool = False,
    ) -> str:
        """Hand a task on to a sub-agent. Without wait its report comes later."""
        raise ToolError("a task is handed on, not run")

    async def assign(args: dict[str, Any], context: CallContext) -> Assignment:
        given = msgspec.convert({name: value for name, value in args.items() if value is not None}, _Args)
        text = given.task.encode("utf-8", "replace").decode().strip()
        if not text or len(text) > LONGEST:
            raise ToolError(f"a task has some text, at most {LONGEST:,} characters")
        if given.agent and given.agent not in profiles:
            known = ", ".join(sorted(profiles)) or "none with a name"
            raise ToolError(f"there is no agent {given.agent[:80]!r}; there is: {known}. Or name none")
        profile = profiles.get(given.agent, plain)
        return Assignment(
            text=text,
            agent=given.agent,
            waits=given.wait,
            steps=profile.steps,
            tools=profile.tools,
            model=profile.model,
            tokens=profile.tokens,
            money=profile.money,
        )

    spec = msgspec.structs.replace(spawn.spec, spawns=True, schema=_with_agents(spawn.spec.schema, profiles))
    return Tool(spec, spawn.run, assign=assign)


def _with_agents(schema: dict[str, Any], profiles: Mapping[str, AgentProfile]) -> dict[str, Any]:
    """What they are for stands in every prompt: a line of each. Where nobody has a name, nobody is to be chosen."""
    if not profiles:
        return schema
    told = [
        f"{name} ({in_one_line(profile.description)[:SHOWN]})" if profile.description else name
        for name, profile in sorted(profiles.items())
    ]
    agent = {"type": "string", "description": f"Who: {'; '.join(told)}"}
    return {**schema, "properties": {**schema["properties"], "agent": agent}}
