"""Where we are: which turn the running task is at, for whoever writes something down about it."""

from contextvars import ContextVar

from msgspec import Struct


class LogContext(Struct, frozen=True, gc=False):
    session: str
    thread: str
    turn: int


log_context: ContextVar[LogContext | None] = ContextVar("log_context", default=None)
