"""Links that open a file for whoever has them, until they expire: for the users of a bot, who have no login here.

A link names the file, whose it is, what it is called and until when, and is signed (HMAC) with a key that lies in the
vault; it opens nothing of somebody who is blocked. Files of a
bucket go through here as well: it need not be reached from elsewhere, and all that is given out has the same headers.
"""

import base64
import hmac
from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec
from aiohttp import web

from ..core.message import Made
from .access.permissions import PUBLIC, Route
from .api.files import send_kept
from .file_links import link_of
from .http.errors import Refused, refusal
from .link_signing import LinkAgent, signature_of, signed_link

NO_LONGER = "This link does not hold, or not any more."
CACHE = "private, no-store"
_TOKEN = 600  # characters

Links = Callable[[str, Sequence[Made]], Awaitable[list[dict[str, str]]]]


def signing(agent: LinkAgent) -> Links:
    """The links of the files of an answer, each signed if that can be."""

    async def links(thread: str, files: Iterable[Made]) -> list[dict[str, str]]:
        told = []
        for made in files:
            link, media = link_of(thread, made.seq, made.media), made.media
            key = await agent.link_key() if media.owner and media.file.startswith("file:") else None
            until = int(agent.clock.now()) + agent.link_seconds
            told.append(link | {"url": signed_link(key, media.owner, media.file, media.name, until)} if key else link)
        return told

    return links


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
        known = hmac.compare_digest(signature_of(key, ref, name, body).encode(), signature.encode("utf-8", "replace"))
        owner, until = msgspec.json.decode(body, type=tuple[str, int]) if known else ("", 0)
    except (ValueError, msgspec.DecodeError) as error:
        raise Refused(404, "not_found", NO_LONGER) from error
    if not known or until <= agent.clock.now() or await _is_barred(agent, owner):
        raise Refused(404, "not_found", NO_LONGER)
    return owner


async def _is_barred(agent: LinkAgent, owner: str) -> bool:
    """Whether it is of somebody who is blocked or being erased, also if it is from before their account was known."""
    person = await agent.store.person(owner) or await agent.store.known_by(owner)
    return person is not None and (person.blocked or person.erasing)
