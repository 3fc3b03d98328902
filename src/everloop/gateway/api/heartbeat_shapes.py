"""What is told about a heartbeat."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct


class HeartbeatStanding(Struct, frozen=True):
    """Times are Unix time, 0 for never, and `next` null where none is planned. `off` says why there is none. `lines`
    tell all of it in sentences. `checks` are commands of HEARTBEAT.md that nobody has allowed by hand."""

    off: str
    looked: float
    decided: str
    why: str
    asked: float
    result: str
    cost: float | None
    next: float | None
    checks: list[str]
    lines: list[str]


def standing(shown: Any, lines: Sequence[str]) -> HeartbeatStanding:
    row = shown.row
    return HeartbeatStanding(
        off=shown.off,
        looked=row.state.looked,
        decided=row.state.decided if row.state.looked else "",
        why=row.state.why,
        asked=row.state.asked,
        result=row.result,
        cost=row.cost,
        next=row.next,
        checks=[*shown.checks],
        lines=[*lines],
    )
