"""What the exports of services have in common: conversations in `conversations.json`, and nothing that is set up."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import EverloopError
from .elements import elements
from .export import Export
from .values import ForeignConversation, ForeignFile, ForeignJob, ForeignSkill, ForeignText, Remark

Read = Callable[[Any, str], ForeignConversation | Remark]


class ServiceExport:
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
        yield from ()

    def settings(self) -> Mapping[str, Any]:
        return {}


def is_conversations(name: str) -> bool:
    return name.startswith("conversations") and name.endswith(".json")
