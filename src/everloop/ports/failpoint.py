"""Named places in the code at which a test may end, stop or break the process.

A room calls `reach("outbox.sent")` right after the thing that the name tells. Outside tests the hook is None and
a call costs one look; `everloop.testing.failpoints` sets it.
"""

from collections.abc import Callable

hook: Callable[[str], None] | None = None


def reach(name: str) -> None:
    """Say that this place has been reached. `name` is written out where it is called, so that a test can list it."""
    if hook is not None:
        hook(name)
