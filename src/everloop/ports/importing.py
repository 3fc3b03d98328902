"""Moving in through the gateway: an import that is looked at or done, one at a time, and how far it has come."""

from typing import Literal

from msgspec import Struct

ImportKind = Literal["nanobot", "openclaw", "chatgpt", "claude"]
ImportState = Literal["none", "running", "done", "failed"]
EXPORTS = "importing"  # of a home: what somebody has sent, until it was taken over


class ImportUpload(Struct, frozen=True):
    """An export that was sent, under a name of ours; it stays until it was taken over, the next one comes, or a day is
    over."""

    upload: str
    size: int


class ImportWanted(Struct, frozen=True):
    """From where: a `path` of the gateway's machine, or an `upload`. `dry_run`: only tell what would be done."""

    kind: ImportKind
    path: str = ""
    upload: str = ""
    dry_run: bool = True
    grown: bool = False
    enable: bool = False


class ImportedThing(Struct, frozen=True):
    what: str
    name: str
    note: str = ""


class ImportStanding(Struct, frozen=True):
    """How the last import since the gateway was started stands. `done` counts what was seen so far; `taken` names what
    is (or would be) taken over, at most a few of each kind, and `counts` says how many there are; `there` were here
    already; `left` is what is not taken over and what to do about it, `left_count` how much there is of that."""

    state: ImportState = "none"
    wanted: ImportWanted | None = None
    done: int = 0
    messages: int = 0
    counts: dict[str, int] = {}
    taken: list[ImportedThing] = []
    there: dict[str, int] = {}
    left: list[str] = []
    left_count: int = 0
    error: str = ""
