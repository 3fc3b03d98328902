"""What the gateway needs of the everloop it stands in front of. An open `everloop.Agent` is all of it; tests may
bring another.

The gateway does not know how turns are driven: it puts letters in, listens to what happens, and reads the store.
"""

from asyncio import Future
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol

from ..core.mail import Inbound
from ..core.message import Part
from ..core.people import Role
from ..core.tool import ToolSpec
from ..core.turn import Finished
from ..ports import (
    Activity,
    Archive,
    Arrivals,
    Audit,
    Clock,
    Credentials,
    Directory,
    Feed,
    FileRecords,
    Files,
    Ledger,
    Log,
    Mailroom,
    Outgoing,
)
from ..ports.channel import Hook, Traits
from ..ports.events import Answer, Event
from ..ports.jobs import TaskState
from ..ports.permission import Allowance, Approval, Grant
from ..ports.polled import PolledAnswer, PolledPlaces, PolledReceipt
from ..ports.rows import Receipt
from ..ports.tasks import Tasks
from ..ports.tools import Result

Again = Callable[[], Awaitable[Inbound | None]]
Admit = Callable[[], Awaitable[None]]  # raises what the client is to be told


class LetterStore(Log, Mailroom, Arrivals, Archive, Directory, Protocol):
    """What is kept of letters, of the turns that they make, and of who writes them."""


class GatewayStore(LetterStore, Outgoing, Credentials, Ledger, Audit, FileRecords, Tasks, Activity, Protocol):
    """What the gateway reads and writes: no grants, secrets, taints or jobs."""


class RunningTask(Protocol):
    """Of the gateway's, under the supervisor."""

    async def end(self) -> None:
        """When it returns, nothing of it runs any more."""
        ...


class KnowsPlaces(Protocol):
    """Which channels there are, and what time it is."""

    @property
    def traits(self) -> Mapping[str, Traits]:
        """Of every channel that is known here, by its name: the house's own doors, and those that were installed."""
        ...

    @property
    def clock(self) -> Clock:
        """The time by which everything is kept; connections and their limits go by real time."""
        ...


class FindsModels(Protocol):
    """By name."""

    async def find_model(self, name: str) -> str:
        """What a model is found by again, "" being the one of the settings. Raises ModelMissing."""
        ...


class EnclosesFiles(Protocol):
    """Makes the parts of messages that name files."""

    @property
    def files(self) -> Files: ...

    async def enclose(self, name: str, data: bytes, owner: str) -> Part:
        """Keep a file that comes with a message, and make the part that names it. Raises MailRefused."""
        ...

    async def enclose_kept(self, name: str, ref: str, owner: str) -> Part:
        """As `enclose`, for a file that the owner has already. Raises MailRefused."""
        ...


class SignsLinks(Protocol):
    """To files, which hold for a while."""

    @property
    def link_seconds(self) -> int:
        """For how long a signed link to a file holds."""
        ...

    async def link_key(self) -> bytes | None:
        """By which links to files are signed; None where the vault is locked."""
        ...


class TakesLetters(Protocol):
    """Commits what is said, and hears that its answer was shown."""

    async def tell(self, inbound: Inbound) -> Receipt:
        """Commit a letter and wake its thread, without waiting for what comes of it."""
        ...

    async def post(self, inbound: Inbound) -> Receipt:
        """Commit a letter and wake nobody yet: whoever wants to say so first calls `wake` afterwards."""
        ...

    async def acknowledge(self, keys: Sequence[str]) -> None:
        """Say that these answers have been shown: nobody else needs to."""
        ...

    def note_shown(self, key: str) -> None:
        """As `acknowledge`, in no hurry."""
        ...


class FollowsTurns(Protocol):
    """Begins them, and tells what happens in them."""

    async def begin(self, inbound: Inbound) -> tuple[Receipt, Future[Finished]] | None:
        """Commit a letter whose thread rests, in a session that is there and its owner's: its turn begins with the same
        commit, and the future is done when that is over. None, and nothing is committed, where it has to be posted."""
        ...

    def wake(self, receipt: Receipt, inbound: Inbound) -> None: ...

    async def outcome(self, receipt: Receipt, inbound: Inbound, ending: Future[Finished] | None = None) -> Answer:
        """Wake the thread of a posted letter and wait for the answer, or for the ending of its turn where that is
        known. Raises TurnFailed."""
        ...

    def events(self, thread: str = "") -> AbstractContextManager[Feed]:
        """What happens in one thread, or in all, from now on. A reader that is too slow is cut off."""
        ...


class HearsDecisions(Protocol):
    """What waits for a person, and what was allowed ahead."""

    async def approvals(self, session: str = "") -> Sequence[Approval]:
        """What waits for a person's permission, in one session or in all."""
        ...

    async def decide(
        self, approval: str, allow: bool, by: str = "owner", allowance: Allowance | None = None
    ) -> Approval:
        """Allow or deny a call; with an allowance, allow the like of it ahead. Raises MailRefused when it waits no
        longer, is not theirs to decide, or the allowance would not fit it."""
        ...

    async def grants(self) -> Sequence[Grant]:
        """What is allowed ahead."""
        ...

    async def revoke(self, grant: str, by: str = "owner") -> Grant:
        """Take back what was allowed ahead. Raises MailRefused."""
        ...


class RunsTasks(Protocol):
    """What runs for as long as it is open."""

    def tasks(self) -> Sequence[TaskState]:
        """What runs for as long as it is open: channels, the scheduler, the exporter of spans, patrols."""
        ...

    def supervise(self, name: str, work: Callable[[], Awaitable[object]]) -> RunningTask:
        """Have something of the gateway's run beside everything else; what fails is begun again."""
        ...

    async def put_down(self) -> None:
        """End what runs, now: it goes on at the next start, and whoever waits for it is told."""
        ...


class GatewayAgent(
    KnowsPlaces, FindsModels, EnclosesFiles, TakesLetters, FollowsTurns, HearsDecisions, RunsTasks, Protocol
):
    """An open everloop. What it raises is an EverloopError, whose text is a sentence for the person."""

    @property
    def model(self) -> str:
        """The provider/model that answers where nothing else was chosen."""
        ...

    @property
    def unused(self) -> Sequence[str]:
        """What is set and does nothing yet, in sentences."""
        ...

    @property
    def listening(self) -> Sequence[str]:
        """The names of the channels that are open."""
        ...

    @property
    def hooks(self) -> Mapping[str, Sequence[Hook]]:
        """What the platforms of channels call, by the channel's name."""
        ...

    @property
    def store(self) -> GatewayStore: ...


class PolledAnswers(Protocol):
    """What was said where nobody sends it, for the bots that fetch it. Raises StoreError."""

    async def take(self, places: PolledPlaces, limit: int, seconds: float) -> list[PolledAnswer]:
        """What may be delivered now, at most one of each session; nobody else has it for so many seconds."""
        ...

    async def put_back(self, answers: Sequence[PolledAnswer]) -> None: ...

    async def settle(self, places: PolledPlaces, receipts: Sequence[PolledReceipt]) -> list[str]:
        """What became of answers; returns the ids that are none of them."""
        ...


class TurnAgent(KnowsPlaces, FindsModels, EnclosesFiles, TakesLetters, SignsLinks, Protocol):
    """What the doors that take letters over HTTP need."""

    @property
    def polled(self) -> PolledAnswers: ...

    @property
    def store(self) -> LetterStore: ...

    def answering(
        self, inbound: Inbound, again: Again | None = None, admit: Admit | None = None
    ) -> AbstractAsyncContextManager[Answer]:
        """The answer; it counts as given when the block ends well. `again` is asked when this letter has come before:
        for another letter in its place, or None to go on with that one. `admit` is asked before it is posted, but not
        where it begins a turn of a session that is there and its owner's. Raises TurnFailed, MailRefused, StoreError.
        """
        ...

    def watch(
        self, inbound: Inbound, again: Again | None = None, beat: float = 0.0, admit: Admit | None = None
    ) -> AsyncGenerator[Sequence[Event]]:
        """The events of a turn, from LetterTaken to AnswerGiven, those together that have come together; none at all
        whenever nothing has come for `beat` seconds. Whoever asks for more after the last has given it. Raises what
        `answering` raises.
        """
        ...

    def models(self) -> list[str]: ...

    async def fetch(self, url: str, limit: int) -> bytes:
        """Raises MailRefused."""
        ...


class DirectTools(Protocol):
    """Tools that a program calls for a person without a turn: recall, search_history, remember, and those that the
    owner exposes."""

    async def specs(self, person: str, role: Role) -> list[ToolSpec]: ...

    async def call(self, person: str, role: Role, name: str, args: dict[str, Any]) -> Result:
        """Raises ToolError."""
        ...


class McpAgent(TurnAgent, Protocol):
    """What MCP clients are answered by."""

    @property
    def direct_tools(self) -> DirectTools: ...
