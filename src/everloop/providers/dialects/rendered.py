"""Bytes that were rendered for a transcript, kept with it.

Each message is serialised once, and the beginning of a request never differs from that of the one before: hosts cache
by prefix. What is kept is good for one way of speaking (a host, a model, its quirks); two are kept at a time, so that
a fallback that goes back and forth does not render everything anew.
"""

import base64
import json
from collections.abc import Hashable
from typing import Any

import msgspec

from ...core.message import Media
from ...core.prompt import Prompt, Transcript

_WAYS = 2


class RenderedPrompt:
    """`messages` are the rendered ones, of which `count` messages of the transcript have become part; `head` is what
    stands before them, good for as long as `made_of` stays the same."""

    __slots__ = ("count", "head", "made_of", "messages")

    def __init__(self) -> None:
        self.made_of: tuple[Any, ...] = ()
        self.head = b""
        self.count = 0
        self.messages: list[bytes] = []


def rendered_for(transcript: Transcript, way: Hashable) -> RenderedPrompt:
    """What was kept for this way of speaking, or a new and empty one."""
    kept: RenderedPrompt | None = transcript.rendered.get(way)
    if kept is None:
        if len(transcript.rendered) >= _WAYS:
            transcript.rendered.clear()
        kept = transcript.rendered[way] = RenderedPrompt()
    return kept


def content_of(media: Media, prompt: Prompt) -> str | None:
    """The base64 of an image or document, or None when the model is to read its name alone."""
    data = prompt.transcript.files.get(media.file) if prompt.sees else None
    return None if data is None else base64.b64encode(data).decode()


def note_of(media: Media) -> str:
    """What a model that cannot see it is told."""
    return f"[{media.name or media.mime}: not shown]"


_encode = msgspec.json.Encoder().encode


def to_json(value: Any) -> bytes:
    try:
        return _encode(value)
    except UnicodeEncodeError:
        # Half a character, as in a file name that is not UTF-8: msgspec refuses it, and so would the host.
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
