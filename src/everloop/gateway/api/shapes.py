"""What is asked of the API and what it answers, as types: requests are checked against them, and the OpenAPI document
is written from them."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from ...core.tool import Risk
from ...ports.conversation import Conversation, SearchHit
from ...ports.jobs import TaskState
from ...ports.permission import ApprovalKind
from ...ports.rows import Grouping, TokenRow, Undelivered
from ...readings.spans import TurnSpans
from ...readings.visible import UNSEEN
from ..access.credentials import MOST_PLATFORMS, PLATFORM
from ..ws.frames import Ahead

Id = Annotated[str, Meta(pattern="^[0-9a-f]{1,32}$")]
# One that ends with a : is not written as it is kept.
Key = Annotated[
    str, Meta(pattern=rf"^[^\x00-\x20:{UNSEEN}]{{1,60}}:[^\x00-\x20{UNSEEN}]{{0,119}}[^\x00-\x20:{UNSEEN}]$")
]
Seq = Annotated[int, Meta(ge=0, le=2**53)]
Limit = Annotated[int, Meta(ge=1, le=500)]
Title = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\S")]  # more than spaces
Said = Annotated[str, Meta(min_length=1, max_length=200_000)]


class ApiInput(Struct, frozen=True, forbid_unknown_fields=True):
    """Anything a client sends."""


class Nothing(ApiInput, frozen=True):
    pass


class OfSession(ApiInput, frozen=True):
    id: Id


class OfFile(ApiInput, frozen=True):
    ref: Annotated[str, Meta(pattern="^file:[0-9a-f]{8,64}$")]


class NamedFile(OfFile, frozen=True):
    """`name` is what it is saved as."""

    name: Annotated[str, Meta(min_length=1, max_length=300)]


class FileEntry(ApiInput, frozen=True):
    """The entry that tells of the file; without it, the file is one of your own."""

    thread: Id | None = None
    seq: Seq = 0


class OfApproval(ApiInput, frozen=True):
    id: Annotated[str, Meta(pattern="^[0-9A-Za-z_-]{1,64}$")]


class OfMcpQuestion(ApiInput, frozen=True):
    id: Annotated[str, Meta(pattern="^[0-9a-f]{1,16}$")]


class AnsweringMcp(ApiInput, frozen=True):
    """A line as the question's `how` shows it, or `decline`."""

    answer: Annotated[str, Meta(max_length=10_000)]


class Listing(ApiInput, frozen=True):
    """`archived` adds those that were taken out of the list; `session` asks for those of one session; `skip` leaves out
    so many of the latest, to read on. `file` asks for those that tell of a file, put away or not."""

    archived: bool = False
    file: Annotated[str, Meta(pattern="^(file:[0-9a-f]{64})?$")] = ""
    session: Annotated[str, Meta(max_length=200)] = ""
    skip: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    limit: Limit = 100


class Confirming(ApiInput, frozen=True):
    """`confirm` is the whole id, once more."""

    confirm: Id


class Searching(ApiInput, frozen=True):
    q: Annotated[str, Meta(min_length=1, max_length=400)]
    limit: Limit = 30


class Paging(ApiInput, frozen=True):
    """`after` goes forward from an entry, `before` back from one; without either, the last ones are told."""

    after: Seq | None = None
    before: Seq | None = None
    limit: Limit = 200


class UsageQuery(ApiInput, frozen=True):
    """`offset` is the time zone's, in seconds east of UTC; `who` is a person's id, for whoever may see all."""

    days: Annotated[int, Meta(ge=1, le=3650)] = 30
    offset: Annotated[int, Meta(ge=-50_400, le=50_400)] = 0
    by: Grouping = "model"
    who: Annotated[str, Meta(max_length=200)] = ""


class Naming(ApiInput, frozen=True):
    name: Annotated[str, Meta(max_length=200)] = "file"


class WorkspacePath(ApiInput, frozen=True):
    path: Annotated[str, Meta(min_length=1, max_length=600)]


class FolderQuery(ApiInput, frozen=True):
    """`path` is the workspace itself unless it says more. `hidden` adds names that begin with a dot."""

    path: Annotated[str, Meta(max_length=600)] = ""
    hidden: bool = False
    skip: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 500


class Uploading(WorkspacePath, frozen=True):
    """Without `replace`, a file of that name stays as it is."""

    replace: bool = False


class Changing(ApiInput, frozen=True):
    title: Title | None = None
    archived: bool | None = None
    pinned: bool | None = None


class Forking(ApiInput, frozen=True):
    """`at` is the last entry of the copy; `session` the place that goes on with it. With `replaces` the copy stands for
    it: it is archived, and an earlier version of the copy."""

    at: Seq | None = None
    session: Key | None = None
    replaces: bool = False


class Moving(ApiInput, frozen=True):
    session: Key | None = None


class Editing(ApiInput, frozen=True):
    content: Said


class Deciding(ApiInput, frozen=True):
    """`ahead` allows further calls that are like this one; all that it says must hold. Without `host`, `argv` and `any`
    it is the very same call."""

    allow: bool
    ahead: Ahead | None = None


class OfGrant(ApiInput, frozen=True):
    id: Annotated[str, Meta(pattern="^[0-9a-f]{4,32}$")]


class OfToken(ApiInput, frozen=True):
    id: Annotated[str, Meta(pattern="^[0-9a-f]{4,32}$")]


class OfOutbox(ApiInput, frozen=True):
    id: Annotated[str, Meta(pattern="^[1-9][0-9]{0,15}$")]


class Creating(ApiInput, frozen=True):
    """Without `days` it holds for ever; `platforms` are those whose people a bot with it speaks for (/message)."""

    name: Annotated[str, Meta(min_length=1, max_length=100, pattern=rf"^[^\x00-\x1f{UNSEEN}]+$")]
    scopes: Annotated[list[Literal["read", "chat", "approve", "admin"]], Meta(min_length=1, max_length=4)]
    days: Annotated[int, Meta(ge=1, le=36_500)] | None = None
    platforms: Annotated[list[Annotated[str, Meta(pattern=PLATFORM)]], Meta(max_length=MOST_PLATFORMS)] = []


class Me(Struct, frozen=True):
    """`user` is the id, `name` what people call them."""

    user: str
    name: str
    role: Literal["guest", "user", "admin", "owner"]
    scopes: list[str]
    model: str
    notice: str


class SessionList(Struct, frozen=True):
    sessions: list[Conversation]


class SessionState(Struct, frozen=True):
    session: Conversation
    state: Literal["resting", "running", "waiting"]


class SessionDeleted(Struct, frozen=True):
    """What is gone: `threads` are this conversation, earlier versions of it and what worked for it; `branches` are
    those that had branched from it, and stay."""

    id: str
    threads: tuple[str, ...]
    entries: int
    jobs: int
    branches: tuple[str, ...]


class FoundList(Struct, frozen=True):
    found: list[SearchHit]


class Entries(Struct, frozen=True):
    """`entries` as docs/log.md has them, each with its `seq` and `at`; `head` is the last seq there is."""

    thread: str
    head: int
    entries: list[dict[str, Any]]


class Traces(Struct, frozen=True):
    """Turns as spans, which are named and described as OpenTelemetry does."""

    turns: list[TurnSpans]


class Moved(Struct, frozen=True):
    """Where the session goes on, and what is said about it."""

    thread: str
    session: str
    reply: str = ""


class ApprovalShown(Struct, frozen=True):
    """`choices` are the words by which the like of it can be allowed ahead: see `ahead`. `answerable`: by who asks."""

    id: str
    session: str
    requester: str
    tool: str
    text: str
    risk: Risk
    until: float
    kind: ApprovalKind = "call"
    choices: tuple[str, ...] = ()
    answerable: bool = True


class McpQuestionShown(Struct, frozen=True):
    """What an MCP server asks whoever reads this, and nobody else; `message` and `fields` are its words, one field a
    line, and `how` is what an answer looks like."""

    id: str
    session: str
    server: str
    message: str
    fields: list[str]
    how: str


class ApprovalList(Struct, frozen=True):
    """`questions` wait for an answer, and not for a permission."""

    approvals: list[ApprovalShown]
    questions: list[McpQuestionShown] = []


class McpToldAnswer(Struct, frozen=True):
    told: str


class Decided(Struct, frozen=True):
    """`grant` is the name of what was allowed ahead."""

    id: str
    allow: bool
    grant: str | None = None


class GrantShown(Struct, frozen=True):
    """What is allowed ahead: `allowed` says all of it, `call` is the call that it was given with. Without `runs`, as
    often as it comes."""

    id: str
    user: str
    by: str
    tool: str
    allowed: str
    risk: str
    runs: int | None
    until: float
    thread: str
    call: str


class GrantList(Struct, frozen=True):
    grants: list[GrantShown]


class UsageRow(Struct, frozen=True):
    """`name` is what it is told by, `label` how a person is called. By model, `purpose` is `titles` for calls that have
    named conversations, `memory` for those that have consolidated them, and empty for those of turns. By tool, `calls`
    are those of the tool, and the rest is of the answers that made them. `cost` is the house's; `own_cost` is what
    people have paid with keys of their own, for `own_calls` of the calls."""

    day: str
    name: str
    model: str
    calls: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    cost: float
    unpriced: int
    purpose: str = ""
    label: str = ""
    own_calls: int = 0
    own_cost: float = 0.0


class UsageRows(Struct, frozen=True):
    since: str
    days: int
    rows: list[UsageRow]


class CommandWord(Struct, frozen=True):
    """What may follow a command, or the command itself: `takes` is what follows it."""

    name: str
    help: str
    takes: str = ""


class CommandShown(CommandWord, frozen=True):
    words: list[CommandWord] = []


class CommandList(Struct, frozen=True):
    commands: list[CommandShown]


class TokenList(Struct, frozen=True):
    tokens: list[TokenRow]


class OutboxList(Struct, frozen=True):
    outbox: list[Undelivered]


class TaskList(Struct, frozen=True):
    tasks: Sequence[TaskState]


class OutboxChanged(Struct, frozen=True):
    id: int


class NewToken(Struct, frozen=True):
    id: str
    name: str
    token: str


class Revoked(Struct, frozen=True):
    id: str


class FileKept(Struct, frozen=True):
    """A file that is kept: a message names it by `file`."""

    file: str
    mime: str
    name: str
    bytes: int


class Problem(Struct, frozen=True):
    code: str
    message: str


class Refusal(Struct, frozen=True):
    error: Problem
