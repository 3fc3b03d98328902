"""Documents that are not text: read as text, and made from text.

The libraries for them are large, slow to import, and read what strangers wrote. So they run in a process of its own
(`documents_apart`), with limits on time and memory, and are asked for only when a document is met.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import msgspec

from ..errors import ToolError
from ..readings.media import office_of
from .worker import run_apart

LARGEST = 50_000_000
_SECONDS = 30.0
_LARGEST_WRITTEN = 300_000_000
_LIBRARIES = {"pdf": "pypdf", "docx": "docx", "xlsx": "openpyxl"}
_MAKERS = {**_LIBRARIES, "pdf": "fpdf"}


def office_kind(data: bytes) -> str:
    """docx or xlsx, by what is inside; "" for anything else."""
    kind = office_of(data)
    return kind if kind in _LIBRARIES else ""


def can_use(kind: str) -> bool:
    """Whether the library that reads this kind is installed."""
    return kind not in _LIBRARIES or find_spec(_LIBRARIES[kind]) is not None


def can_make(kind: str) -> bool:
    """Whether the library that makes this kind is installed."""
    return kind not in _MAKERS or find_spec(_MAKERS[kind]) is not None


def require_maker(name: str, kind: str) -> None:
    """Raises ToolError."""
    if not can_make(kind):
        raise ToolError(_MISSING.format(name=name, kind=kind))


_MISSING = "{name!r} needs a library for {kind}; it comes with: pip install 'everloop[documents]'"


def _require(name: str, kind: str) -> None:
    if not can_use(kind):
        raise ToolError(_MISSING.format(name=name, kind=kind))


async def text_of_document(name: str, kind: str, data: bytes) -> str:
    """What a document says. Raises ToolError."""
    _require(name, kind)
    ran = await run_apart("everloop.tools.documents_worker", _request("read", kind) + data, seconds=_SECONDS)
    if ran.problem:
        raise ToolError(f"{name!r} cannot be read as {kind}: {_last_line(ran.problem)}")
    text = ran.out.decode("utf-8", "replace")
    return f"{text}\n[it was too much to read; the rest is missing]" if ran.late else text


async def document_of(name: str, kind: str, blocks: Sequence[Any], sheets: dict[str, Any]) -> bytes:
    """A document with these blocks and tables. Raises ToolError."""
    require_maker(name, kind)
    request = _request("make", kind) + msgspec.json.encode({"blocks": blocks, "sheets": sheets})
    # openpyxl puts a sheet into a temporary file first.
    ran = await run_apart("everloop.tools.documents_worker", request, seconds=_SECONDS, writes=_LARGEST_WRITTEN)
    if ran.problem or ran.late:
        raise ToolError(f"{name!r} cannot be made: {_last_line(ran.problem) or 'it took too long'}")
    return ran.out


def _request(verb: str, kind: str) -> bytes:
    return f"{verb} {kind}\n".encode()


def _last_line(problem: str) -> str:
    """Of a traceback what the error says."""
    line = problem.rpartition("\n")[2]
    kind, _, what = line.partition(": ")
    return (what if what and " " not in kind else line)[:300]
