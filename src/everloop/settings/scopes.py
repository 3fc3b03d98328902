"""What a change of settings needs beside `admin`: whoever may only change settings must not come by more that way.

A setting that says what runs unasked is worth the scope `approve`; one that says to whom what is said is sent is worth
`read`; what the agent is told about itself is worth `chat`. Those that can be changed by hand only are not here: see
`by_hand` in shape.py.
"""

from collections.abc import Iterable

from .edit import Path

NEEDS: dict[Path, str] = {
    ("tools",): "approve",
    ("agents", "defaults", "system_prompt"): "chat",
    ("agents", "defaults", "model"): "read",
    ("agents", "defaults", "fallbacks"): "read",
    ("agents", "defaults", "small_model"): "read",
    ("agents", "defaults", "embedding_model"): "read",
    ("models",): "read",
    ("providers",): "read",
    ("telemetry",): "read",
}


def scopes_for(paths: Iterable[Path]) -> set[str]:
    """The scopes that a change at these paths needs; a table that is taken out is all that stands in it."""
    return {scope for path in paths for place, scope in NEEDS.items() if _meet(path, place)}


def _meet(one: Path, other: Path) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]
