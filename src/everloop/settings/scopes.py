"""What a change of settings needs beside `admin`: whoever may only change settings must not come by more that way.

What says which calls run unasked is worth the scope `approve`. What says to whom that which is said is sent is worth
`read`, and who answers is worth `chat` as well: they are sent it all, and what they say is what the agent does. What
the agent is told about itself is worth `chat`. What opens the gateway (where it listens, under which names, which pages
may call it with the owner's own login) is worth all there is. Those that can be changed by hand only are not here: see
`by_hand` in shape.py.
"""

from collections.abc import Iterable

from .edit import Path

_ANSWERS = ("read", "chat")
_ALL = ("read", "chat", "approve")

NEEDS: dict[Path, tuple[str, ...]] = {
    ("tools",): ("approve",),
    ("tools", "mcp_servers"): _ALL,  # which tools there are, whose they are, and what runs unasked
    ("tools", "web", "search"): ("approve", "read"),  # it is sent what is searched for
    ("agents", "defaults", "system_prompt"): ("chat",),
    ("agents", "defaults", "model"): _ANSWERS,
    ("agents", "defaults", "fallbacks"): _ANSWERS,
    ("agents", "defaults", "small_model"): _ANSWERS,
    ("agents", "defaults", "embedding_model"): ("read",),
    ("agents", "profiles"): _ALL,  # as personas
    ("models",): _ANSWERS,
    ("personas",): _ALL,  # what the agent is told, who answers, with which tools
    ("providers",): _ANSWERS,
    ("skills",): _ALL,  # what the agent is told, and others with it
    ("telemetry",): ("read",),
    ("voice",): ("read",),
    ("speech",): ("read",),  # it is sent what is read aloud
    ("users",): _ALL,  # who is let in
    ("gateway", "host"): _ALL,
    ("gateway", "behind_proxy"): _ALL,
    ("gateway", "allowed_hosts"): _ALL,
    ("gateway", "allowed_origins"): _ALL,
    ("gateway", "mcp_tools"): ("approve",),  # which calls programs make themselves, with nobody asked
    ("heartbeat", "session"): ("read",),  # where what it tells is told
}


def scopes_for(paths: Iterable[Path]) -> set[str]:
    """The scopes that a change at these paths needs; a table that is taken out is all that stands in it."""
    return {scope for path in paths for place, scopes in NEEDS.items() if _meet(path, place) for scope in scopes}


def _meet(one: Path, other: Path) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]
