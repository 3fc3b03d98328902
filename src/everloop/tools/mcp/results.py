"""What a server answers, as a tool's result: a stranger's text, images and files, with their limits."""

import json
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    ReadResourceResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from ...core.message import Media
from ...errors import NoRoom, StoreFull, ToolError
from ...ports import KeepsFiles
from ...ports.tools import CallContext, Picture, Shown
from ...readings.filenames import plain_name
from ...readings.media import kind_of, limit_of
from ..redaction import redacted
from ..untrusted import fence
from .guard import LEFT_OUT
from .limits import FILES, LONGEST_ERROR, LONGEST_TEXT, MEDIA_BYTES, PICTURES
from .schema import cleaned

_PIECE = 1 << 20

Block = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


def origin_of(server: str) -> str:
    return f"MCP server {server}"


class ResultReader:
    """Reads the answers of one server. Files that a model cannot be shown are kept for whoever has called, where there
    is a `keeper`."""

    def __init__(self, server: str, keeper: KeepsFiles | None = None, hidden: Mapping[str, str] = {}) -> None:
        """`hidden` are values that are not shown, by what is shown in their place."""
        self._origin = origin_of(server)
        self._keeper = keeper
        self._hidden = hidden

    async def of_call(self, result: CallToolResult, context: CallContext, asides: Sequence[str] = ()) -> Shown:
        """`asides` tell what else it said meanwhile. Raises ToolError where the server says that it failed."""
        draft = _ResultDraft(self._origin, self._hidden, None if result.is_error else self._keeper, context)
        for block in result.content:
            await draft.add(block)
        draft.add_structured(result.structured_content)
        draft.texts += asides
        draft.note_left_out(result.meta)
        if result.is_error:
            raise draft.failure()
        return draft.shown()

    async def of_resource(self, result: ReadResourceResult) -> Shown:
        draft = _ResultDraft(self._origin, self._hidden)
        for contents in result.contents:
            await draft.add_contents(contents)
        draft.note_left_out(result.meta)
        return draft.shown()

    async def of_prompt(self, result: GetPromptResult) -> Shown:
        draft = _ResultDraft(self._origin, self._hidden)
        for message in result.messages:
            draft.texts.append(f"{message.role}:")
            await draft.add(message.content)
        draft.note_left_out(result.meta)
        return draft.shown()


class _ResultDraft:
    """A result in the making."""

    def __init__(
        self,
        origin: str,
        hidden: Mapping[str, str],
        keeper: KeepsFiles | None = None,
        context: CallContext | None = None,
    ) -> None:
        self._origin = origin
        self._hidden = hidden
        self._keeper = keeper
        self._context = context
        self._bytes = 0
        self._attached: list[str] = []
        self._pictures: list[Picture] = []
        self._made: list[Media] = []
        self.texts: list[str] = []
        self.notes: list[str] = []

    async def add(self, block: Block) -> None:
        match block:
            case TextContent(text=text):
                self.texts.append(text)
            case ImageContent(data=data, mime_type=mime) | AudioContent(data=data, mime_type=mime):
                await self._add_data(data, mime, block.type)
            case ResourceLink(uri=uri, name=name, description=said):
                self.texts.append(f"link to {uri} ({name}{f': {said}' if said else ''})")
            case EmbeddedResource(resource=resource):
                await self.add_contents(resource)

    async def add_contents(self, contents: TextResourceContents | BlobResourceContents) -> None:
        match contents:
            case TextResourceContents(uri=uri, text=text):
                self.texts.append(f"{uri}:\n{text}")
            case BlobResourceContents(uri=uri, blob=blob, mime_type=mime):
                await self._add_data(blob, mime or "", uri)

    def add_structured(self, value: Any) -> None:
        """Most servers say the same as text, too, and some of them give their attachments once more."""
        if value is None or _is_said(value, self.texts):
            return
        text = json.dumps(value, ensure_ascii=False)
        for number, data in enumerate(self._attached, 1):
            text = text.replace(f'"{data}"', f'"attachment {number}"')
        self.texts.append(text)

    def note_left_out(self, meta: Any) -> None:
        if count := (meta or {}).get(LEFT_OUT):
            self.notes.append(f"{count:,} more items of its answer were left out")

    async def _add_data(self, data: str, mime: str, what: str) -> None:
        """Its name and kind are the server's words; our notes call it by its number."""
        self._attached.append(data)
        self.texts.append(f"attachment {len(self._attached)}: {plain_name(what)} ({cleaned(mime, 60)})")
        if len(data) // 4 * 3 > MEDIA_BYTES - self._bytes:
            self._note(f"was left out: with one answer, {MEDIA_BYTES:,} bytes are taken at most")
            return
        try:
            raw = b64decode(data, validate=True)
        except (NotBase64, ValueError):
            self._note("was left out: it is not base64")
            return
        self._bytes += len(raw)
        if kind := kind_of(raw):
            self._show(Picture(raw, kind, plain_name(what)))
        else:
            await self._keep(raw, plain_name(what))

    def _show(self, picture: Picture) -> None:
        if len(self._pictures) >= PICTURES or len(picture.data) > limit_of(picture.mime):
            self._note("was left out: it is too large, or one too many")
            return
        self._pictures.append(picture)

    async def _keep(self, raw: bytes, name: str) -> None:
        if self._keeper is None or self._context is None or len(self._made) >= FILES:
            self._note(f"({len(raw):,} bytes) cannot be shown, and was not kept")
            return
        owner = self._context.principal
        try:
            record = await self._keeper.keep(owner, _pieces(raw), name)
        except (NoRoom, StoreFull, OSError) as error:
            self._note(f"({len(raw):,} bytes) could not be kept: {error}")
            return
        self._made.append(Media(record.ref, record.mime, name, owner))
        self._note(f"({len(raw):,} bytes) goes with the answer; it is {record.ref}")

    def _note(self, what: str) -> None:
        self.notes.append(f"attachment {len(self._attached)} {what}")

    def shown(self) -> Shown:
        return Shown(self._fenced(LONGEST_TEXT), tuple(self._pictures), origin=self._origin, made=tuple(self._made))

    def failure(self) -> ToolError:
        return ToolError(self._fenced(LONGEST_ERROR), origin=self._origin)

    def _fenced(self, longest: int) -> str:
        text = redacted("\n".join(self.texts), self._hidden)
        cut = [f"cut after {longest:,} of {len(text):,} characters"] if len(text) > longest else []
        shown = fence(text[:longest], self._origin)
        return "\n".join([shown, *(f"[{note}]" for note in (*cut, *self.notes))])


def _is_said(value: Any, texts: Sequence[str]) -> bool:
    """Whether a text says it; what is no object a server has to put into one, under a name of its choice."""
    [held] = value.values() if isinstance(value, dict) and len(value) == 1 else [value]
    read = [_read(text) for text in texts]
    return value in read or held in (*read, *texts) or (bool(texts) and held in (read, [*texts]))


def _read(text: str) -> Any:
    """As JSON, if it is."""
    try:
        return json.loads(text) if len(text) <= LONGEST_TEXT else text
    except (ValueError, RecursionError):
        return text


async def _pieces(raw: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(raw), _PIECE):
        yield raw[at : at + _PIECE]
