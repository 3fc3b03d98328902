"""What a sandbox is asked, and what it answers."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

from ...ports.tools import CallContext


class CommandLimits(Struct, frozen=True):
    """What a command may use. All but `file` count for the command and everything that it starts, together.

    `processes` counts threads too; `disk` and `files` are what it may add to a file system.
    """

    seconds: float = 60.0
    memory: int = 2 << 30
    processes: int = 256
    file: int = 1 << 30  # bytes of any one file
    disk: int = 4 << 30
    files: int = 200_000
    output: int = 1 << 20  # bytes that are kept: the first half and the last
    flood: int = 256 << 20  # bytes of output after which it is ended
    idle: float = 0.0  # seconds in which nothing is said or asked; 0 is for ever


class CommandView(Struct, frozen=True):
    """What a command sees beside the system's programs: its workspace and `writable`, to write, and folders to read.

    `hidden` are files and folders that it must not see even if they lie in the workspace. `network` are the hosts that
    it may reach.
    """

    workspace: Path
    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    network: tuple[str, ...] = ()
    writable: tuple[Path, ...] = ()


class CommandSpec(Struct, frozen=True):
    """A command to run. `script` is the text of a file whose path is put where `argv` holds SCRIPT. `ground` is the
    identity (`device:inode`, and more) of the folder that it must be in when it begins, whatever is called so then."""

    argv: tuple[str, ...]
    view: CommandView
    folder: Path  # inside the workspace
    env: Mapping[str, str] = {}
    limits: CommandLimits = CommandLimits()
    script: str | None = None
    background: bool = False  # its input stays open, and nobody waits for it
    ground: str = ""

    @property
    def inode(self) -> str:
        """`device:inode` of the folder that it must be in; empty if any will do."""
        return ":".join(self.ground.split(":")[:2])


SCRIPT = "{script}"

Status = Literal[
    "running", "exited", "time", "memory", "machine", "processes", "flood", "disk", "growth", "files", "full", "idle",
    "stopped",
]  # fmt: skip


class Outcome(Struct, frozen=True):
    """How a command ended, or that it still runs. A code of 128 and more is that of a signal.

    It was ended for using too much `memory`, for the `machine` has too little of it, for a `flood` of output, or for
    output that does not go onto the `disk`; for its `growth` of the disk, the `files` it made, or a disk that is
    nearly `full`. `output` is what it said on stdout.
    """

    status: Status
    code: int = 0
    output: str = ""
    seconds: float = 0.0
    stderr: str = ""


OnOutput = Callable[[str], None]


def be_silent(_: str) -> None:
    pass


class Sandbox(Protocol):
    """Runs commands outside of this process, each once for the key of its call, and remembers how they ended.

    Everything raises ToolError with a sentence for the model when it cannot be done.
    """

    async def run(self, context: CallContext, job: CommandSpec, on_output: OnOutput = be_silent) -> Outcome:
        """Run a command to its end; one in the background is only started. Cancelling it ends the whole tree."""
        ...

    async def find(
        self, context: CallContext, background: bool = False, on_output: OnOutput = be_silent
    ) -> Outcome | None:
        """What became of an earlier attempt, whose end is waited for; None if it surely was never begun.

        Raises ToolError when nobody can tell.
        """
        ...

    def name(self, context: CallContext, background: bool = False) -> str:
        """The name of a call's command in its thread, by which the following find it."""
        ...

    async def output(self, thread: str, name: str, offset: int, count: int, wait: float) -> tuple[Outcome, int]:
        """Up to `count` bytes of what it said from `offset` on, and where to go on. Waits for more if there is none."""
        ...

    async def input(self, thread: str, name: str, text: str) -> None: ...

    async def ended(self, thread: str, name: str) -> float | None:
        """When a command was over (Unix time, 0 if it never began); None while it runs. This does not keep it alive."""
        ...

    async def stop(self, thread: str, name: str = "") -> int:
        """End one command of a thread, or all; says how many were running."""
        ...

    async def forget(self, thread: str, name: str = "") -> None:
        """End one command of a thread, or all, and keep nothing of what they said."""
        ...

    async def close(self) -> None:
        """Let go. Commands in the background run on."""
        ...
