"""The store but for its hot path, once for both databases: a database gives it three ways to be asked (database.py).

What runs in every turn (receive, open, commit, renew, settle, acknowledge) each database does in its own quick way.
"""

from functools import cached_property
from typing import TYPE_CHECKING

from .archive import ArchiveRows
from .arrivals import ArrivalRows
from .audit import AuditRows
from .budgets import BudgetRows
from .channel_rows import ChannelRows
from .channel_state import ChannelStateRows
from .command_homes import CommandHomeRows
from .credentials import CredentialRows
from .deleting import DeletedRows
from .directory import DirectoryRows
from .erasing import ErasingRows
from .expired import ExpiredRows
from .fact_vectors import FactVectorRows
from .file_records import FileRecordRows
from .grants import GrantRows
from .heartbeat import HeartbeatRows
from .history import HistoryRows
from .inbox import InboxRows
from .jobs import JobRows
from .ledger import LedgerRows
from .listening import ListeningRows
from .memory import MemoryRows
from .outbox import OutboxRows
from .polled import PolledRows
from .restored import RestoredRows
from .schedules import ScheduleRows
from .search import SearchRows
from .secrets import SecretRows
from .taints import TaintRows
from .tasks import TaskRows

if TYPE_CHECKING:
    from ..ports.mcp import McpPins
    from ..ports.mcp_questions import McpOpenQuestions


class ColdStore(
    HistoryRows,
    InboxRows,
    ArrivalRows,
    OutboxRows,
    PolledRows,
    ChannelRows,
    ListeningRows,
    ChannelStateRows,
    ArchiveRows,
    SearchRows,
    JobRows,
    ScheduleRows,
    HeartbeatRows,
    TaintRows,
    TaskRows,
    GrantRows,
    SecretRows,
    LedgerRows,
    BudgetRows,
    CredentialRows,
    DirectoryRows,
    ExpiredRows,
    FileRecordRows,
    DeletedRows,
    AuditRows,
    ErasingRows,
    MemoryRows,
    FactVectorRows,
    CommandHomeRows,
    RestoredRows,
):
    """What a store does that no turn waits for."""

    @cached_property
    def mcp(self) -> "McpPins":
        from .mcp_pins import McpPinRows  # where there is no server, nothing of MCP is loaded

        return McpPinRows(self._ask, self._glance, self._change, self._do)

    @cached_property
    def mcp_questions(self) -> "McpOpenQuestions":
        from .mcp_questions import McpQuestionRows

        return McpQuestionRows(self._ask, self._change, self._do, self.holder, self._alive)
