"""A border around code that is not ours: what it raises is told, also what is meant to end a process."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import ToolError


@contextmanager
def contained() -> Iterator[None]:
    """SystemExit, KeyboardInterrupt and their like would leave the loop, and a turn that nobody ends. Raises ToolError
    in their place; all other errors pass."""
    try:
        yield
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:
        if isinstance(error, GeneratorExit) and _is_put_away():
            raise
        why = f"{type(error).__name__}: {error}".rstrip(": ")
        raise ToolError(f"it tried to end the program it runs in ({why}); it was kept from that") from error


def _is_put_away() -> bool:
    """Whether it is our own coroutine that is closed: then no task runs it."""
    try:
        return asyncio.current_task() is None
    except RuntimeError:  # there is no loop any more
        return True
