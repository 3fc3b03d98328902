"""How the whole house stands, as `everloop status` and GET /api/status tell it."""

from typing import Protocol

from msgspec import Struct


class AnsweringModel(Struct, frozen=True):
    """Who answers by default. `state` is found without a call that costs anything: its list of models was asked for."""

    name: str
    state: str
    why: str = ""


class RunningGateway(Struct, frozen=True):
    """Whether a gateway of this home runs on this machine, and where; `pid` is 0 where none does."""

    running: bool
    address: str = ""
    pid: int = 0


class ChannelHealth(Struct, frozen=True):
    name: str
    state: str
    why: str
    waiting: int  # answers to be sent
    given_up: int


class DueSchedule(Struct, frozen=True):
    name: str
    owner: str
    at: float  # Unix time


class McpStanding(Struct, frozen=True):
    """A server as the settings have it; `wrong` is why it cannot be used."""

    name: str
    enabled: bool
    wrong: str


class MonthSpent(Struct, frozen=True):
    """Of everybody, since the first of this month by this machine's clock. `limit` is the owner's budget in dollars,
    if there is one; `unpriced` are calls whose price is not known."""

    calls: int
    tokens: int
    cost: float
    unpriced: int
    limit: float | None = None


class DiskUse(Struct, frozen=True):
    """Bytes."""

    home: int
    free: int


class LoggedError(Struct, frozen=True):
    """An error of the last seven days; `error` is the id that somebody was told, for `everloop logs --error`."""

    time: str
    message: str
    error: str


class HouseStatus(Struct, frozen=True, kw_only=True):
    """`problems` are sentences about what is broken, with what to do; none where all is well."""

    version: str
    home: str
    store: str
    model: AnsweringModel
    gateway: RunningGateway
    channels: list[ChannelHealth]
    schedules: list[DueSchedule]  # the next five
    schedules_to_come: int
    tasks_open: int
    mcp: list[McpStanding]
    facts: int
    month: MonthSpent
    disk: DiskUse
    errors: list[LoggedError]  # the last five
    problems: list[str]


class TellsStatus(Protocol):
    async def house_status(self) -> HouseStatus:
        """Raises SettingsError, StoreError."""
        ...
