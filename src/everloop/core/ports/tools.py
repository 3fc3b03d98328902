"""Where tools come from that may come and go while the house is open."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ..tool import Tool


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
