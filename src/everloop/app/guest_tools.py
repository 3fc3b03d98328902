"""Which tools a turn is offered: fewer by what the conversation has (its terms, and a persona's), then by the role."""

from collections.abc import Collection, Iterable, Mapping

from ..core.briefing import Situation
from ..core.people import Role
from ..core.prompt import Terms
from ..core.tool import Effect, ToolSpec, may_use
from ..errors import SettingsError
from ..runtime.calls import Kit


def offered(
    kit: Kit, situation: Situation, lifted: Collection[str], lacking: Collection[str] = ()
) -> dict[str, ToolSpec]:
    """The one place where tools become fewer. That a tool is missing here is a courtesy to the model: what somebody may
    use is asked again where a call runs (`core.decide`), with the role that they have by then. What the conversation's
    channel cannot do is `lacking`."""
    terms = situation.terms or Terms()
    here = {name: tool.spec for name, tool in kit.tools.items() if terms.leaves(name) and name not in lacking}
    return {name: spec for name, spec in here.items() if may_use(situation.role, spec, lifted)}


def check_guest_tools(
    named: Iterable[str], tools: Mapping[str, ToolSpec], built_in: Collection[str], *, comes_and_goes: bool
) -> None:
    """Raises SettingsError for a name that lifts nothing: of no tool, or of one that does more than read. Where tools
    come and go, one that is not there may come; it is lifted then if it only reads."""
    for name in named:
        spec = tools.get(name)
        if spec is None and name not in built_in and not comes_and_goes:
            raise SettingsError(f"users.guest_tools: there is no tool {name!r}; see docs/tools.md for their names")
        if spec is not None and spec.effect is not Effect.READ and spec.permission > Role.GUEST:
            raise SettingsError(
                f"users.guest_tools: {name!r} does more than read (its effect is {spec.effect}), and guests are given "
                "what reads; give the person a role instead: everloop users role NAME user"
            )
