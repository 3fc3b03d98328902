"""Where we are: which turn the running task is at, for whoever writes something down about it."""

from contextvars import ContextVar
from typing import NamedTuple


class Scene(NamedTuple):
    session: str
    thread: str
    turn: int


scene: ContextVar[Scene | None] = ContextVar("scene", default=None)
