"""Tools that come and go while the house is open: what sources bring, beside those of the house."""

import logging
import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ..ports import ToolSource
from ..ports.tools import Tool
from ..runtime.calls import Kit
from ..runtime.strangers import contained

_log = logging.getLogger("everloop.tools")

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

Tools = tuple[Tool, ...]
_FAILED = object()


class BroughtTools:
    """What all sources bring, as they are now. It is the same tuple again for as long as none has another version."""

    def __init__(self, sources: Iterable[ToolSource]) -> None:
        self._sources = tuple(sources)
        self._versions: list[object] = []
        self._parts: list[Tools] = [()] * len(self._sources)
        self._tools: Tools = ()

    @property
    def has_sources(self) -> bool:
        return bool(self._sources)

    def tools(self) -> Tools:
        versions: list[object] = []
        for source in self._sources:
            try:
                versions.append(source.version)
            except BaseException:  # a stranger's code runs here, and may try to end the program
                _log.warning("%s cannot tell whether its tools have changed", type(source).__name__, exc_info=True)
                versions.append(None)
        if versions != self._versions:
            self._versions = versions
            self._look()
        return self._tools

    def _look(self) -> None:
        """What cannot tell which tools it has keeps those that it had, and is asked again."""
        for number, source in enumerate(self._sources):
            found = _tools(source)
            if found is None:
                self._versions[number] = _FAILED
            else:
                self._parts[number] = found
        tools = tuple(tool for part in self._parts for tool in part)
        if tools != self._tools:
            self._tools = tools


def _tools(source: ToolSource) -> Tools | None:
    """What it brings, or None if it cannot tell; what is no tool is left out."""
    try:
        with contained():
            found: Sequence[Tool] = source.tools()
        return tuple(tool for tool in found if _is_fit(tool))
    except Exception:  # a stranger's code runs here
        _log.warning("%s cannot tell which tools it has; the last ones stay", type(source).__name__, exc_info=True)
        return None


def _is_fit(tool: Tool) -> bool:
    """One that a host does not know how to write would fail every call to a model."""
    fit = isinstance(tool, Tool) and NAME.fullmatch(tool.spec.name) is not None
    if not fit:
        what = tool.spec.name if isinstance(tool, Tool) else type(tool).__name__
        _log.warning("a tool %.100r is left out: a name has up to 64 letters (a to z), digits, _ and -", what)
    return fit


class Joined:
    """A kit of the house, together with what sources bring; nothing they bring takes the place of what is there."""

    def __init__(self, kit: Kit) -> None:
        self.own = kit
        self._brought: Tools = ()
        self._whole = kit

    def with_tools(self, brought: Tools) -> Kit:
        if brought is not self._brought:
            tools = dict(self.own.tools)
            for tool in brought:
                if tools.setdefault(tool.spec.name, tool) is not tool:
                    _log.warning("a tool %r is left out: there is one of this name already", tool.spec.name)
            self._brought, self._whole = brought, replace(self.own, tools=tools)
        return self._whole
