"""Where tools come from that may come and go while the house is open."""

from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from ..core.message import Media
from ..core.people import Role
from ..core.tool import FileChange, Ground, ToolSpec


class CallContext(Struct, frozen=True):
    """What a running call may know. `key` is stable over attempts: `thread:answer:place`. `outside` says whether what
    strangers wrote has been read in the conversation, `results` are references to results of its own tools, `ground` is
    the identity of the folder that it was allowed in, `role` that of `user` now. `whose` files and workspace
    it works with is said where they are not those of `user`, as in a group; `turn` is the id of the turn, and `owner`
    whose conversation it is, where that is somebody else, as of whose bot it is. `unasked`: a schedule or the like has
    led to it, with nobody there. `attended`: somebody is there who can be asked something."""

    key: str
    thread: str
    session: str
    user: str
    outside: bool = False
    results: AbstractSet[str] = frozenset()
    ground: str = ""
    role: Role = Role.GUEST
    whose: str = ""
    turn: int = 0
    owner: str = ""
    unasked: bool = False
    attended: bool = False

    @property
    def principal(self) -> str:
        return self.whose or self.user

    @property
    def channel(self) -> str:
        """The platform on which it was asked: what a session key begins with."""
        return self.session.partition(":")[0]

    @property
    def chat(self) -> str:
        """Where on that channel, as its addresses are written."""
        return self.session.partition(":")[2].partition(":")[0]

    @property
    def topic(self) -> str:
        """The thread or topic of the chat; "" where there is none."""
        return self.session.partition(":")[2].partition(":")[2]


class Picture(Struct, frozen=True):
    """An image or a document that a tool shows to the model."""

    data: bytes
    mime: str
    name: str = ""


class Shown(Struct, frozen=True):
    """The result of a tool that has more to tell than text. `origin` names the stranger whose words are in it, and
    `public` says that anyone can read them, as on a page of the web: they may be searched for. `background` names the
    command that goes on after the call. `made` are kept files of whoever has asked, which go with the answer."""

    text: str
    pictures: tuple[Picture, ...] = ()
    changes: tuple[FileChange, ...] = ()
    origin: str = ""
    background: str = ""
    public: bool = False
    made: "tuple[Media, ...]" = ()


Result = str | Shown


class Assignment(Struct, frozen=True, kw_only=True):
    """A task that a call hands on, and to whom: by the name of a profile, with so many `steps` and at most these
    `tools` (patterns; None: all that there are), for so many tokens and so much money (billionths of a dollar) at most.
    With `waits` what comes of it is the result of the call."""

    text: str
    agent: str = ""
    waits: bool = False
    steps: int = 15
    tools: tuple[str, ...] | None = None
    model: str = ""
    tokens: int | None = None
    money: int | None = None

    @property
    def is_limited(self) -> bool:
        return self.tokens is not None or self.money is not None


class Tool(Struct, frozen=True):
    """A tool that can be run. `verify` looks whether an earlier attempt took effect: its result, None if surely not.

    `verify` raises ToolError when it cannot tell. `ground` is where a call would run: the folder, after all that lie
    above it in the workspace. It is asked before a person is, so that they can allow the like in this folder; and the
    tool is told with the call which one it was. Raises ToolError.

    One that `spawns` is not run: `assign` says what its call hands on. Raises ToolError.
    """

    spec: ToolSpec
    run: Callable[[dict[str, Any], CallContext], Awaitable[Result]]
    verify: Callable[[dict[str, Any], CallContext], Awaitable[Result | None]] | None = None
    ground: Callable[[dict[str, Any]], tuple[Ground, ...]] | None = None
    assign: Callable[[dict[str, Any], CallContext], Awaitable[Assignment]] | None = None


@runtime_checkable
class ToolSource(Protocol):
    """Asked when a turn begins; what a turn has begun with stays usable to its end, also if it is gone by then.

    A tool that has the name of another is left out, and so is one whose name no host knows how to write.
    """

    @property
    def version(self) -> object:
        """Another one whenever `tools` would give others; it is compared at every turn, so it should be small."""
        ...

    def tools(self) -> Sequence[Tool]:
        """What there is now. It returns at once: what has to be fetched has been fetched before."""
        ...
