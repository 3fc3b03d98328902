"""From what a bot sends to a letter: where it was written, who speaks, and whether it has come before."""

from typing import Annotated

from aiohttp import web
from msgspec import Meta, Struct

from ...core.mail import Address, Inbound, Said
from ...core.message import Part, Text
from ...core.people import OWNER
from ...readings.keys import author_of, escaped, group_at, place_of
from ..access.principal import lacking, principal_of
from ..http.blobs import blob_of, check_size, enclosed
from ..http.bodies import read_body, read_json, shaped
from ..http.errors import Refused
from ..http.repeats import event_of
from ..ports import TurnAgent

CHANNEL = "platform"
MOST_ATTACHMENTS = 20
_Name = Annotated[str, Meta(max_length=200)]
_Given = Annotated[str, Meta(min_length=1, max_length=200)]


class PlatformAttachment(Struct):
    url: Annotated[str, Meta(min_length=1)]  # or all of it, as a data: URL
    filename: _Name | None = None
    mime_type: _Name | None = None
    size_bytes: int | None = None


class PlatformMessage(Struct):
    platform: _Given
    platform_user_id: _Given
    content: str = ""
    platform_server_id: _Name | None = None
    platform_channel_id: _Name | None = None
    platform_thread_id: _Name | None = None
    attachments: Annotated[list[PlatformAttachment], Meta(max_length=MOST_ATTACHMENTS)] = []
    id: _Name | None = None
    attended: bool = False  # whoever wrote can be asked: the bot fetches questions from the outbox


async def write(agent: TurnAgent, request: web.Request) -> Inbound:
    principal = principal_of(request)
    bot = principal.user
    plain = read_json(await read_body(request))
    message = shaped(plain, PlatformMessage)
    principal.check_speaks_for(message.platform)
    # What a bot says of who speaks is believed of the owner's: another's knows nobody whom the owner has introduced.
    known_as = message.platform if bot == OWNER else f"{escaped(bot)}/{message.platform}"
    author = await _person_by(agent, author_of(known_as, message.platform_user_id))
    address = await _place(agent, message, known_as, bot)
    whose = group_at(address, bot)
    # Another's bot names whom it likes, and as many as it likes: what it brings takes room of whose bot it is.
    parts: list[Part] = [Text(message.content)] if message.content.strip() else []
    for attachment in message.attachments:
        parts.append(await _part(agent, attachment, (whose or author) if bot == OWNER else bot))
    if not parts:
        raise Refused(400, "message_refused", "The message is empty.", param="content")
    server = "/".join(address.chat.split("/")[:2]) if message.platform_server_id else ""  # of that platform
    letter = Said(tuple(parts), author, str(address), unattended=not message.attended, principal=whose, server=server)
    if scope := lacking(principal, letter):
        raise Refused(403, "forbidden", f"Whoever runs this bot has to give it a token of the scope {scope} for that.")
    named = f"{escaped(bot)}/{address}/{escaped(message.id)}" if message.id else ""
    event = named or event_of(bot, principal.credential, CHANNEL, plain)
    return Inbound(address, event, letter, bot)


async def _person_by(agent: TurnAgent, account: str) -> str:
    """Who it is that writes from an account: themselves, where nobody has introduced them."""
    person = await agent.store.known_by(account)
    if person and person.blocked:
        raise Refused(403, "forbidden", "This account is blocked.")
    return person.id if person else account


async def _place(agent: TurnAgent, message: PlatformMessage, known_as: str, bot: str) -> Address:
    """Where a message was written. Another's bot has places of its own, or it would take those to which the owner's
    comes later; it stays where it was before that was so. Raises Refused."""
    address = address_of(message)
    row = await agent.store.session(str(address))
    if bot != OWNER and (row is None or row.owner != bot):
        address = address_of(message, known_as)
        row = await agent.store.session(str(address))
    if row is not None and row.owner != bot:
        raise Refused(404, "session_not_found", "This place belongs to someone else's bot.")
    return address


def address_of(message: PlatformMessage, platform: str = "") -> Address:
    """Without a channel it is a conversation of the two alone."""
    return place_of(
        CHANNEL,
        platform or message.platform,
        message.platform_server_id or "",
        user=message.platform_user_id,
        room=message.platform_channel_id or "",
        thread=message.platform_thread_id or "",
    )


async def _part(agent: TurnAgent, attachment: PlatformAttachment, owner: str) -> Part:
    """What it is said to be is not believed; its bytes tell. But what is said to be too large need not be fetched."""
    check_size(attachment.size_bytes or 0)
    return await enclosed(agent, blob_of(attachment.url, attachment.filename or ""), owner)
