"""Which calls taint a folder."""

import pytest

from everloop.core.tool import Effect, ToolSpec
from everloop.runtime.tainting import taint_of


def spec(effect: Effect, **more) -> ToolSpec:
    return ToolSpec("x", "", {}, effect, **more)


@pytest.mark.parametrize(
    ("tool", "plain", "marked"),
    [
        (spec(Effect.READ), None, None),
        (spec(Effect.READ, outside=True), None, None),
        (spec(Effect.IDEMPOTENT, undoable=True), None, True),
        (spec(Effect.IDEMPOTENT), False, True),
        (spec(Effect.UNSAFE), False, True),
        (spec(Effect.VERIFIABLE, outside=True), True, True),
        (spec(Effect.IDEMPOTENT, undoable=True, outside=True), True, True),
    ],
)
def test_a_call_taints_by_what_its_tool_can_do_and_what_was_read(
    tool: ToolSpec, plain: bool | None, marked: bool | None
):
    assert (taint_of(tool, False), taint_of(tool, True)) == (plain, marked)
