"""The Matrix channel: how it speaks with its homeserver."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable
from html import escape
from typing import Any, Literal, TypeVar

from ...core.mail import Address, Outbound, ReplyTo
from ...errors import ChannelDown, ProviderError, Undeliverable, VaultLocked
from ...ports import Deliver, Http
from ...ports.channel import FileRef, OutgoingFile, OutgoingPart, Probed, Rendered
from ...ports.channel_state import ChannelRecords
from ..text import MATRIX, draft, render
from .codec import APPROVAL, NO, PRIVATE, YES, media_of, relation_of, secret_in
from .deciphering import Deciphering
from .device import OurDevice
from .direct import DirectChats
from .drafts import LeftDrafts, marked
from .e2ee.attachments import decrypted
from .e2ee.encrypted_rooms import EncryptedRooms
from .e2ee.waiting import WaitingMessages
from .encrypted import UnreadableRooms
from .homeserver import Homeserver, HomeserverRefused, OversizedReply, path_of, unheard, unsent
from .joining import Joining
from .listening import MatrixListener
from .lookup import Lookup
from .manifest import MANIFEST, MatrixSettings
from .rooms import NoTroubles, Rooms, RoomTroubles
from .sending import EventSender
from .sync import SyncReader
from .writing import message_of, related, replacing, reply_of, room_of, thread_of, transaction_of

_log = logging.getLogger("everloop.channels.matrix")

FETCHING = 55.0
_Got = TypeVar("_Got")


class Matrix:
    """Renders, Previews, Signals, Fetches, Reacts, Replaces, OpensChats, Probes."""

    manifest = MANIFEST

    def __init__(self, chosen: MatrixSettings, http: Http, state: ChannelRecords | None = None) -> None:
        """Without `state`, or without the extra [matrix-e2ee], encrypted messages are neither read nor written."""
        self._chosen = chosen
        self._state = state
        self._server = Homeserver(chosen.homeserver, chosen.access_token, http)
        self._device = OurDevice(self._server, state, chosen.user_id)
        self._encrypted = EncryptedRooms(self._server, state)
        self._events = EventSender(self._server, self._device, self._encrypted)
        self._lookup = Lookup(self._server, self._device)
        self._left = LeftDrafts(self._server, self._device)
        self._troubles = RoomTroubles()
        self._rooms: Rooms | None = None  # as whoever listens knows them

    async def run(self, deliver: Deliver, resume: str) -> None:
        """Raises ChannelRefused when the token is not accepted; a connection that is lost is the supervisor's."""
        try:
            us = await self._device.account()
            self._rooms = rooms = Rooms(self._server, us.user, self._troubles)
            await MatrixListener(
                self._server,
                SyncReader(self._server, us.user, self._troubles),
                await self._deciphering(us.user),
                us,
                rooms,
                self._lookup,
                Joining(self._server, rooms, us.user, self._chosen.join, deliver),
                UnreadableRooms(self._server, rooms, us.user, may_invite=self._chosen.join != "never"),
                deliver,
                receipts=self._chosen.receipts,
            ).run(resume)
        except BaseExceptionGroup as group:
            raise _heard(group.exceptions[0]) from group
        except HomeserverRefused as error:
            raise unheard(error) from error
        finally:
            self._rooms = None  # nobody tells of changes any more

    async def _private(self, address: Address, room: str) -> str:
        """The room. What is for one person is not said there once others read it. Raises ChannelDown, Undeliverable."""
        if not address.chat.startswith(PRIVATE) or (self._rooms and self._rooms.is_surely_direct(room)):
            return room
        us = await _calling(self._device.account())
        try:
            standing = await _calling(Rooms(self._server, us.user, NoTroubles()).standing(room))
        except ProviderError as error:
            raise ChannelDown(str(error)) from error
        if not standing.direct:
            raise Undeliverable("others have come into this room, or could: what is for one person is not said there")
        return room

    async def _deciphering(self, us: str) -> Deciphering | None:
        """None where encrypted messages are not read."""
        encryption = await self._device.encryption()
        if encryption is None or self._state is None:
            _log.info("matrix: %s", await self._device.hindrance())
            return None
        waiting = WaitingMessages(self._state, us, self._device.id)
        return Deciphering(encryption, self._encrypted, waiting, self._events)

    def render(self, outbound: Outbound) -> tuple[Rendered, ...]:
        return render(outbound.text, MATRIX)

    async def send(self, part: OutgoingPart) -> str:
        room = await self._private(part.address, _room(part.address, part.reply_to))
        transaction = transaction_of(part.key)
        [*carried] = [file for file in part.files if file.data]
        if carried and not part.text.strip():
            return await self._send_file(part, carried[0], room)
        sent = await self._send_text(part, room, transaction)
        if part.approval and not await _calling(self._encrypted.find(room)):
            await self._offer_answers(room, sent)
        return sent

    async def _send_text(self, part: OutgoingPart, room: str, transaction: str) -> str:
        content, draft = self._content(part), part.draft
        if not draft and part.number == 0 and part.kind == "reply":
            draft = await self._left_draft(room, part.reply_to)
        if draft:
            try:
                await _calling(self._events.put(room, transaction, replacing(content, draft)))
                return draft
            except Undeliverable:
                await self._forget(room, draft)
        thread = thread_of(part.address, part.reply_to)
        return await _calling(self._events.put(room, transaction, related(content, part.reply_to, thread)))

    async def _left_draft(self, room: str, reply_to: ReplyTo) -> str:
        there = reply_of(reply_to)
        us = await _calling(self._device.account())
        return await _calling(self._left.take(room, us.user, there.event if there else ""))

    def _content(self, part: OutgoingPart) -> dict[str, Any]:
        text, plain = part.text, part.plain
        if lines := [file.mention for file in part.files if not file.data]:
            text += (
                "".join(f"<br>{escape(line)}" for line in lines) if plain else "".join(f"\n{line}" for line in lines)
            )
            plain = "\n".join([plain, *lines]) if plain else ""
        there = reply_of(part.reply_to)
        mention = there.account if there and part.number == 0 else ""
        content = message_of(text, plain, notice=self._chosen.notices, mention=mention)
        return {**content, APPROVAL: part.approval} if part.approval else content

    async def _send_file(self, part: OutgoingPart, file: OutgoingFile, room: str) -> str:
        content = await _calling(self._events.upload(room, file))
        content = related(content, part.reply_to, thread_of(part.address, part.reply_to))
        return await _calling(self._events.put(room, transaction_of(part.key), content))

    async def _offer_answers(self, room: str, question: str) -> None:
        """A reaction that stands there already is pressed with one touch."""
        for key in (YES, NO):
            try:
                await self._annotate(room, question, key)
            except (HomeserverRefused, ProviderError) as error:
                _log.info("matrix: %s", error)

    async def _annotate(self, room: str, event: str, key: str) -> None:
        relation = {"rel_type": "m.annotation", "event_id": event, "key": key}
        try:
            await self._events.put(
                room, transaction_of("reaction", event, key), {"m.relates_to": relation}, "m.reaction"
            )
        except HomeserverRefused as error:
            if error.code != "M_DUPLICATE_ANNOTATION":
                raise

    async def react(self, address: Address, to: ReplyTo, emoji: str) -> None:
        there = reply_of(to)
        if there is None:
            raise Undeliverable("there is no message to react to")
        await _calling(self._annotate(_room(address, to), there.event, emoji))

    async def preview(self, address: Address, shown: str, text: str, reply_to: ReplyTo) -> str:
        room = _room(address, reply_to)
        if not text:
            await _calling(self._redact(room, shown))
            return ""
        await self._private(address, room)
        written, there = draft(text, MATRIX), reply_of(reply_to)
        content = message_of(written.text, written.plain, notice=self._chosen.notices)
        content = marked(content, there.event if there else "")
        if shown := shown or await self._left_draft(room, reply_to):
            await _calling(self._events.put(room, secrets.token_hex(16), replacing(content, shown), draft=True))
            return shown
        content = related(content, reply_to, thread_of(address, reply_to))
        async with self._left.showing(room):
            return await _calling(self._events.put(room, secrets.token_hex(16), content, draft=True))

    async def signal(self, address: Address, what: Literal["typing", "done"], reply_to: ReplyTo) -> None:
        us = await _calling(self._device.account())
        told = {"typing": True, "timeout": 30_000} if what == "typing" else {"typing": False}
        await _calling(self._server.put(path_of("rooms", _room(address, reply_to), "typing", us.user), told))

    async def fetch(self, ref: FileRef, limit: int) -> tuple[str, bytes]:
        """From our own homeserver, which has it from wherever it is. Older ones have no v1 of it."""
        try:
            server, id, name = media_of(ref)
            secret = secret_in(ref)
        except ValueError as error:
            raise Undeliverable(str(error)) from error
        data = await self._downloaded(server, id, limit)
        try:
            return name, await asyncio.to_thread(decrypted, data, secret) if secret else data
        except ValueError as error:
            raise Undeliverable(str(error)) from error

    async def _downloaded(self, server: str, id: str, limit: int) -> bytes:
        try:
            return await self._download("/_matrix/client/v1/media/download", server, id, limit)
        except HomeserverRefused as error:
            if error.code != "M_UNRECOGNIZED":
                raise unsent(error) from error
        return await _calling(self._download("/_matrix/media/v3/download", server, id, limit))

    async def _download(self, path: str, server: str, id: str, limit: int) -> bytes:
        try:
            return await self._server.fetch(f"{path}/{server}/{id}", {}, seconds=FETCHING, limit=limit)
        except OversizedReply as error:
            raise Undeliverable(f"it has more than {limit} bytes") from error
        except ProviderError as error:
            raise ChannelDown(str(error)) from error

    async def replace(self, address: Address, sent: str, text: Rendered) -> None:
        room = await self._private(address, _room(address, ReplyTo("")))
        content = message_of(text.text, text.plain, notice=self._chosen.notices)
        original = await self._original(room, sent)
        transaction = transaction_of("replace", original, text.text)
        await _calling(self._events.put(room, transaction, replacing(content, original)))

    async def withdraw(self, address: Address, sent: str) -> None:
        room = _room(address, ReplyTo(""))
        await _calling(self._redact(room, await self._original(room, sent)))

    async def _original(self, room: str, sent: str) -> str:
        """An answer that took the place of its draft may have been noted by the edit that did it."""
        event = await _calling(self._lookup.find(room, sent))
        return (relation_of(event.content).replaced if event else "") or sent

    async def _redact(self, room: str, event: str) -> None:
        try:
            await self._server.put(path_of("rooms", room, "redact", event, transaction_of("redact", event)), {})
        except HomeserverRefused as error:
            if error.code != "M_NOT_FOUND":
                raise

    async def _forget(self, room: str, event: str) -> None:
        try:
            await self._redact(room, event)
        except (HomeserverRefused, ProviderError) as error:
            _log.info("a draft of matrix is left: %s", error)

    async def chat_with(self, account: str) -> str:
        us = await _calling(self._device.account())
        rooms = Rooms(self._server, us.user, self._troubles)  # as they are now
        readable = await _calling(self._device.encryption()) is None
        return await _calling(DirectChats(self._server, rooms, us.user).find_or_make(account, readable=readable))

    async def probe(self) -> Probed:
        try:
            said = await self._server.get("/_matrix/client/versions")
            us = await self._device.account()
        except HomeserverRefused as error:
            raise unheard(error) from error
        except ProviderError as error:
            raise ChannelDown(str(error)) from error
        missing = [] if us.name else [f"{us.user} has no display name: give it one, by which people mention it"]
        versions = said.get("versions") if isinstance(said, dict) else None
        if not isinstance(versions, list) or not any(str(each).startswith("v1.") for each in versions):
            missing.append("the homeserver is older than version 1.1 of the specification: update it")
        if self._state and (hindrance := await _calling(self._device.hindrance())):
            missing.append(hindrance)
        return Probed(account=us.user, missing=tuple(missing), link=f"https://matrix.to/#/{us.user}")


async def _calling(call: Awaitable[_Got]) -> _Got:
    """Raises ChannelDown, Undeliverable; and what may have arrived as it is."""
    try:
        return await call
    except (HomeserverRefused, ProviderError, OversizedReply) as error:
        raise unsent(error) from error
    except VaultLocked as error:  # nothing was sent
        raise ChannelDown(str(error)) from error


def _room(address: Address, reply_to: ReplyTo) -> str:
    try:
        return room_of(address, reply_to)
    except ValueError as error:
        raise Undeliverable(str(error)) from error


def _heard(error: BaseException) -> BaseException:
    return unheard(error) if isinstance(error, HomeserverRefused) else error
