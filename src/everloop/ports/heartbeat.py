"""The heartbeat: at each beat somebody's HEARTBEAT.md is looked at, and a model is asked only if there is a reason.

A beat is a job of the kind `heartbeat`, one for each person who has such a file. What was seen is kept with its letter,
in one transaction: whoever is killed, what has changed is asked about once.
"""

from typing import Literal, Protocol

from msgspec import Struct

from ..core.mail import Inbound

HEARTBEAT = "heartbeat"  # the kind of its jobs
HEARTBEAT_FILE = "HEARTBEAT.md"
HEARTBEAT_SOURCE = "heartbeat:"  # what begins its turns, before whose it is
SILENCE = "HEARTBEAT_OK"  # what a model answers when there is nothing to tell
AT_ONCE = "at once"  # the payload of a job that somebody has asked for: quiet hours do not count

BeatDecision = Literal["asked", "missing", "empty", "held", "unchanged", "quiet", "busy", "barred", "nowhere"]


class FileStamp(Struct, frozen=True, array_like=True):
    """How a file that is watched was found: its size, its mtime in nanoseconds, and the hash of what it holds."""

    size: int
    at: int
    digest: str


class HeartbeatState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was seen at the last beat, and what the model was last asked about: open lines, files and what checks have
    said, by their hashes. `allowed` is that of the checks that an approver has allowed by hand."""

    looked: float = 0.0
    decided: BeatDecision = "missing"
    why: str = ""
    asked: float = 0.0  # 0: never
    lines: tuple[str, ...] = ()
    watching: str = ""
    files: dict[str, FileStamp] = {}
    checks: dict[str, str] = {}
    allowed: str = ""
    event: str = ""  # of the last letter
    channel: str = ""


class HeartbeatRow(Struct, frozen=True):
    """How somebody's heartbeat stands. `version` names this state; `next` is None while no beat is planned. `busy` says
    that the last turn is not over, `barred` why nothing is done for them. `result` and `cost` are those of the last
    turn that has ended; its result is "" where it had nothing to tell."""

    owner: str
    state: HeartbeatState = HeartbeatState()
    version: int = 0
    next: float | None = None
    busy: bool = False
    barred: str = ""
    result: str = ""
    cost: float | None = None


class HeartbeatFiles(Protocol):
    """What lies in somebody's workspace."""

    def is_there(self, owner: str) -> bool:
        """Whether they have a HEARTBEAT.md; quick."""

    async def read(self, owner: str) -> tuple[str | None, bool]:
        """The HEARTBEAT.md that is accepted, None without one; and whether a change of it waits for a person."""

    async def stamps(self, owner: str, patterns: tuple[str, ...], known: dict[str, FileStamp]) -> dict[str, FileStamp]:
        """The files that fit, by their paths; what is `known` and has its size and time is not read again."""


class Heartbeats(Protocol):
    """Times are those of the store's clock. Raises StoreError."""

    async def plan_heartbeat(self, owner: str, every: float) -> None:
        """Have it beat every so many seconds, from now on; one that does so already goes on as it is."""

    async def drop_heartbeat(self, owner: str) -> None:
        """It beats no more; what was seen stays known."""

    async def beating(self) -> list[str]:
        """Whose heartbeats are planned."""

    async def heartbeat(self, owner: str) -> HeartbeatRow: ...

    async def keep_beat(
        self, owner: str, version: int, state: HeartbeatState, letter: Inbound | None, otherwise: HeartbeatState
    ) -> str | None:
        """Write what was seen with the letter that it leads to, all or none; `otherwise` where that cannot be posted.
        The thread that has mail now, "" if none has, None if another was quicker than this version."""

    async def hasten_heartbeat(self, owner: str) -> bool:
        """Have it beat at once, also in quiet hours. Whether one is planned, and may beat: in a copy none does."""

    async def settle_beat(self, mail: int, result: str, cost: float | None) -> None:
        """The turn of this letter has ended."""
