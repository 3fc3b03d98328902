"""Tools that a program calls for a person without a turn, as MCP clients do.

`recall` is the tool of turns; `search_history` looks into all of the person's conversations. What `remember` is told
may come from anywhere, for nobody knows what the program has read: it is kept as strangers' words, which are found and
told as such, and never stands in MEMORY.md. Any other tool is there if the owner exposes it. It runs by the policy of
the settings as if the person had called it, with nobody there to be asked.
"""

import asyncio
import logging
from collections.abc import Callable
from fnmatch import fnmatchcase
from hashlib import sha256
from secrets import token_hex
from typing import Annotated, Any, Protocol

import msgspec

from ..core.people import Role
from ..core.tool import Effect, ToolCall, ToolSpec, may_use, problems_of
from ..errors import ToolError
from ..memory.lines import LONGEST, one_line
from ..ports import Clock, Memory
from ..ports.conversation import SearchHit
from ..ports.memory import Fact, FactSource, MemoryChange
from ..ports.tools import CallContext, Result, Shown, Tool
from ..runtime.scheduled_work import Alone
from ..runtime.strangers import contained
from ..settings import Settings
from ..tools.decorator import tool
from ..tools.recall import SaidBefore
from ..tools.untrusted import fence
from .briefer import policy_of
from .credentials import PersonalCredentials
from .redaction import redacted
from .tools import Kits

_log = logging.getLogger("everloop.tools")

RECALL = "recall"
WHY = "a program was told to remember something"
NOT_EXPOSED = frozenset({"spawn", "message", "cron"})  # what goes on in a conversation needs one
FOUND = 20
TO_BE_ASKED = "{} needs a person's permission for this, and nobody can be asked here: have the agent do it, with `ask`"


class MemoryStore(Memory, SaidBefore, Protocol):
    """What is remembered, and what was said."""


class HouseDirectTools:
    """The gateway's DirectTools."""

    def __init__(
        self,
        store: MemoryStore,
        kits: Callable[[], Kits],
        settings: Callable[[], Settings],
        clock: Clock,
        credentials: PersonalCredentials,
    ) -> None:
        self._kits = kits
        self._settings = settings
        self._credentials = credentials
        self._own = (search_history_tool(store), remember_tool(store, clock))

    async def specs(self, person: str, role: Role) -> list[ToolSpec]:
        return [tool.spec for tool in self._tools(person, role).values()]

    async def call(self, person: str, role: Role, name: str, args: dict[str, Any]) -> Result:
        found = self._tools(person, role).get(name)
        if found is None:
            raise ToolError(f"there is no tool {name[:100]!r} for you here")
        spec, call = found.spec, ToolCall("", name, msgspec.json.encode(args).decode())
        if problems := problems_of(call, spec):
            raise ToolError("; ".join(problems))
        stance = policy_of(self._settings().tools).stance(call, spec, Alone())
        if stance == "deny":
            raise ToolError(f"the settings do not allow this call of {name}")
        if stance == "ask":
            raise ToolError(TO_BE_ASKED.format(name))
        context = _context(person, role)
        return await self._hidden(context, await _run(found, args, context))

    def _tools(self, person: str, role: Role) -> dict[str, Tool]:
        settings, kit = self._settings(), self._kits().of(person)
        found = {each.spec.name: each for each in self._own if settings.memory.enabled or each.spec.name != "remember"}
        for name, each in kit.tools.items():
            exposed = any(fnmatchcase(name, pattern) for pattern in settings.gateway.mcp_tools)
            if name == RECALL or (exposed and name not in NOT_EXPOSED):
                found.setdefault(name, each)
        lifted = settings.users.guest_tools
        return {name: each for name, each in found.items() if may_use(role, each.spec, lifted)}

    async def _hidden(self, context: CallContext, came: Result) -> Result:
        """Without the credentials of whom it is for."""
        shown = came if isinstance(came, Shown) else Shown(came)
        return await self._credentials.hide(context.user, shown) if self._credentials.has(context.user) else shown


def _context(person: str, role: Role) -> CallContext:
    """A call of its own, in a place of this person's: what goes on in the background is found again by them alone."""
    place = f"mcp-{sha256(person.encode()).hexdigest()[:16]}"
    call = token_hex(8)
    return CallContext(f"{place}:0:{call}", place, f"mcp:{call}", person, role=role)


async def _run(found: Tool, args: dict[str, Any], context: CallContext) -> Result:
    """Raises ToolError."""
    name, seconds = found.spec.name, found.spec.seconds
    try:
        async with asyncio.timeout(seconds):
            with contained():
                return await found.run(dict(args), context)
    except ToolError:
        raise
    except TimeoutError as error:
        raise ToolError(f"{name} did not finish within {seconds:g} s") from error
    except Exception as error:  # a stranger's code runs here
        _log.warning("%s failed for a program", name, exc_info=True)
        raise ToolError(f"{type(error).__name__}: {error}") from error


def search_history_tool(past: SaidBefore) -> Tool:
    @tool(Effect.READ, permission=Role.USER)
    async def search_history(query: Annotated[str, "Words that were said"], context: CallContext) -> str:
        """Find where something was said, in any conversation of this person with everloop."""
        if not query.strip():
            raise ToolError("the query is empty")
        hits = await past.search(context.principal, query, limit=FOUND)
        return "\n".join(map(_place, hits)) or "[it was not said in any conversation]"

    return search_history


def _place(hit: SearchHit) -> str:
    """Strangers' words are told as theirs."""
    text = " ".join(hit.text.split())
    told = fence(text, "an earlier conversation") if hit.strange or hit.who == "tool" else text
    return f"{hit.thread[:8]}, entry {hit.seq}, {hit.who}: {told}"


def remember_tool(store: Memory, clock: Clock) -> Tool:
    @tool(Effect.KEYED, permission=Role.USER)
    async def remember(text: Annotated[str, "One sentence"], context: CallContext) -> str:
        """Have everloop remember a fact; it is found by `recall` and told as what a program has said."""
        said = one_line(redacted(text))
        if not said or len(text) > LONGEST:
            raise ToolError(f"what is to be remembered is one sentence of at most {LONGEST} characters")
        id = sha256(said.encode()).hexdigest()[:16]  # the same fact twice is one
        if await store.facts(context.principal, ids=[id], ended=True):
            return "That is remembered already; nothing was changed."
        fact = Fact(id, said, FactSource("", 0, context.user, clock.now()), marked=True)
        if not await store.change_memory(context.principal, MemoryChange(author=context.user, why=WHY, facts=(fact,))):
            raise ToolError("the memory is being changed by somebody else at this moment; try again")
        return "Remembered."

    return remember
