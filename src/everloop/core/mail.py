"""What travels between the world and a thread: addresses, inbound mail, outbound answers."""

from typing import Literal, NewType

from msgspec import Struct

from ..errors import BadSession
from .message import Made, Media, Message, Part
from .prompt import Brought, Terms
from .speakers import GroupSpeaker
from .tool import FileChange


class Address(Struct, frozen=True, gc=False):
    """Where a conversation takes place. Its text form `channel:chat[:thread]` is the session key."""

    channel: str
    chat: str
    thread: str = ""

    @classmethod
    def parse(cls, key: str) -> "Address":
        channel, _, rest = key.partition(":")
        if not channel or not rest:
            raise BadSession(f"a session key looks like channel:chat, not {key[:200]!r}")
        chat, _, thread = rest.partition(":")
        return cls(channel, chat, thread)

    def __str__(self) -> str:
        return f"{self.channel}:{self.chat}" + (f":{self.thread}" if self.thread else "")


# What a channel needs to answer where something was said: only the channel that made it can read it. "" is nothing.
ReplyTo = NewType("ReplyTo", str)


class Said(Struct, frozen=True, gc=False, tag="said", omit_defaults=True):
    """Someone spoke. `unattended` says that nobody is there to be asked anything back, `preapproved` that what would be
    asked is allowed ahead.

    A client that keeps its conversation itself says with `before` what has been said in it; when that ends with the
    results of calls, it has no `parts`. `brought` is what it brings along. `literal` says that a slash at its beginning
    is no command: what somebody's users write is passed on.

    `instead` names the questions that it is said in place of an answer to. Whoever was not shown another that waits
    does not withdraw it. None: all that wait are shown where it is said.

    `model` is chosen for the conversation with it, as a Choose just before it would; "" is that of the settings, None
    leaves it as it is.

    `principal` is whose memory, files and workspace it is about; "" is its author's own. `terms` hold for the
    conversation from here on, and `speaker` is who its author is to a group. `payer` is who pays for what comes of it;
    "" is its author. No door sets any from what it is sent.
    `server` is what the chat belongs to. Until `due` (seconds since 1970) more of the same may come, for one turn."""

    parts: tuple[Part, ...]
    author: str
    address: str = ""
    unattended: bool = False
    before: tuple[Message, ...] = ()
    brought: Brought | None = None
    literal: bool = False
    preapproved: bool = False
    instead: tuple[str, ...] | None = None
    reply_to: ReplyTo = ReplyTo("")
    principal: str = ""
    terms: Terms | None = None
    model: str | None = None
    speaker: GroupSpeaker | None = None
    server: str = ""
    payer: str = ""
    due: float = 0.0


class Amendment(Struct, frozen=True, gc=False, tag="amendment", omit_defaults=True):
    """The author of the letter `mail` has put this in its place, or taken it back."""

    mail: int
    said: Said
    withdrawn: bool = False


class Stop(Struct, frozen=True, gc=False, tag="stop", omit_defaults=True):
    """Someone wants the running turn to end."""

    by: str


class Decision(Struct, frozen=True, gc=False, tag="decision", omit_defaults=True):
    """Someone answered an approval, or its time ran out (`by` is then empty). `thread` is the one that asked: the
    session may have moved on to another, in which the same answer and place name another call. `digest` is that of
    what the person was shown, `authority` what lets them decide, as the audit tells it."""

    thread: str
    answer: int
    place: int
    verdict: Literal["allowed", "denied", "expired"]
    by: str = ""
    digest: str = ""
    authority: str = ""


class Choose(Struct, frozen=True, gc=False, tag="choose", omit_defaults=True):
    """Someone wants another model to answer in this conversation; "" is the one of the settings."""

    model: str
    by: str = ""


class ChoosePersona(Struct, frozen=True, gc=False, tag="persona", omit_defaults=True):
    """Someone wants another persona in this conversation; "" is the one of its place."""

    persona: str
    by: str = ""


class CompactRequest(Struct, frozen=True, gc=False, tag="squeeze", omit_defaults=True):
    """Someone wants what was said to become a summary now, which `payer` pays for; "" is who wants it."""

    by: str = ""
    payer: str = ""


class Undo(Struct, frozen=True, gc=False, tag="undo", omit_defaults=True):
    """A turn has been taken back by a branch; what it did to files is to be taken back, too.

    `said` is what it had begun with. `changes` are to be undone in this order, with what the files of `whose` turn it
    was have kept; `lasting` is what cannot be undone. `terms` held in it, and hold on."""

    said: str
    changes: tuple[FileChange, ...] = ()
    lasting: tuple[str, ...] = ()
    whose: str = ""
    by: str = ""
    address: str = ""
    terms: Terms | None = None


class Telling(Struct, frozen=True, gc=False, tag="word", omit_defaults=True):
    """The agent tells something here, from another conversation (`sender`), in which `by` had it do so. `outside` says
    that strangers' words had been read there."""

    text: str
    files: tuple[Media, ...] = ()
    address: str = ""
    sender: str = ""
    by: str = ""
    outside: bool = False


class Notice(Struct, frozen=True, gc=False, tag="notice", omit_defaults=True):
    """The house itself says something that is to be answered: a job is due, a task that was handed on is done. `source`
    names it (`job:…`), and `by` is on whose behalf, with whose rights. No door makes one of what it is sent, so nobody
    can speak in the house's name. `outside` says that strangers' words are in it.

    What came of a task, and how it has ended (`outcome`), `answers` a call (the seq of its answer, and its place), if
    that still waits for it."""

    text: str
    source: str
    by: str
    address: str = ""
    outside: bool = False
    unattended: bool = False
    principal: str = ""
    terms: Terms | None = None
    payer: str = ""  # "": on whose behalf it is said
    answers: tuple[int, int] | None = None
    outcome: Literal["done", "failed", "cancelled"] = "done"
    rounds: int = 0


Letter = Said | Amendment | Stop | Decision | Choose | ChoosePersona | CompactRequest | Undo | Telling | Notice


class Inbound(Struct, frozen=True, gc=False):
    """A letter on its way in. `event` is the platform's own id: the same event twice is one letter.

    `resume` is where its channel goes on after it (an offset, a sequence number), and is committed with it; so is the
    `account` that speaks there alone with us: it tells who is reached there."""

    address: Address
    event: str
    letter: Letter
    owner: str = "owner"
    resume: str = ""
    account: str = ""


class Mail(Struct, frozen=True, gc=False):
    """A letter that lies in a thread's inbox, numbered in the order of arrival."""

    id: int
    letter: Letter


class Outbound(Struct, frozen=True, gc=False, omit_defaults=True):
    """An answer on its way out. `key` is unique: the same answer is never queued twice."""

    key: str
    address: Address
    text: str
    kind: Literal["reply", "notice", "question"] = "reply"
    failed: bool = False
    mails: tuple[int, ...] = ()  # the inbox ids that it answers
    approval: str = ""  # of a question: the name of what is to be allowed
    files: tuple[Made, ...] = ()  # that go with it


def reply_key(thread: str, seq: int) -> str:
    """The key of the answer that ended a turn."""
    return f"reply:{thread}:{seq}"
