"""What happened: the entries of a thread's log.

A thread is its log and nothing else. Entries are written once and never edited; whatever the agent needs to
know, it reads from them again. They are a stored format: JSON objects with a `kind` and, from version 2 on,
a `v`. A reader brings older entries up to date (`UPCASTS`), and refuses those of a newer everloop.

A call is named by the seq of the answer that holds it and its place therein, never by the provider's call id,
which can repeat.
"""

import re
from collections.abc import Callable
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct, structs

from ..errors import StoreCorrupt, StoreNewer
from .exits import Exits
from .message import Made, Media, Message, Opaque, Part, Text
from .overrun import Account, Overrun
from .people import is_chat
from .prompt import Brought, Finish, Terms, Usage
from .speakers import GroupSpeaker, header_of, in_group
from .task import Task
from .tool import FileChange, Ground, Risk, ToolCall

MANY = 2**62  # more than there are
VERSION = 1
NOTICE = "[everloop itself says this, not a person: {}]"
CLIENT = "a client's tools"  # the origin of what these have said
IMPORTED = "imported"  # the model that is said to have answered in a conversation that came from a file


def _kind(name: str) -> str:
    """UserSaid is stored as user_said."""
    return re.sub("(?<=.)([A-Z])", r"_\1", name).lower()


class _Entry(Struct, frozen=True, omit_defaults=True, gc=False, tag_field="kind", tag=_kind):
    pass


class UserSaid(_Entry, frozen=True):
    """Someone spoke. `mail` is the inbox id it came from.

    `before` is what a client says was said before, elsewhere; `brought` what it brings along for this turn."""

    parts: tuple[Part, ...]
    author: str
    address: str = ""
    mail: int = 0
    unattended: bool = False  # nobody is there to be asked
    before: tuple[Message, ...] = ()
    brought: Brought | None = None
    preapproved: bool = False  # what would be asked was allowed ahead, for this turn
    principal: str = ""  # whose files and workspace it is about; "": its author's
    terms: Terms | None = None  # for this turn and those after it
    source: str = ""  # what of the house says this on the author's behalf; "": the author does
    speaker: GroupSpeaker | None = None  # in a group: who the author was when they said it
    server: str = ""  # what the chat belongs to: a guild, a workspace; "": as it was
    payer: str = ""  # who pays for the turn; "": its author
    rounds: int = 0  # tasks that have reported in a row, this one included, with nobody saying anything

    @property
    def task(self) -> Task | None:
        """The one that begins with it."""
        return self.terms.task if self.terms else None

    @property
    def messages(self) -> list[Message]:
        """All of it, in a group with who says it. What a client's tools have said are a stranger's words."""
        found = self._messages()
        if not self.principal or not is_chat(self.principal) or not found:
            return found
        header = header_of(self.author, self.speaker) if self.speaker and self.parts and not self.source else ""
        return [*map(in_group, found[:-1]), in_group(found[-1], header)]

    def _messages(self) -> list[Message]:
        if self.source:
            return [Message("user", (Text(NOTICE.format(self.source)), *self.parts))]
        before = self.before
        found = [_by_tools(each) if each.role == "tool" else each for each in before] if before else []
        if self.parts:
            said = Message("user", self.parts)
            found.append(_by_tools(said) if self.brought is not None and self.brought.outside else said)
        return found


def _by_tools(message: Message) -> Message:
    parts = [structs.replace(part, origin=CLIENT) if isinstance(part, Text) else part for part in message.parts]
    return structs.replace(message, parts=tuple(parts))


class ModelCalled(_Entry, frozen=True):
    """A model is about to be asked. It is shown all that stands before this entry, and `tail`, and nothing after.

    `prefix` is given when what stands before the conversation is not what it was at the call before: a fingerprint
    of each of its parts, by which one sees what made the host's cache useless."""

    model: str
    tail: str = ""
    wrap: bool = False  # the last call of a turn that has used up its steps
    prefix: str = ""


class ModelSaid(_Entry, frozen=True):
    """The whole answer to the last ModelCalled. `own`: with a key of whoever had asked, who pays for it themselves."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    finish: Finish = "stop"
    model: str = ""
    reasoning: str = ""
    opaque: tuple[Opaque, ...] = ()
    cost: float | None = None
    own: bool = False


class ModelFailed(_Entry, frozen=True):
    """The last ModelCalled came to nothing. `error` is the kind, `text` a sentence for the user; `cut` is what had
    been said of an answer that broke off, and `reasoning` what was thought before it."""

    error: str
    text: str
    cut: str = ""
    reasoning: str = ""


class CallStarted(_Entry, frozen=True):
    """Committed before the effect. Found without a result, it means that nobody knows what happened; or, if it `waits`,
    that a task works at it, whose end is its result."""

    answer: int
    place: int
    waits: bool = False


Outcome = Literal["done", "failed", "denied", "repeated", "unknown", "cancelled", "abandoned", "handed"]


class CallReturned(_Entry, frozen=True):
    """What the model is told of a call. `file` names the whole result when `text` is shortened.

    `changes` are the files it has changed, `made` what these held then, as far as that was kept; `origin` is whose
    words it tells, when they are a stranger's, and `public` that anyone can read them; `background` is the command that
    goes on after it."""

    answer: int
    place: int
    text: str
    outcome: Outcome = "done"
    file: str = ""
    media: tuple[Media, ...] = ()  # what it is shown beside the text
    changes: tuple[FileChange, ...] = ()
    origin: str = ""
    made: tuple[Media, ...] = ()
    background: str = ""
    public: bool = False


class ToldApprover(Struct, frozen=True, gc=False):
    """Somebody who was asked elsewhere, in a conversation of theirs."""

    person: str
    session: str


class Asked(_Entry, frozen=True):
    """A person has been asked whether a call may run: this call, as the digest binds it, until a time (Unix).

    `definition` is the digest of its tool, and `grounds` the folder that it runs in, after all that lie above it.
    `told` are those who are asked elsewhere, for the requester may not answer; unless it was allowed ahead.

    With an `overrun` it is about no call but about a model that is to be asked, beyond a budget: its place is -1, and
    `answer` the entry before the question."""

    answer: int
    place: int
    digest: str = ""
    until: float = 0.0
    risk: Risk = Risk()
    definition: str = ""
    grounds: tuple[Ground, ...] = ()
    told: tuple[ToldApprover, ...] = ()
    overrun: Overrun | None = None


Verdict = Literal["allowed", "denied", "expired", "withdrawn", "unattended"]


class Answered(_Entry, frozen=True):
    answer: int
    place: int
    verdict: Verdict
    by: str = ""


class ModelChosen(_Entry, frozen=True):
    """From now on this conversation is answered by another model; "" is the one of the settings."""

    model: str
    by: str = ""


class PersonaChosen(_Entry, frozen=True):
    """From the next turn on the agent is this persona in this conversation; "" is the one of its place."""

    persona: str
    by: str = ""


class Stopped(_Entry, frozen=True):
    """The user ended the turn. `text` is what had been said by then of the answer, `reasoning` what was thought."""

    by: str
    text: str = ""
    reasoning: str = ""


class Resumed(_Entry, frozen=True):
    """Another process has taken over an open turn from one that died."""

    after: str = ""


class GaveUp(_Entry, frozen=True):
    """The turn ends without an answer; `text` says why to the user, `error` finds the detail in the log. `cut` is what
    had been said of an answer that broke off, and `reasoning` what was thought before it."""

    reason: str
    text: str
    error: str = ""
    cut: str = ""
    reasoning: str = ""


class Standing(Struct, frozen=True, omit_defaults=True, gc=False):
    """Where an open turn stands; carried over a compaction, after which earlier entries are not read again."""

    turn: int = 0
    owes: bool = False
    requester: str = ""
    address: str = ""
    steps: int = 0
    mails: tuple[int, ...] = ()
    choice: str = ""
    prefix: str = ""
    outside: bool = False
    unattended: bool = False
    began: int = -1  # where the turn's first message stands among those that are left
    usage: Usage = Usage()
    cost: float | None = 0.0
    model: str = ""
    tools_used: tuple[str, ...] = ()
    brought: Brought | None = None
    files: tuple[Made, ...] = ()
    unknown: tuple[str, ...] = ()
    exits: Exits = Exits()  # what has left in this turn of what only strangers gave
    preapproved: bool = False
    principal: str = ""
    terms: Terms | None = None
    source: str = ""
    persona: str = ""
    persona_by: str = ""
    server: str = ""
    payer: str = ""
    overruns: tuple[Account, ...] = ()  # in which it may be asked so often still
    calls_left: int = 0
    rounds: int = 0


class Compacted(_Entry, frozen=True):
    """What was said before has become a summary; `kept` follows it word for word.

    `facts` are lines of it that are kept by rule, `covers` the first and the last entry it stands for. `model`, `usage`
    and `cost` are of the call that wrote the summary, and so is `own`; without a model it was written plainly."""

    summary: str
    kept: tuple[Message, ...] = ()
    standing: Standing = Standing()
    facts: tuple[str, ...] = ()
    covers: tuple[int, int] = (0, 0)
    model: str = ""
    usage: Usage = Usage()
    cost: float | None = None
    own: bool = False


class CompactionAsked(_Entry, frozen=True):
    """Someone wants what was said to become a summary now, which `payer` pays for; "" is who wants it."""

    by: str = ""
    payer: str = ""


class Undoing(_Entry, frozen=True):
    """The turn that stood here has been taken back: this thread has branched off before it. What it did to files is to
    be taken back as well: `changes`, in this order, from what is kept for `whose` turn it was.

    `said` is what that turn had begun with, `lasting` what it did that cannot be taken back, `by` who wanted it so.
    `terms` are those that held in it, and go on to hold."""

    said: str
    changes: tuple[FileChange, ...] = ()
    lasting: tuple[str, ...] = ()
    whose: str = ""
    by: str = ""
    address: str = ""
    mail: int = 0
    terms: Terms | None = None


class TakenBack(_Entry, frozen=True):
    """The change at this place has been taken back, or `left` says why its file was left as it is."""

    place: int
    left: str = ""


class AgentTold(_Entry, frozen=True):
    """The agent has told something here from another conversation, `sender`, in which `by` had it do so.

    `outside` says that what strangers wrote had been read there: it may have found its way into this."""

    text: str
    files: tuple[Media, ...] = ()
    address: str = ""
    sender: str = ""
    by: str = ""
    outside: bool = False
    mail: int = 0


class Removed(_Entry, frozen=True):
    """In a branch: what stood here in its parent does not belong to it."""


Entry = (
    UserSaid
    | ModelCalled
    | ModelSaid
    | ModelFailed
    | CallStarted
    | CallReturned
    | Asked
    | Answered
    | ModelChosen
    | PersonaChosen
    | Stopped
    | Resumed
    | GaveUp
    | Compacted
    | CompactionAsked
    | Undoing
    | TakenBack
    | AgentTold
    | Removed
)

# From version n to n + 1, on the plain JSON object. There is no older version yet.
UPCASTS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}


class _Stamp(Struct):
    v: int = 1


encode: Callable[[Entry], bytes] = msgspec.json.Encoder().encode
_decode: Callable[[bytes | str], Entry] = msgspec.json.Decoder(Entry).decode
_stamp = msgspec.json.Decoder(_Stamp).decode


def decode(body: bytes | str) -> Entry:
    """Read a stored entry, bringing it up to date. Raises StoreNewer for one that this program cannot know."""
    try:
        version = _stamp(body).v
        return _decode(body) if version == VERSION else _upcast(body, version)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(f"an entry of this conversation cannot be read ({error})") from error


def _upcast(body: bytes | str, version: int) -> Entry:
    if version > VERSION:
        raise StoreNewer(f"this conversation was written by a newer everloop (format {version}, here {VERSION})")
    plain = msgspec.json.decode(body)
    for step in range(version, VERSION):
        plain = UPCASTS[step](plain)
    plain.pop("v", None)
    return cast(Entry, msgspec.convert(plain, Entry))
