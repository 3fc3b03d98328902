"""What the exports of services have in common: conversations in `conversations.json`, and nothing that is set up."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import EverloopError
from .elements import elements
from .export import Export
from .values import ForeignConversation, ForeignFile, ForeignJob, ForeignSkill, ForeignText, Remark

MEMORY = (
    "{name} (what the service remembers of you) is not taken over: read it, and write what shall be remembered here "
    "into your memory: everloop memory edit"
)
ACCOUNT = (
    "{name} (your account there) has no place here; who you are and how you want to be answered, also custom "
    "instructions, stands in USER.md of the workspace"
)
OTHER = "{name} has no place here, and stays where it is"
UNREAD = "{count} more JSON files of the export are not read: {names}"
SHOWN = 5
Read = Callable[[Any, str], ForeignConversation | Remark]


class ServiceExport:
    known: Mapping[str, str] = {}  # files that have no place here, and what is said of each; "": nothing is missed

    def __init__(self, export: Export, read: Read) -> None:
        """`read` makes a conversation of an element of that file, which is named for who has to be told of it. Raises
        EverloopError."""
        self.export = export
        self._read = read
        self._parts = [name for name in export.names() if is_conversations(name)]
        if not self._parts:
            raise EverloopError(
                f"{export.path} holds no conversations.json: give the ZIP that the service sent you, or its folder"
            )

    def close(self) -> None:
        self.export.close()

    def conversations(self) -> Iterator[ForeignConversation | Remark]:
        for name in self._parts:
            with self.export.open(name) as file:
                for number, element in enumerate(elements(file, name), 1):
                    place = f"{name}, conversation {number}"
                    yield element if isinstance(element, Remark) else self._read(element, place)

    def file(self, found: ForeignFile, most: int) -> bytes | None:
        return self.export.read(found.place, most)

    def memory(self) -> str:
        return ""

    def history(self) -> str:
        return ""

    def skills(self) -> Iterator[ForeignSkill]:
        yield from ()

    def jobs(self) -> Iterator[ForeignJob | Remark]:
        yield from ()

    def texts(self) -> Iterator[ForeignText | Remark]:
        yield from self._left()

    def _left(self) -> Iterator[Remark]:
        """What of the export nobody reads."""
        attached = ("file-", "file_")
        names = [name for name in self.export.names() if name.endswith(".json") and not name.startswith(attached)]
        names = [name for name in names if not is_conversations(name)]
        for name in names:
            if said := self.known.get(name):
                yield Remark(said.format(name=name))
        if more := [name for name in names if name not in self.known]:
            listed = ", ".join(name[:60] for name in more[:SHOWN]) + (" …" if len(more) > SHOWN else "")
            yield Remark(UNREAD.format(count=len(more), names=listed))

    def settings(self) -> Mapping[str, Any]:
        return {}


def is_conversations(name: str) -> bool:
    return name.startswith("conversations") and name.endswith(".json")
