"""Links that open a file for whoever has them, until they expire: for the users of a bot, who have no login here.

A link names the file, whose it is, what it is called and until when, and is signed (HMAC) with a key that lies in the
vault; it opens nothing of somebody who is blocked. Files of a
bucket go through here as well: it need not be reached from elsewhere, and all that is given out has the same headers.
"""

import base64
import hmac
from collections.abc import Awaitable, Callable, Iterable, Sequence
from hashlib import sha256
from typing import Protocol
from urllib.parse import quote

import msgspec
from aiohttp import web

from ..core.message import Made, Media
from ..core.ports import Clock, Directory, Files
from ..readings.filenames import plain_name
from .access.permissions import PUBLIC, Route
from .api.files import send_kept
from .file_links import link_of
from .http.errors import Refused, refusal

NO_LONGER = "This link does not hold, or not any more."
CACHE = "private, no-store"
_TOKEN = 600  # characters


class LinkAgent(Protocol):
    @property
    def clock(self) -> Clock: ...

    @property
    def files(self) -> Files: ...

    @property
    def store(self) -> Directory: ...

    @property
    def link_seconds(self) -> int:
        """For how long a link holds."""
        ...

    async def link_key(self) -> bytes | None:
        """None where the vault is locked: then nothing is signed, and no link holds."""
        ...


Links = Callable[[str, Sequence[Made]], Awaitable[list[dict[str, str]]]]


def signing(agent: LinkAgent) -> Links:
    """The links of the files of an answer, each signed if that can be."""

    async def links(thread: str, files: Iterable[Made]) -> list[dict[str, str]]:
        told = []
        for made in files:
            link = link_of(thread, made.seq, made.media)
            key = await agent.link_key() if made.media.owner and made.media.file.startswith("file:") else None
            until = int(agent.clock.now()) + agent.link_seconds
            told.append(link | {"url": _signed(key, made.media, until)} if key else link)
        return told

    return links


def _signed(key: bytes, media: Media, until: int) -> str:
    body, name = msgspec.json.encode((media.owner, until)), plain_name(media.name)
    token = f"{_text(body)}.{_signature(key, media.file, name, body)}"
    return f"/files/{media.file}/{quote(name, safe='')}?link={token}"


def _signature(key: bytes, ref: str, name: str, body: bytes) -> str:
    signed = msgspec.json.encode([ref, name]) + b"\n" + body
    return _text(hmac.digest(key, signed, sha256))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def routes(agent: LinkAgent) -> list[Route]:
    async def fetch(request: web.Request) -> web.StreamResponse:
        try:
            ref = request.match_info["ref"]
            name = request.match_info["name"]
            owner = await _owner(agent, ref, name, request.query.get("link", ""))
            return await send_kept(request, agent.files, owner, ref, name, CACHE)
        except Refused as refused:
            return refusal(refused)

    return [Route("GET", "/files/{ref}/{name}", fetch, PUBLIC)]  # the link itself says that it may be had


async def _owner(agent: LinkAgent, ref: str, name: str, token: str) -> str:
    """Whose file it is, if the link holds. Raises Refused."""
    key = await agent.link_key()
    text, _, signature = token.partition(".")
    if key is None or len(token) > _TOKEN:
        raise Refused(404, "not_found", NO_LONGER)
    try:
        body = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        known = hmac.compare_digest(_signature(key, ref, name, body).encode(), signature.encode("utf-8", "replace"))
        owner, until = msgspec.json.decode(body, type=tuple[str, int]) if known else ("", 0)
    except (ValueError, msgspec.DecodeError) as error:
        raise Refused(404, "not_found", NO_LONGER) from error
    person = await agent.store.person(owner) if known else None
    if not known or until <= agent.clock.now() or (person and person.blocked):
        raise Refused(404, "not_found", NO_LONGER)
    return owner
