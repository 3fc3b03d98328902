"""Channels as values: what each can do (its traits), what comes in through it, what goes out, and its web hooks.

The terminal, the page and the HTTP doors are rows of the same table: what a conversation may count on is asked of its
channel's traits, never of its name.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, NewType, Protocol, runtime_checkable

from msgspec import Struct

from ..core.mail import Address, Outbound, ReplyTo

Unit = Literal["char", "utf16", "byte"]


class Traits(Struct, frozen=True, kw_only=True):
    """What a channel is, as data. What is not said is not so."""

    private: bool = False  # nobody but the person whose conversation it is at the other end
    self_delivering: bool = False  # whoever watches a conversation there has its answers: nobody else delivers them
    open: bool = False  # anyone may begin a conversation at any address there
    aside: bool = False  # its clients keep the conversations themselves: ours are archived from the start
    places: bool = False  # its addresses are written by `keys.place_of`, and tell a room from a place of two
    listed: bool = False  # a person finds their conversations there in a list: they are given titles
    once: bool = False  # a second send of the same key is not seen a second time
    text_limit: int = 0  # the longest text of one part; 0: any
    text_unit: Unit = "char"
    preview: float = 0.0  # seconds between two versions of a draft; 0: it shows none
    typing: float = 0.0  # seconds after which "typing" is to be said again; 0: it cannot be said
    files: int = 0  # bytes of the largest file that it can send; 0: none
    enclosed: bool = False  # files travel with the text, in one message; else each is a message of its own
    edits: bool = False  # what was sent can be replaced
    addressed: bool = False  # a program calls it, and with what is meant for us: nobody has to name us, or to wait
    polled: bool = False  # its bots fetch what is said there: nobody sends it
    unasked: bool = False  # a program speaks there for its person, who is asked for permission elsewhere


class Manifest(Struct, frozen=True):
    """A channel's name, which begins the session keys of its conversations, and its traits."""

    name: str
    traits: Traits = Traits()


# The doors of the house itself.
DOORS: Mapping[str, Traits] = {
    "api": Traits(private=True, self_delivering=True, open=True),
    "cli": Traits(private=True),
    "mcp": Traits(private=True, self_delivering=True, open=True, listed=True, unasked=True),
    "openai": Traits(private=True, self_delivering=True, aside=True),
    "page": Traits(private=True, self_delivering=True, open=True, listed=True),
    "platform": Traits(places=True, polled=True),
}
[ASIDE] = [f"{name}:" for name, traits in DOORS.items() if traits.aside]  # how the keys of such sessions begin
POLLED = tuple(name for name, traits in DOORS.items() if traits.polled)
_NONE = Traits()


def traits_of(session: str, channels: Mapping[str, Traits] = DOORS) -> Traits:
    """Of the channel that a session key (or only its beginning) names; of one that nobody knows, nothing is so."""
    return channels.get(session.partition(":")[0], _NONE)


FileRef = NewType("FileRef", str)  # what a channel calls a file that it could fetch


class Incoming(Struct, frozen=True, kw_only=True):
    """Something that was said on a channel, as its codec reads it.

    `event` is the platform's own id: the same event twice is one letter. `account` is the author's id on the platform,
    one that nobody else can ever get: never a name. The channel says where (`chat`, `thread`), and cannot speak for
    another channel. `direct`: nobody but the author is at the other end. `server` is what the chat belongs to, where
    there is such a thing: a guild, a workspace, a tenant. `name` is what the author is called there, for people alone.

    `mentioned`: we are named in it; `replies`: it is a reply to something that we have said; `quoted` is the text that
    it is a reply to. `bot`: no person has written it; what we have written ourselves is never handed in. `voice` are
    those of `files` that are spoken. Messages of one `album` were sent together. With `replaces` it is the new text of
    an earlier event; with `withdrawn` that event was taken back, and there is no text. `unproven`: anyone could have
    written it in the author's name, so that it is never taken for a known person's.
    """

    event: str
    chat: str
    account: str
    text: str
    thread: str = ""
    direct: bool = True
    mentioned: bool = False
    reply_to: ReplyTo = ReplyTo("")
    files: tuple[FileRef, ...] = ()
    server: str = ""
    name: str = ""
    replies: bool = False
    quoted: str = ""
    bot: bool = False
    voice: tuple[FileRef, ...] = ()
    album: str = ""
    replaces: str = ""
    withdrawn: bool = False
    unproven: bool = False


class Delivered(Struct, frozen=True):
    """What was delivered is committed, and may be acknowledged. `fresh`: it has not come before. `refused` says why
    nothing comes of it; then it may be acknowledged, too, for it would be refused again."""

    fresh: bool = True
    refused: str = ""


class Admitted(Struct, frozen=True):
    """Who speaks, and whose conversation it is. Until `due` (0: at once) more of the same may come, for one turn."""

    author: str
    owner: str
    due: float = 0.0


class Declined(Struct, frozen=True):
    """`reply` is told to whoever wrote it from this `account`; nothing else comes of what they wrote."""

    why: str
    account: str = ""
    reply: str = ""


class Rendered(Struct, frozen=True):
    """A part of an answer as its channel writes it, and the same without markup, for when the markup is refused."""

    text: str
    plain: str = ""


class OutgoingFile(Struct, frozen=True):
    """A file that goes with an answer. What is more than the channel takes has no `data`, and `why` may say that;
    `link` is where people find it, if they can reach us. Then its `mention` belongs in the text."""

    name: str
    mime: str
    data: bytes = b""
    link: str = ""
    why: str = ""

    @property
    def mention(self) -> str:
        """What people are told of a file that is not sent itself, in a line without markup."""
        if self.link:
            return f"{self.name}: {self.link}"
        return f"{self.name} (not sent here{f': {self.why}' if self.why else ''}; the page has its files under Files)"


class OutgoingPart(Struct, frozen=True, kw_only=True):
    """One message of the platform's: the whole answer, or the part of it with this `number` (from 0).

    `key` is the same at each attempt and no other part's. `reply_to` is what the channel has said of the letter that
    is answered, or of the last one of the conversation. `plain` is the text without markup, if the channel's renderer
    has told it. Files go with the last text where they are `enclosed`, else each is a part of its own, without a text.
    `approval` is the name of what a question is about: `/approve <name>` and `/deny <name>` answer it, also as buttons.
    With `draft` the channel shows a draft of it (what `preview` has called so): it is to become this message.
    """

    key: str
    address: Address
    text: str
    plain: str = ""
    reply_to: ReplyTo = ReplyTo("")
    kind: str = "reply"
    approval: str = ""
    files: tuple[OutgoingFile, ...] = ()
    draft: str = ""
    number: int = 0
    of: int = 1


class HookRequest(Struct, frozen=True):
    """A request to a web hook. The names of `headers` are in lower case; nothing in it has been checked."""

    method: str
    headers: Mapping[str, str]
    body: bytes
    query: Mapping[str, str] = {}


class HookAnswer(Struct, frozen=True):
    """Its body is JSON, unless a header says otherwise."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


ANY_PATH = "*"


class Hook(Struct, frozen=True):
    """A route that the gateway mounts at /hooks/<channel><path>. It is open to all: the channel checks who asks."""

    method: Literal["GET", "POST"]
    path: str  # "", or /… for a further one, or ANY_PATH
    answer: Callable[[HookRequest], Awaitable[HookAnswer]]
    largest: int = 1_000_000  # bytes of a body


class Deliver(Protocol):
    """What a channel is given: it says what has come in, and acknowledges it on its platform afterwards."""

    async def __call__(self, incoming: Incoming, resume: str = "") -> Delivered:
        """Commit it, and with it where to resume. Raises StoreError: then it must not be acknowledged."""

    async def skip_to(self, resume: str) -> None:
        """Where to resume, when nothing in between was for us. Raises StoreError."""


class Channel(Protocol):
    """A way to speak with people. What else it can do are the Protocols that follow: it has those methods, or not."""

    @property
    def manifest(self) -> Manifest: ...

    async def run(self, deliver: Deliver, resume: str) -> None:
        """Listen, from where `resume` says ("" at first). It is begun again after a while when it raises; when it
        returns, there is nothing to listen to."""

    async def send(self, part: OutgoingPart) -> str:
        """Deliver and return the platform's id. Raises ChannelDown when surely nothing was delivered, Undeliverable
        when it never will be; after any other error it may have been."""


@runtime_checkable
class Renders(Protocol):
    """A channel that makes its own parts of an answer; what any other sends is one part."""

    def render(self, outbound: Outbound) -> Sequence[str | Rendered]:
        """The texts of its parts, at least one; the same of the same answer, whenever it is asked. Each is a few words
        shorter than the limit: `(delayed)` and the like may have to stand before it. With a Rendered, `send` is given
        the text without markup, too."""


@runtime_checkable
class Previews(Protocol):
    """A channel that can show a draft (`traits.preview`). What fails is not tried again."""

    async def preview(self, address: Address, shown: str, text: str, reply_to: ReplyTo) -> str:
        """Show it in place of what it returned before (`shown`, "" at first); returns what that is called. An empty
        text takes it away: the turn is over without an answer, or it is sent in another way. `text` is markdown that is
        not finished, `reply_to` is that of the letter."""


@runtime_checkable
class Signals(Protocol):
    """A channel that can say what goes on (`traits.typing`). What fails is not tried again."""

    async def signal(self, address: Address, what: Literal["typing", "done"], reply_to: ReplyTo) -> None: ...


@runtime_checkable
class Fetches(Protocol):
    """A channel whose messages come with files."""

    async def fetch(self, ref: FileRef, limit: int) -> tuple[str, bytes]:
        """Its name and its bytes. Raises ChannelDown, or Undeliverable for more bytes than the limit."""


@runtime_checkable
class Hooked(Protocol):
    """A channel that is called by its platform, through the gateway."""

    def hooks(self, deliver: Deliver) -> Sequence[Hook]: ...


@runtime_checkable
class Reacts(Protocol):
    """A channel on which one can react to what somebody has said."""

    async def react(self, address: Address, to: ReplyTo, emoji: str) -> None:
        """`to` is that of the letter. Raises ChannelDown, Undeliverable."""


@runtime_checkable
class Replaces(Protocol):
    """A channel on which what was sent can be changed (`traits.edits`). Both raise ChannelDown, Undeliverable."""

    async def replace(self, address: Address, sent: str, text: Rendered) -> None:
        """`sent` is what `send` has returned. To replace it by the same again is no error."""

    async def withdraw(self, address: Address, sent: str) -> None:
        """What is gone already is no error."""


@runtime_checkable
class OpensChats(Protocol):
    """A channel on which we may speak first."""

    async def chat_with(self, account: str) -> str:
        """The chat of two with this account, made if there is none. Raises ChannelDown, Undeliverable."""


class Probed(Struct, frozen=True, kw_only=True):
    """What a platform says of us: who we are there, what we may not do yet (a sentence each, with what to do), and a
    link under which people find us."""

    account: str
    missing: tuple[str, ...] = ()
    link: str = ""


@runtime_checkable
class Probes(Protocol):
    """A channel that can be tried before it is used."""

    async def probe(self) -> Probed:
        """Make a call that changes nothing. Raises ChannelDown, and ChannelRefused when the platform does not let us
        in."""


class SetupField(Struct, frozen=True):
    """One thing that is asked of whoever sets up a channel: the setting of this name. A secret goes to the vault."""

    name: str
    question: str
    secret: bool = False
    optional: bool = False


class Setup(Struct, frozen=True, kw_only=True):
    """How a channel is set up: what it is called, where one gets what is asked for (a sentence each), what is asked."""

    title: str
    steps: tuple[str, ...]
    fields: tuple[SetupField, ...]


@runtime_checkable
class KnowsPeople(Protocol):
    """A Deliver that can be asked about an account before it has said anything: of who invites us, for example."""

    async def knows(self, account: str) -> bool:
        """Whether it belongs to somebody whom the owner has let in. Raises StoreError."""


class Admission(Protocol):
    """Who may speak on a channel, decided before anything is committed."""

    async def admit(self, manifest: Manifest, incoming: Incoming) -> Admitted | Declined:
        """Raises StoreError."""
