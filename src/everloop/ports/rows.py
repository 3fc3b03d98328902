"""What the store takes and gives: commits, leases, letters, and rows as they are read."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from ..core.log import Entry
from ..core.mail import Inbound, Mail, Outbound
from ..core.overrun import Account
from ..core.prompt import Usage
from .audit import AuditLine
from .budgets import Charge, Reservation

ThreadState = Literal["resting", "running", "waiting"]  # waiting: for a person's answer
OutboxState = Literal["sent", "pending", "unsure", "failed"]  # unsure: pending, but it may have arrived already
Action = Literal["none", "new", "stop", "tell"]
COUNT = "{count}"  # in the reply to a stop: how many are stopped; of a background task: its number


class Receipt(Struct, frozen=True, gc=False):
    """A letter has been taken in (or had been before: `fresh` is False). A command has its reply at once."""

    id: int
    thread: str
    fresh: bool
    reply: str | None = None
    begun: int = 0  # its turn is already running, and nobody needs to be woken: the position at which it began


class Came(Struct, frozen=True, gc=False):
    """A letter that has come before: its event, when it came, the seq at which its turn ended (0: not yet; -1: it was
    a command), and whether whoever sent it has been `given` what came of it."""

    event: str
    mail: int
    thread: str
    at: float
    ended: int
    given: bool


class RecentLetter(Struct, frozen=True, gc=False):
    """A letter of a channel, and when it came. `told`: nothing of it was kept, and its author was told why."""

    event: str
    author: str
    chat: str
    at: float
    told: bool


class Lease(Struct, gc=False):
    """The right to append to a thread. Epoch 0 means that it is still to be taken, by the first commit."""

    thread: str
    epoch: int = 0
    head: int = 0


class Renewal(Struct, frozen=True):
    """What became of leases that were to be prolonged, by thread. One that is in neither is held up by somebody else's
    write: it may be tried again while the lease holds."""

    kept: frozenset[str]
    lost: frozenset[str]


class Commit(Struct, gc=False):
    """What a driver writes in one transaction.

    `entries` are appended in any case; `starts` only if no stop lies in the inbox, so that nothing starts after a
    stop has committed. `absorbed` are the letters that these entries take in. `ended` gives, for each letter whose
    turn is over, the seq of the entry that ended it. With `release` the lease is given back if no letter newer
    than `seen` has come. `posts` are letters to other threads, which are to be woken then. `taints` begin with the
    starts (or with the entries, when nothing starts), `untaints` end. What the `charges` have used is charged; what
    `reserve` asks for is held with the starts, which do not start where there is no room for it.

    With `works_for` it is written only if that is what the thread works for now (ThreadRow.spawned_by), else refused as
    Fenced: how a turn ends depends on it, and a person can send one to the background while it runs.

    `letter` comes in with this very commit: it is posted and taken at once, as the first entry (a UserSaid, which
    gets the letter's number). That is refused as Fenced when the session has another thread by now, other mail
    waits, or the event is known.
    """

    entries: Sequence[Entry] = ()
    starts: Sequence[Entry] = ()
    absorbed: Sequence[int] = ()
    ended: Sequence[tuple[int, int]] = ()
    outbox: Sequence[Outbound] = ()
    usage: "Sequence[Spent]" = ()
    timers: "Sequence[Timer]" = ()
    posts: "Sequence[Posting]" = ()
    taints: "Sequence[Taint]" = ()
    untaints: "Sequence[Untaint]" = ()
    audit: Sequence[AuditLine] = ()  # with the entries
    audit_starts: Sequence[AuditLine] = ()  # with the starts
    release: bool = False
    state: "ThreadState" = "running"
    seen: int = 0
    letter: Inbound | None = None
    charges: Sequence[Charge] = ()
    reserve: Reservation | None = None
    works_for: str | None = None


class Spent(Struct, frozen=True, gc=False):
    """What the model call of the entry at `seq` used, and who had asked for it ("": whose thread it is). `own`: with a
    key of their own."""

    seq: int
    model: str
    usage: Usage
    cost: float | None = None
    requester: str = ""
    own: bool = False


class SpentRow(Struct, frozen=True, gc=False):
    """What was used of one model on one day; `day` counts from 1970, in the time zone that was asked for."""

    day: int
    model: str
    calls: int
    usage: Usage
    cost: float  # of those calls whose price is known, to the house
    unpriced: int  # calls whose price is not
    purpose: str = ""  # what for: `titles`, `memory`; else turns, with their summaries
    own_calls: int = 0  # with keys that people have of their own
    own_cost: float = 0.0  # which they pay themselves


Grouping = Literal["day", "person", "model", "channel", "job", "tool"]


class UsedRow(Struct, frozen=True, gc=False):
    """What was used on one day by one person, model, channel, job or tool; `name` is "" for turns among jobs, and for
    the channel of what has been deleted.

    Of a tool, `calls` are calls of it, and the rest is of the answers that made them: one that calls two tools is
    counted for both."""

    day: int
    name: str
    calls: int
    usage: Usage
    cost: float  # of what has a known price, to the house
    unpriced: int  # calls of models that have none
    own_calls: int = 0  # with keys that people have of their own
    own_cost: float = 0.0  # which they pay themselves


class Timer(Struct, frozen=True):
    """A job that speaks once, `due` in so many seconds. The key makes it one job."""

    key: str
    due: float
    inbound: Inbound


class Posting(Struct, frozen=True):
    """A letter to another conversation: to the session's thread, which is made if there is none, or to the `thread`
    that is named. It is posted once per event, and not at all where the thread is gone or is another owner's.

    With `spawned_by` it begins a child: the session's thread works for that call (thread:answer:place) from its first
    letter on, under this `title`. Where something was said in it before, it is nobody's child. It goes with the starts
    of the commit: where these do not start, nothing is posted."""

    inbound: Inbound
    thread: str = ""
    spawned_by: str = ""
    title: str = ""


class Taint(Struct, frozen=True, gc=False):
    """From `began` to `ended` (None: it goes on) a call was able to write in the folder `place`.

    `key` is the call's. `outside` says that strangers' words may have told it what to write; where it is False, a
    command did so by ways that nobody sees. `command` goes on in the background after the call. Times are those of the
    machine that the folder lies on: they are compared with the times of its files.
    """

    key: str
    place: str
    began: float
    ended: float | None = None
    outside: bool = True
    command: str = ""

    @property
    def happened(self) -> bool:
        """Whether the call is over: it turned out to have worked with strangers' words."""
        return self.ended is not None or bool(self.command)


class Untaint(Struct, frozen=True, gc=False):
    """A call is over: its taint ends at `at`, or goes on with a `command` in the background. Where no stranger had a
    say, nothing is left of it."""

    key: str
    at: float
    command: str = ""


class Committed(Struct, gc=False):
    head: int
    epoch: int
    started: bool
    released: bool
    newest: int  # the highest id of the letters that still lie in the inbox
    mail: int = 0  # the number of the letter that came in with it
    full: Account | None = None  # there was no room in it for what was to be reserved, so that nothing has started


class Whose(Struct, frozen=True):
    """Threads that belong to these principals, or whose sessions lie in these channels."""

    principals: tuple[str, ...]
    channels: tuple[str, ...] = ()


class ThreadRow(Struct, frozen=True, gc=False):
    id: str
    session: str
    owner: str
    head: int
    folded: int  # the seq of the last Compacted entry; reading starts there
    state: ThreadState
    holder: str  # who has the lease, or had it and did not give it back
    epoch: int = 0  # of the lease that was taken last
    spawned_by: str = ""  # of a child: the call that it works for, as thread:answer:place


class Opened(Struct, frozen=True, gc=False):
    """A thread as a driver needs it: the entries after the asked position (or the last compaction), the mail."""

    row: ThreadRow
    entries: list[Entry]
    first: int  # the seq of the first entry in `entries`
    mail: list[Mail]


class OutboxRow(Struct, frozen=True, gc=False):
    id: int
    thread: str
    outbound: Outbound
    attempts: int  # sends that have begun, this one included
    unsure: int  # so many earlier sends may have arrived
    age: float  # seconds since it was queued
    parts: tuple[str, ...] = ()  # the receipts of the parts that have arrived, the first ones
    trying: float = 0.0  # seconds since sending it was begun, or begun again by a person
    salt: str = ""  # before the keys of its parts, in a restored store: the original gave the same to other answers


class Undelivered(Struct, frozen=True):
    """An answer that has not arrived, or not as a whole: it is tried again at `due`, or it has been given up."""

    id: int
    channel: str
    chat: str
    state: Literal["pending", "sending", "failed"]
    attempts: int
    queued: float
    due: float
    why: str  # it did not arrive the last time
    text: str
    polled: bool = False  # nobody sends it: a bot fetches it


class TokenRow(Struct, frozen=True):
    """A token as a list shows it: what it is called, what it may do, until when (Unix time; 0 is for ever)."""

    id: str
    owner: str
    name: str
    scopes: tuple[str, ...]
    at: float = 0.0
    until: float = 0.0
    platforms: tuple[str, ...] = ()  # whose people its bot may speak for, by name


class Known(Struct, frozen=True):
    """Whose credential it is, as the store knows them now: their role, and what the credential is good for."""

    id: str
    owner: str
    role: str
    scopes: tuple[str, ...]
    until: float = 0.0  # Unix time; 0 is for ever
    platforms: tuple[str, ...] = ()  # as they are written in keys (`keys.escaped`)
