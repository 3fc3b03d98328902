"""The doors between the rooms, as Protocols. `app` hands each room what it needs through them."""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Literal, Protocol, runtime_checkable

from msgspec import Struct

from .briefing import Briefing, Situation
from .channel import Admitted, Declined, Delivered, FileRef, Hook, Incoming, Manifest, OutgoingPart
from .conversation import Conversation, Deed, Found, Recalled, Snapshot, Written
from .events import Event
from .grant import Grant
from .held import Held, Watched
from .jobs import Job, JobRow
from .log import Entry
from .mail import Address, Delivery, Inbound, Mail, Outbound, ReplyTo
from .people import Role
from .prompt import Delta, Prompt, Reply, Usage
from .rows import (
    MANY,
    Action,
    Came,
    Commit,
    Committed,
    Known,
    Lease,
    Opened,
    OutboxRow,
    OutboxState,
    Receipt,
    Renewal,
    SpentRow,
    Taint,
    ThreadRow,
    TokenRow,
    Undelivered,
)


class Clock(Protocol):
    """The time, for all that a process does later. A simulated one is handed over in its place."""

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class Provider(Protocol):
    """A source of model answers."""

    name: str

    async def reply(self, prompt: Prompt, show: Callable[[Delta], None]) -> Reply:
        """Ask once and return the whole answer; `show` is called with each piece as it arrives.

        Retries what can be retried as long as nothing has been shown. Raises ProviderError. Cancelling it
        closes the connection.
        """
        ...

    async def close(self) -> None: ...


class Embedded(Struct, frozen=True):
    """Texts as vectors, one for each, in their order. `model` is provider/model: vectors of two cannot be compared."""

    vectors: list[list[float]]
    model: str
    usage: Usage = Usage()
    cost: float | None = None  # US dollars, where the price and the number of tokens are known


class Embedder(Protocol):
    """A model that turns texts into vectors: what means the same lies close together."""

    name: str  # provider/model

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Retries what can be retried. Raises ProviderError.

        Nobody else takes note of what it cost: whoever asks in a turn commits a `Spent` for it with what came of it.
        """
        ...


class HttpAnswer(Protocol):
    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncIterator[bytes]:
        """The body, piece by piece as the network gives it. Raises HostTimeout, StreamCut."""
        ...

    async def read(self, limit: int = 1_000_000) -> bytes:
        """The body as a whole, or its first `limit` bytes, however slowly they come not much longer than the seconds of
        the request. Raises as `chunks`."""
        ...


class Http(Protocol):
    """Requests to hosts that the owner has configured. Raises HostUnreachable, HostTimeout and HostFailed.

    A GET follows redirects, but not from https to http. A host may be silent for so many `seconds`; with a `deadline`,
    a time of the event loop's clock, its answer must also have ended by then, or AnswerTimeout is raised.
    """

    def request(
        self,
        method: str,
        url: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] = {},
        seconds: float = 120.0,
        deadline: float | None = None,
    ) -> AbstractAsyncContextManager[HttpAnswer]: ...

    async def close(self) -> None: ...


class Doorbook(Protocol):
    """Who may come in through the gateway. It is given hashes only, and never a secret. Raises StoreError."""

    async def role(self, person: str) -> Role:
        """Of one of the users; whoever is none is a guest."""
        ...

    async def keep_token(self, owner: str, name: str, hash: str, scopes: Sequence[str], seconds: float = 0) -> str:
        """Returns its id, or "" when the owner has another one of this name. Without `seconds` it holds for ever."""
        ...

    async def tokens(self, owner: str) -> list[TokenRow]:
        """Those that hold, the oldest first."""
        ...

    async def forget_token(self, owner: str, name: str) -> bool:
        """By its name or id; whether there was one to forget."""
        ...

    async def known_token(self, hash: str) -> Known | None: ...

    async def keep_login(self, owner: str, kind: Literal["password", "link"], hash: str, seconds: float = 0) -> None:
        """In place of the one that was there."""
        ...

    async def login(self, owner: str, kind: Literal["password", "link"]) -> str | None:
        """The hash that is kept, while it holds."""
        ...

    async def forget_login(self, owner: str, kind: Literal["password", "link"]) -> bool:
        """Whether there was one to forget."""
        ...

    async def use_link(self, hash: str) -> str:
        """Use up a one-time link; returns whose it was, "" if there is none."""
        ...

    async def keep_visit(self, owner: str, hash: str, page: str, seconds: float) -> str:
        """A login of a browser: the hash of its cookie, and of what its page is given. Returns its id."""
        ...

    async def known_visit(self, hash: str, *, page: bool = False) -> Known | None: ...

    async def end_visits(self, owner: str, id: str = "", *, but: str = "") -> None:
        """End one login of a browser, or all of the owner's `but` one."""
        ...


class Jobs(Protocol):
    """What is to happen later. Times are those of the store's clock. Raises StoreError."""

    async def add_job(self, job: Job) -> bool:
        """Keep it, unless there is one of this id, or was one in the last month. Raises BadSchedule."""
        ...

    async def jobs(self, owner: str) -> list[JobRow]:
        """The owner's, in the order in which they are due."""
        ...

    async def drop_job(self, owner: str, id: str) -> bool:
        """Whether there was one to drop. Work on it that has begun counts for nothing."""
        ...

    async def is_due(self, kinds: Collection[str], owner: str = "") -> bool:
        """Whether a job that speaks is to be fired, or work of these kinds to be claimed; of one owner or of all."""
        ...

    async def fire(self, owner: str = "") -> list[str]:
        """Have each job that speaks and is due post its letter, in one transaction that also sets its next time; those
        of one owner or of all. Returns the threads to wake."""
        ...

    async def claim_jobs(self, kinds: Collection[str], seconds: float, owner: str = "", limit: int = 1) -> list[JobRow]:
        """Take work that is due, for so long: nobody else has it until then, unless this process is gone."""
        ...

    async def prolong_job(self, row: JobRow, seconds: float) -> bool:
        """False when the claim has run out, or the job was dropped: whoever works on it has to stop."""
        ...

    async def settle_job(self, row: JobRow, result: str, again_in: float | None = None) -> bool:
        """Say what came of a claimed job, which is done with that, or is to be tried `again_in` so many seconds. False
        when another has claimed it since, or it was dropped: then nothing was written."""
        ...


class Leases(Protocol):
    """What one process does for all, by a name. Raises StoreError."""

    async def hold(self, name: str, seconds: float, under: str = "") -> bool:
        """Take or prolong the lease; not while another holds `under`."""
        ...

    async def let_go(self, name: str) -> None:
        """Give it back, if it is ours."""
        ...


class Store(Doorbook, Jobs, Leases, Protocol):
    """The truth: threads, entries, inbox, outbox, leases, jobs, users, usage. Raises StoreError."""

    holder: str  # this process's name on leases
    running: int  # how many turns run here, as the lanes say: writes of many are gathered, those of one are not

    async def receive(self, inbound: Inbound) -> Receipt:
        """Commit a letter to the inbox of the session's current thread, which is made if there is none; with it, where
        its channel resumes."""
        ...

    async def resume(self, channel: str) -> str:
        """Where a channel goes on: what its last letter said; "" if none has."""
        ...

    async def command(self, inbound: Inbound, action: Action | Deed, reply: str, otherwise: str = "") -> Receipt:
        """Commit a command, its effect and its reply in one, once per event.

        `new` moves the session to a new thread; `stop` puts a stop into the inbox, or answers `otherwise` when
        there is nothing to stop; `tell` puts the letter itself into the inbox; `none` only replies. A deed is done,
        or `otherwise` is the reply. A branch with a letter has no reply yet: its turn is the answer.
        """
        ...

    async def perform(self, owner: str, session: str, deed: Deed) -> bool:
        """Do something with the owner's conversations; all of it or nothing. Says whether it could be done.

        A branch needs its parent, and the thread that the session leaves, to be at rest: neither running nor waiting
        for anyone, without mail. A session goes back only to threads of its own. The letter of a branch is not posted.
        """
        ...

    async def conversations(
        self, owner: str, *, session: str = "", id: str = "", archived: bool = False, limit: int = MANY
    ) -> list[Conversation]:
        """The owner's conversations in which something happened, the latest first.

        Of one session or all, those whose id begins with `id`, with the archived ones or without.
        """
        ...

    async def history(self, thread: str, after: int = 0, limit: int = MANY) -> list[Written]:
        """Entries with their places and times; what stands before a branch began is read from its parents."""
        ...

    async def folded(self, thread: str, until: int) -> int:
        """The seq of the last Compacted entry up to there, in the thread or its parents; 0 if there is none."""
        ...

    async def search(
        self, owner: str, words: str, *, thread: str = "", session: str = "", limit: int = 20
    ) -> list[Found]:
        """Where these words stand in the owner's conversations, or in one thread and what it branched from.

        Best first: all the words, else words that begin so, else any of them, the rarest first; in one thread these
        follow in any case, for there a whole question is a query. Any text is. What a branch shares with its parent is
        told once: of that thread when one is named, else of the one that is gone on with.
        """
        ...

    async def recall(self, thread: str, words: Sequence[str], until: int, limit: int) -> Recalled:
        """What a thread and those it branched from hold of these words, in so many entries up to one. Quick, for it is
        asked in the middle of a turn: of entries that were never searched some may not be looked at yet."""
        ...

    async def snapshots(self, owner: str) -> list[Snapshot]:
        """The latest first."""
        ...

    async def files_named(self) -> set[str]:
        """Every file that is named anywhere: in entries of all threads, in letters, answers and jobs. Each by the
        first twelve digits of its hash, which is the least by which it can be asked for."""
        ...

    async def open(self, thread: str, after: int = 0) -> Opened: ...

    async def mail(self, thread: str) -> list[Mail]: ...

    async def read(self, thread: str, after: int = 0, limit: int = MANY) -> list[Entry]:
        """The entries of `history`."""
        ...

    async def session(self, key: str) -> ThreadRow | None: ...

    async def latest(self, owner: str) -> ThreadRow | None:
        """The owner's most recently active session."""
        ...

    async def named(self, beginning: str, limit: int = 2) -> list[str]:
        """The ids of threads that begin so."""
        ...

    async def commit(self, lease: Lease, commit: Commit) -> Committed:
        """Append, fenced. Takes the lease if `lease.epoch` is 0. Raises Fenced; then nothing was written.

        A lease that has run out but was not taken still lets results in, but starts nothing: that raises Fenced.
        """
        ...

    async def renew(self, leases: Sequence[Lease]) -> Renewal:
        """Prolong what is still ours. An expired lease is never renewed. Nothing else that is asked of the store holds
        this up, and one that cannot be prolonged now holds up no other."""
        ...

    async def give_back(self, lease: Lease) -> None:
        """Release in the middle of a turn: a clean shutdown, which does not count as a crash.

        Epoch 0 releases whatever this process holds of the thread: the commit that was to take it broke off.
        """
        ...

    async def ended(self, mail: int) -> int:
        """The seq at which the turn that took this letter ended, or 0 while it has not."""
        ...

    async def unfinished(self, thread: str) -> list[int]:
        """The letters of people whose turn is not over, in order."""
        ...

    async def origins(self, mails: Sequence[int]) -> dict[int, str]:
        """The events that these letters came with."""
        ...

    async def came(self, channel: str, event: str) -> bool:
        """Whether a letter of this event has come."""
        ...

    async def newest(self, channel: str, first: str, last: str) -> Came | None:
        """Of the letters of a channel whose events lie between these two, both of one length, the one with the last."""
        ...

    async def arrivals(self, mails: Sequence[int]) -> dict[int, float]:
        """When these letters came in."""
        ...

    async def deliveries(self, keys: Sequence[str]) -> dict[str, Delivery]:
        """What has become of the answers with these keys, as far as they were put into the outbox."""
        ...

    async def waiting(self) -> list[str]:
        """Threads that have work and no living holder."""
        ...

    async def stopping(self, threads: Sequence[str]) -> list[str]:
        """Those of the threads in whose inbox a stop lies."""
        ...

    async def due(self, channel: str, limit: int = 100) -> list[OutboxRow]:
        """Claim what may be sent now, in order, one row a chat; each is marked `sending` before any I/O."""
        ...

    async def settle(self, row: int, state: OutboxState, receipt: str = "", again_in: float = 0.0) -> None:
        """Say what became of a claimed row."""
        ...

    async def keep_parts(self, row: int, receipts: Sequence[str]) -> bool:
        """So many parts of a claimed row have arrived; there is time for the next. False: it is another's by now."""
        ...

    async def reply_to(self, outbound: Outbound) -> ReplyTo:
        """What its channel said of the letter that is answered, or of the last one of that conversation."""
        ...

    async def undelivered(self) -> list[Undelivered]:
        """What could not be sent, in order: given up, or to be tried again."""
        ...

    async def send_again(self, row: int) -> bool:
        """Try again, now and as long as anything, what was given up or waits to be tried. Whether there was such a
        one."""
        ...

    async def drop(self, row: int) -> bool:
        """Never send what has been given up, or waits to be tried again. Whether there was such a one."""
        ...

    async def unshown(self, chat: str) -> list[Outbound]:
        """What waits for someone at this address (a session key) and has not been sent, in order."""
        ...

    async def acknowledge(self, keys: Sequence[str], given: Sequence[int] = ()) -> None:
        """Say that these answers have been shown: they need not be sent any more. `given` are letters whose own senders
        have what came of them."""
        ...

    async def asking(self, session: str = "") -> list[ThreadRow]:
        """Threads that wait for a person's answer, of one session or of all; the oldest first."""
        ...

    async def keep_grant(self, grant: Grant) -> None:
        """Keep it, unless one of this name is there already."""
        ...

    async def grants(self, user: str = "") -> list[Grant]:
        """Those that still hold, with the runs that are left; of one user or of all."""
        ...

    async def use_grant(self, id: str) -> bool:
        """Use up one run. False when none is left, or its time is over."""
        ...

    async def forget_grant(self, id: str) -> bool:
        """Whether there was one to forget."""
        ...

    async def taints(self, place: str, at: float | None = None, slack: float = 0.02) -> list[Taint]:
        """Those that go on; or those of strangers in which the moment `at` lies, such as the ctime of a file, give or
        take `slack` seconds: the clock of a file system is a coarse one. One that goes on with a command in the
        background may be over by now, as the sandbox knows."""
        ...

    async def end_taint(self, key: str, at: float) -> None:
        """That of a command in the background, which is over."""
        ...

    async def merge_taints(self, place: str, most: int) -> None:
        """Keep at most so many that are over; those that are close become one."""
        ...

    async def watched(self, place: str) -> list[Watched]:
        """The files of a folder that stand in prompts."""
        ...

    async def keep_watched(
        self,
        place: str,
        rows: Sequence[Watched],
        *,
        free: bool = False,
        question: Outbound | None = None,
    ) -> bool:
        """Keep what has become of such files, each in place of the version before, and send a question about the first.
        False if somebody was quicker with one of them, or, with `free`, while a taint lasts there."""
        ...

    async def session_of(self, thread: str) -> str:
        """The session of one of the owner's threads; "" for anybody else's."""
        ...

    async def keep_secret(self, owner: str, name: str, box: bytes) -> None:
        """Keep a closed box under a name, in place of the one that was there."""
        ...

    async def secret(self, owner: str, name: str) -> bytes | None: ...

    async def secrets(self, owner: str) -> list[str]:
        """The names of the owner's boxes, in order."""
        ...

    async def forget_secret(self, owner: str, name: str) -> bool:
        """Whether there was one to forget."""
        ...

    async def spent(self, since: float = 0, thread: str = "", offset: float = 0) -> list[SpentRow]:
        """What was used, by day and model, of all threads or one. `offset` is the time zone's, in seconds."""
        ...

    async def count_call(self, guest: str, day: int, each: int, all: int) -> bool:
        """Count one more model call of a guest on a day (since 1970), if there were fewer than `each` of theirs and
        fewer than `all` of all guests. Whether it was counted."""
        ...

    async def changed(self) -> bool:
        """Whether another process may have written since the last call."""
        ...

    async def close(self) -> None: ...


class PromptFiles(Protocol):
    """The files that stand in prompts, with what is accepted and what is held. Raises StoreError."""

    place: str
    unasked: bool  # whether something is held that nobody was told of

    def expect_more(self) -> None:
        """A command goes on that may write them: the next look asks whether it is over."""
        ...

    async def look(self, *, closely: bool = False) -> None:
        """Judge what has changed. `closely`: also where times and sizes say that nothing has."""
        ...

    async def merge(self, place: str) -> None:
        """Keep the taints of a workspace from growing without end."""
        ...

    async def held(self) -> list[Held]: ...

    async def due(self, thread: str) -> list[Held]:
        """What somebody is to be told of, now that this thread rests."""
        ...

    async def tell(self, held: Held, question: Outbound | None) -> bool:
        """Keep it as asked, with the question to be sent, if there is anywhere to send it to.

        False if somebody was quicker, or it is held no more."""
        ...

    async def decide(self, held: Held, allow: bool) -> str:
        """Accept it, or put back what was accepted; says what was done. Raises MailRefused when it is not any more
        what was shown."""
        ...


class Vault(Protocol):
    """The keys and tokens of one owner, encrypted wherever they lie. Raises VaultLocked and StoreError."""

    async def get(self, name: str) -> str | None:
        """The value of that name, or None if there is none; only then is no key needed."""
        ...

    async def set(self, name: str, value: str) -> None: ...

    async def names(self) -> list[str]: ...

    async def forget(self, name: str) -> bool:
        """Whether there was one to forget. It needs no key."""
        ...


class Feed(Protocol):
    """Events on their way to one reader, who is cut off when too slow."""

    def __aiter__(self) -> AsyncIterator[Event]: ...

    def beating(self, seconds: float) -> AsyncIterator[Event | None]:
        """The same, and None whenever nothing has come for so long."""
        ...

    def end(self) -> None:
        """Nothing comes after what has come."""
        ...


class People(Protocol):
    """Who someone is to the agent, now: one truth for the gateway, tools, commands and approvals."""

    async def role(self, person: str) -> Role:
        """Whom nobody has introduced is a guest. Raises StoreError."""
        ...


class Briefer(Protocol):
    """Makes what a model is told in a turn."""

    async def brief(self, situation: Situation) -> Briefing:
        """The same value as long as it says the same. Raises StoreError."""
        ...


class Bus(Protocol):
    """Hints only; losing all of it costs latency, never a message."""

    def wake(self, thread: str) -> None: ...

    def cancel(self, thread: str) -> None: ...

    def publish(self, event: Event) -> None: ...

    def hears(self, thread: str) -> bool:
        """Whether anyone would be told of an event of this thread; only the pieces of an answer are kept for later."""
        ...

    def subscribe(self, thread: str = "") -> AbstractContextManager[Feed]:
        """Events of one thread, or of all; begins with the running answer so far, as one chunk."""
        ...

    def listen(self, on_wake: Callable[[str], None], on_cancel: Callable[[str], None]) -> None:
        """Be told of wakes and cancels; there is one listener, the lanes."""
        ...


class Deliver(Protocol):
    """What a channel is given: it says what has come in, and acknowledges it on its platform afterwards."""

    async def __call__(self, incoming: Incoming, resume: str = "") -> Delivered:
        """Commit it, and with it where to resume. Raises StoreError: then it must not be acknowledged."""
        ...


class Channel(Protocol):
    """A way to speak with people. What else it can do are the Protocols that follow: it has those methods, or not."""

    @property
    def manifest(self) -> Manifest: ...

    async def run(self, deliver: Deliver, resume: str) -> None:
        """Listen, from where `resume` says ("" at first). It is begun again after a while when it raises; when it
        returns, there is nothing to listen to."""
        ...

    async def send(self, part: OutgoingPart) -> str:
        """Deliver and return the platform's id. Raises ChannelDown when surely nothing was delivered, Undeliverable
        when it never will be; after any other error it may have been."""
        ...


@runtime_checkable
class Renders(Protocol):
    """A channel that makes its own parts of an answer; what any other sends is one part."""

    def render(self, outbound: Outbound) -> tuple[str, ...]:
        """The texts of its parts, at least one; the same of the same answer, whenever it is asked. Each is a few words
        shorter than the limit: `(delayed)` and the like may have to stand before it."""
        ...


@runtime_checkable
class Previews(Protocol):
    """A channel that can show a draft (`traits.preview`). What fails is not tried again."""

    async def preview(self, address: Address, shown: str, text: str) -> str:
        """Show it in place of what it returned before (`shown`, "" at first); returns what that is called. An empty
        text takes it away: the answer follows, or the turn is over."""
        ...


@runtime_checkable
class Signals(Protocol):
    """A channel that can say what goes on (`traits.typing`). What fails is not tried again."""

    async def signal(self, address: Address, what: Literal["typing", "done"]) -> None: ...


@runtime_checkable
class Fetches(Protocol):
    """A channel whose messages come with files."""

    async def fetch(self, ref: FileRef, limit: int) -> tuple[str, bytes]:
        """Its name and its bytes. Raises ChannelDown, or Undeliverable for more bytes than the limit."""
        ...


@runtime_checkable
class Hooked(Protocol):
    """A channel that is called by its platform, through the gateway."""

    def hooks(self, deliver: Deliver) -> Sequence[Hook]: ...


class Admission(Protocol):
    """Who may speak on a channel, decided before anything is committed."""

    async def admit(self, manifest: Manifest, incoming: Incoming) -> Admitted | Declined:
        """Raises StoreError."""
        ...


class KeptFile(Struct, frozen=True):
    """A file that lies there: in whose folder, and when it was put there the last time."""

    owner: str
    ref: str
    size: int
    at: float


class Files(Protocol):
    """Whole tool results, attachments, produced files; content-addressed."""

    async def put(self, owner: str, content: bytes, name: str) -> str: ...

    async def get(self, owner: str, ref: str) -> bytes: ...
