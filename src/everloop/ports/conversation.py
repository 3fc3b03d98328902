"""Conversations as people look back on them: threads that can be listed, searched, gone back to, branched.

A thread's log is never edited. To go back, or elsewhere, is to branch: a new thread begins with what the old one held
up to some entry, under the same numbers, and the old one stays as it is.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from ..core.log import Entry
from ..core.mail import Letter
from .rows import Spent


class Conversation(Struct, frozen=True, gc=False):
    """A thread as a list shows it. `title` is what it was named, or else the beginning of the first thing said."""

    id: str
    session: str
    title: str
    created: float
    active: float  # when something last happened in it
    messages: int  # what people and the model have said
    head: int
    archived: bool = False
    parent: str = ""  # the thread that it branched from, after its entry `parent_seq`
    parent_seq: int = 0
    current: bool = False  # whether its session is at it now
    state: Literal["resting", "running", "waiting"] = "resting"  # waiting: for a person's answer
    pinned: bool = False  # it stands before the others
    named: bool = False  # the title was given to it; else it is what was said first


class Written(Struct, frozen=True, gc=False):
    """An entry with its place and time."""

    seq: int
    at: float
    entry: Entry


class SearchHit(Struct, frozen=True, gc=False):
    """Where a search has found something: `who` is `user`, `assistant` or `tool`, `text` what stands around it;
    `strange` says that a stranger has written it."""

    thread: str
    seq: int
    at: float
    who: str
    text: str
    strange: bool = False


class Recalled(Struct, frozen=True, gc=False):
    """How much each word tells that was looked for, and the entries that hold the most telling ones, best first."""

    weights: dict[str, float] = {}
    entries: list[Written] = []


class Snapshot(Struct, frozen=True, gc=False):
    """A place in a thread that someone has given a name."""

    name: str
    thread: str
    seq: int
    at: float = 0.0


class Deletion(Struct, frozen=True):
    """What went with conversations that were deleted for good: their `threads`, with the versions that they stood for
    and what worked for them; the `sessions` that were at them, where the next message begins another one; `jobs` that
    were to speak there. `branches` are conversations that had branched from them, and stay."""

    threads: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    entries: int = 0
    jobs: int = 0
    branches: tuple[str, ...] = ()


class Leftovers(Struct, frozen=True):
    """What deleted threads may have left outside of the tables: files, by the first twelve digits of their hashes, with
    the time at which each was last named."""

    threads: tuple[str, ...]
    files: dict[str, float]


class Branch(Struct, frozen=True):
    """A new thread `id` that holds `entries` from `first` on, written at `times` (or now).

    It continues `parent` after its entry `at`, or comes from elsewhere (no parent). The session is moved to it unless
    it is to `stay`. With `head`, the parent may not have grown beyond that. `letter` is put into its inbox at once.
    """

    id: str
    entries: Sequence[Entry] = ()
    first: int = 1
    times: Sequence[float] = ()
    parent: str = ""
    at: int = 0
    head: int = 0
    title: str = ""
    created: float = 0.0
    stay: bool = False
    replaces: bool = False  # the parent is archived: this stands for it
    letter: Letter | None = None


class ResumeThread(Struct, frozen=True):
    """The session goes back to one of its own threads."""

    thread: str


class Rename(Struct, frozen=True):
    thread: str
    title: str


class GiveTitle(Struct, frozen=True):
    """Name a conversation that nobody has named, with what a model has made of its beginning, and write down what that
    took, whatever comes of it. A person's own title is never overruled. Once per `job`, however often it is said."""

    thread: str
    title: str
    spent: Spent  # of no entry: its `seq` is 0
    job: str


class ArchiveThread(Struct, frozen=True):
    """Take a conversation out of the list, or with `archived` false back into it. It can still be found."""

    thread: str
    archived: bool = True


class PinThread(Struct, frozen=True):
    """Let a conversation stand before the others in the list, or with `pinned` false among them. What is archived and
    pinned is taken out of the archive by it."""

    thread: str
    pinned: bool = True


class Mark(Struct, frozen=True):
    """Give a place in a thread a name, in place of what had that name before."""

    name: str
    thread: str
    seq: int


class RunningTurn(Struct, frozen=True):
    """The turn of a thread that took the letter `mail`, or will; what it is called as a task, and when it began."""

    thread: str
    mail: int
    title: str
    since: float


class SendToBackground(Struct, frozen=True):
    """A turn of the session's thread goes on in the background, as it runs; the session moves on to the `front`, a
    branch from before it. Refused where the turn is over, or the session is elsewhere."""

    turn: RunningTurn
    front: Branch


class BeginInBackground(Struct, frozen=True):
    """A `branch` begins to work at its letter, behind the thread that the session is at and stays at."""

    branch: Branch
    event: str  # of the letter


class BringToFront(Struct, frozen=True):
    """The session goes on with a thread of its own that is in the background. The turn that runs where it was goes on
    in the background in its place."""

    thread: str
    left: RunningTurn | None = None


BackgroundDeed = SendToBackground | BeginInBackground | BringToFront
Deed = Branch | ResumeThread | Rename | GiveTitle | ArchiveThread | PinThread | Mark | BackgroundDeed
