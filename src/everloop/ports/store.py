"""All that is kept, as one."""

from typing import TYPE_CHECKING, Protocol

from .archive import Archive
from .audit import Audit
from .backup import StoreCopies
from .budgets import Budgets
from .channel_state import StateBoxes
from .command_homes import CommandHomes
from .consolidation import Consolidations
from .credentials import Credentials
from .directory import Directory
from .erasing import Erasing
from .fact_search import FactVectors, FactWords
from .files import FileRecords
from .grants import Grants
from .heartbeat import Heartbeats
from .jobs import Jobs, Leases
from .ledger import Ledger
from .listening import ListeningStates
from .log import Log
from .mail import Arrivals, Mailroom
from .memory import Memory
from .outbox import Outgoing, SentAnswers
from .polled import Polled
from .removal import Removal
from .schedules import Firing, Schedules
from .taints import Taints
from .tasks import Tasks
from .vault import Secrets

if TYPE_CHECKING:
    from .mcp import McpPins
    from .mcp_questions import McpOpenQuestions


class Activity(Protocol):
    """How much goes on, here and in other processes. Raises StoreError."""

    running: int  # how many turns run here, as the lanes say: writes of many are gathered, those of one are not

    async def changed(self) -> bool:
        """Whether another process may have written since the last call."""
        ...


class Store(
    Log,
    Mailroom,
    Arrivals,
    Outgoing,
    SentAnswers,
    Polled,
    Archive,
    Removal,
    Grants,
    Taints,
    Tasks,
    Secrets,
    Ledger,
    Budgets,
    Credentials,
    Directory,
    Erasing,
    FileRecords,
    Jobs,
    Leases,
    Schedules,
    Firing,
    Heartbeats,
    ListeningStates,
    StateBoxes,
    CommandHomes,
    Memory,
    Consolidations,
    FactWords,
    FactVectors,
    Audit,
    StoreCopies,
    Activity,
    Protocol,
):
    """The truth: threads, entries, inbox, outbox, leases, jobs, users, usage. Raises StoreError.

    Whoever needs a part of it asks for that part; the whole is opened, closed and handed around by `app`."""

    holder: str  # this process's name on leases

    @property
    def mcp(self) -> "McpPins":
        """What was allowed of MCP servers, loaded by who has one."""
        ...

    @property
    def mcp_questions(self) -> "McpOpenQuestions":
        """What they ask people."""
        ...

    async def close(self) -> None: ...
