"""Where we are: which turn the running task is at, for whoever writes something down about it."""

from contextvars import ContextVar

from msgspec import Struct


class Scene(Struct, frozen=True, gc=False):
    session: str
    thread: str
    turn: int


scene: ContextVar[Scene | None] = ContextVar("scene", default=None)
