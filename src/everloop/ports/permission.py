"""What a person is asked before it counts, and what they have allowed: values that say so, and no more.

How a question is worded and what an answer allows is worked out in readings (`questions`, `grants`, `held`).
"""

from typing import Literal

from msgspec import Struct

from ..core.mail import Decision
from ..core.overrun import Overrun
from ..core.people import OWNER
from ..core.tool import Ground, Risk

HOUR = 3600.0
# What is asked about: a call that is to run, a change of a file that stands in prompts, a model beyond a budget.
ApprovalKind = Literal["call", "file", "budget"]


class FileState(Struct, frozen=True):
    """What a file holds; None is no file. A `link` leads elsewhere, and one with several `names` can be changed by
    another of them: both can be changed later by whoever writes there, so they count as changes themselves."""

    content: bytes | None = None
    link: str = ""
    names: int = 1


class Held(Struct, frozen=True):
    """A change that waits for a person: `found` in place of `accepted`. It came in `thread`."""

    id: str
    name: str
    accepted: FileState
    found: FileState
    thread: str = ""
    session: str = ""
    outside: bool = True  # strangers' words were read there; else a command did it
    asked: bool = False
    owner: str = OWNER  # whose file it is


class PromptFile(Struct, frozen=True):
    """What a person has accepted of a file, and what is held back. `version` counts its changes."""

    name: str
    accepted: FileState
    held: Held | None = None
    version: int = 1
    owner: str = OWNER  # whose file it is


class WantedCall(Struct, frozen=True):
    """A call that needs permission, with all by which it is compared. `definition` is the digest of its tool, and
    `grounds` the folder that it would run in, after all that lie above it."""

    tool: str
    user: str
    thread: str
    digest: str
    definition: str
    risk: Risk
    grounds: tuple[Ground, ...] = ()


class Allowance(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a person allows beyond the call that they were asked about; all that is said here must hold.

    `argv` is a pattern, word for word, in which a last `*` stands for any further words. `host` is a host, or with
    `*.` before it all below it. `folder` is one of the workspace, with all below it. `here` is for this conversation
    alone. Without `argv`, `host` and `any` it is the same call, in a folder the same command.
    """

    seconds: float = HOUR
    runs: int = 0  # 0: as often as it comes
    here: bool = False
    host: str = ""
    argv: str = ""
    folder: str = ""
    any: bool = False


class Grant(Struct, frozen=True):
    """What has been allowed ahead: calls of one tool as it was then, for a time, for so many runs.

    `argv` fits only what is one plain command (what holds a pipe, a variable or a second command is never what a
    pattern was meant for), that runs as the first one did: in the background or not, and no longer. `ground` is what
    the folder is, `folder` only what it is called. `user` is whose calls it is for, `call` the call that it was given
    with. A grant that says nothing on which calls it is for is for none.
    """

    id: str
    user: str
    by: str
    tool: str
    definition: str = ""
    digest: str = ""
    argv: tuple[str, ...] = ()
    background: bool = False
    seconds: int = 0
    host: str = ""
    folder: str = ""
    ground: str = ""
    thread: str = ""
    any: bool = False
    risk: str = "high"  # up to this
    runs: int = 1
    until: float = 0.0  # Unix time
    call: str = ""


GOING_BEYOND = "Going beyond the budget"


class Approval(Struct, frozen=True):
    """A question that waits for an answer. `text` is the whole call as it would run, `choices` are the words by which
    the like of it can be allowed ahead."""

    id: str
    session: str
    requester: str
    tool: str
    text: str
    risk: Risk
    until: float  # Unix time
    decision: Decision  # with everything but the verdict and who gave it
    address: str
    wanted: WantedCall | None = None  # as it is compared with what was allowed ahead; None: it is about no call
    choices: tuple[str, ...] = ()
    held: Held | None = None  # it is about no call but this change of a file, which waits as long as it takes
    overrun: Overrun | None = None  # it is about no call but about asking a model beyond a budget

    @property
    def subject(self) -> str:
        """What is said to be allowed or not."""
        return GOING_BEYOND if self.overrun else self.tool

    @property
    def kind(self) -> "ApprovalKind":
        return "file" if self.held else "budget" if self.overrun else "call"
