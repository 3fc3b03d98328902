"""Slack as a channel: what it hears and how, what it sends and shows."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import parse_qs

import msgspec
from msgspec import structs

from ...core.mail import Address, Outbound, ReplyTo
from ...errors import EverloopError, Undeliverable
from ...ports import Deliver, Http
from ...ports.channel import FileRef, Hook, HookAnswer, HookRequest, Incoming, OutgoingPart, Probed, Rendered
from ...readings.keys import name_of
from ..text import SLACK, render
from ..wellformed import read_json
from .api import SlackApi
from .codec import SlackReader, is_begun_by, people_in, place_of, press, seconds_of, slash
from .drafts import SlackDrafts
from .files import SlackFiles
from .history import missed
from .manifest import MANIFEST, SCOPES, SlackSettings
from .messages import SECTION, answered, changed, emoji_name, message_fields, place_fields, text_fields
from .people import SlackPeople, self_of
from .refusals import MARKUP, SlackRefused, to_send
from .signing import UnsignedEvent, check
from .socket_mode import SlackSocketMode
from .threads import SlackThreads
from .words import typable

_log = logging.getLogger("everloop.channels.slack")

LARGEST = 1_000_000  # bytes of a request to the hook
PERIOD = 60.0  # seconds between two messages with which it is told where to go on
WORKING = "is working on it…"
_GONE = ("message_not_found", "channel_not_found", "thread_not_found")


class SlackChannel:
    """The Channel."""

    manifest = MANIFEST

    def __init__(self, chosen: SlackSettings, http: Http, clock: Callable[[], float] = time.time) -> None:
        self._chosen = chosen
        self._http = http
        self._clock = clock
        self._api = SlackApi(http, chosen.api_url, chosen.bot_token, chosen.app_token)
        self._people = SlackPeople(self._api)
        self._drafts = SlackDrafts(self._api)
        self._files = SlackFiles(http, self._api, chosen.files_url, chosen.bot_token)
        self._threads = SlackThreads(self._api, clock())
        self._is_caught_up = False
        self._told = 0.0  # where to go on, as it was told last
        self._silent: set[str] = set()  # kinds of chats, by their letter, in which no status can be shown

    # In.

    async def run(self, deliver: Deliver, resume: str) -> None:
        await self._people.me()

        async def take(kind: str, payload: Mapping[str, Any]) -> None:
            await self._take(kind, payload, deliver)

        async def catch_up() -> None:
            await self._catch_up(deliver, resume)

        if self._chosen.mode == "events":
            await catch_up()  # what comes in from now on comes through the gateway
        else:
            await SlackSocketMode(self._api, self._http, take).run(catch_up)

    async def _catch_up(self, deliver: Deliver, resume: str) -> None:
        """Where to go on is told only when nothing before is missing any more."""
        self._is_caught_up = False
        team = (await self._people.me()).team
        async for event in missed(self._api, resume, self._clock()):
            if incoming := await self._read({"team_id": team, "event": event}):
                await deliver(incoming)
        self._is_caught_up = True

    def _resume_after(self, incoming: Incoming) -> str:
        """Not with each: what was said a while before is looked through anyhow, and what is refused costs a commit."""
        at = seconds_of(place_of(incoming.reply_to).ts)
        if not self._is_caught_up or at < self._told + PERIOD:
            return ""
        self._told = at
        return place_of(incoming.reply_to).ts

    def hooks(self, deliver: Deliver) -> Sequence[Hook]:
        if self._chosen.mode != "events":
            return []

        async def answer(request: HookRequest) -> HookAnswer:
            return await self._answer(request, deliver)

        return [Hook("POST", "", answer, LARGEST)]

    async def _answer(self, request: HookRequest, deliver: Deliver) -> HookAnswer:
        try:
            check(request.headers, request.body, self._chosen.signing_secret, self._clock())
        except UnsignedEvent as error:
            _log.warning("an event was refused: %s", error)
            return _told(401, error="this request is not signed as Slack signs")
        try:
            kind, payload = _posted(request)
        except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
            return _told(400, error="the body is none of Slack's")
        if payload.get("type") == "url_verification":
            return _told(200, challenge=str(payload.get("challenge", ""))[:1000])
        if payload.get("type") == "app_rate_limited":
            _log.warning("Slack keeps events back: more than 30,000 came within an hour")
        await self._take(kind, payload, deliver)
        return HookAnswer(200)

    async def _take(self, kind: str, payload: Mapping[str, Any], deliver: Deliver) -> None:
        """Commit it. What is not for us, and what the house refuses, is acknowledged all the same."""
        match kind:
            case "events_api":
                if incoming := await self._read(payload):
                    delivered = await deliver(incoming, self._resume_after(incoming))
                    if incoming.mentioned and not delivered.refused:
                        self._threads.join(incoming.chat, incoming.thread)
            case "interactive":
                await self._pressed(payload, deliver)
            case "slash_commands":
                await self._typed(slash(payload, (await self._people.me()).team), deliver)

    async def _read(self, payload: Mapping[str, Any]) -> Incoming | None:
        me = await self._people.me()
        reader = SlackReader(me, self._chosen.reply_in_thread)
        if reader.event(payload) is None:
            return None
        incoming = reader.event(payload, await self._people.names(people_in(payload)))
        if incoming is None or incoming.direct or incoming.mentioned or incoming.replies or is_begun_by(incoming):
            return incoming
        return structs.replace(incoming, replies=await self._threads.are_ours(incoming.chat, incoming.thread, me.user))

    async def _pressed(self, payload: Mapping[str, Any], deliver: Deliver) -> None:
        incoming = press(payload, (await self._people.me()).team)
        if incoming is None:
            return
        names = await self._people.names([incoming.account])
        incoming = structs.replace(incoming, name=names.get(incoming.account, incoming.name))
        delivered = await deliver(incoming)
        if delivered.refused or not delivered.fresh:
            return
        verb = "Deny" if incoming.text.startswith("/deny") else "Approve"
        who, place, message = incoming.name or incoming.account, place_of(incoming.reply_to), payload.get("message")
        if not isinstance(message, dict):
            return
        # In a group whoever pressed it may not be the one who decides, and that one still needs the buttons.
        fields = answered(message, who, verb, keeps_buttons=not incoming.direct)
        try:
            await self._api.send("chat.update", channel=place.chat, ts=place.ts, **fields)
        except EverloopError as error:
            _log.info("a question stays as it was: %s", error)

    async def _typed(self, incoming: Incoming, deliver: Deliver) -> None:
        """A command is typed anywhere, also where two others speak with each other: then it is for our own chat with
        whoever typed it."""
        if incoming.direct:
            try:
                chat = await self._people.chat_with(incoming.account)
            except Undeliverable as error:
                _log.info("a command has nowhere to be answered: %s", error)
                return
            incoming = structs.replace(incoming, chat=chat)
        await deliver(incoming)

    # Out.

    def render(self, outbound: Outbound) -> tuple[Rendered, ...]:
        """A question fits into a section, above its buttons. What it asks people to type has to pass Slack by."""
        if not outbound.approval:
            text = typable(outbound.text) if outbound.key.startswith("command:") else outbound.text
            return render(text, SLACK, self.manifest.traits.text_limit)
        answer = f"approve {outbound.approval}"
        return render(outbound.text.replace(f"/{answer}", f"!{answer}"), SLACK, SECTION)

    async def send(self, part: OutgoingPart) -> str:
        place = place_fields(part)
        await self._api.see_whether_it_answers()
        self._threads.join(place["channel"], place["thread_ts"] or "")
        carried = [file for file in part.files if file.data]
        if carried and not part.text:
            return await self._files.send(carried[0], place)
        fields = message_fields(part)
        if part.draft and (receipt := await self._drafts.become(part.draft, fields)):
            return receipt
        receipt = await self._post(place, fields)
        if part.draft:
            await self._forget(part.draft)
        return receipt

    async def _post(self, place: dict[str, Any], fields: dict[str, Any]) -> str:
        try:
            posted = (await self._api.call("chat.postMessage", **place, **fields)).fields
        except SlackRefused as error:
            if error.word in MARKUP and "blocks" in fields:
                return await self._post(place, {name: value for name, value in fields.items() if name != "blocks"})
            raise to_send(error) from error
        return f"{posted.get('channel', place['channel'])}:{posted.get('ts', '')}"

    async def _forget(self, shown: str) -> None:
        try:
            await self._drafts.take_away(shown)
        except (SlackRefused, EverloopError) as error:
            _log.info("a draft stays beside its answer: %s", error)

    async def preview(self, address: Address, shown: str, text: str, reply_to: ReplyTo) -> str:
        return await self._drafts.show(address, shown, text, reply_to)

    async def signal(self, address: Address, what: Literal["typing", "done"], reply_to: ReplyTo) -> None:
        """Only threads show it."""
        chat, thread = name_of(address.chat), name_of(address.thread)
        if not thread or chat[:1] in self._silent:
            return
        status = WORKING if what == "typing" else ""
        try:
            await self._api.call("assistant.threads.setStatus", channel_id=chat, thread_ts=thread, status=status)
        except SlackRefused:
            self._silent.add(chat[:1])

    async def fetch(self, ref: FileRef, limit: int) -> tuple[str, bytes]:
        return await self._files.fetch(ref, limit)

    async def react(self, address: Address, to: ReplyTo, emoji: str) -> None:
        place, name = place_of(to), emoji_name(emoji)
        if not place.ts:
            raise Undeliverable("there is no message to react to")
        if not name:
            raise Undeliverable(f"Slack has names for emoji: write one such as :eyes: in place of {emoji[:20]}")
        try:
            await self._api.call("reactions.add", channel=place.chat, timestamp=place.ts, name=name)
        except SlackRefused as error:
            if error.word != "already_reacted":
                raise to_send(error) from error

    async def replace(self, address: Address, sent: str, text: Rendered) -> None:
        chat, ts = _sent(sent)
        await self._api.send("chat.update", channel=chat, ts=ts, **changed(text_fields(text.text, text.plain)))

    async def withdraw(self, address: Address, sent: str) -> None:
        if sent.startswith("file:"):
            await self._files.withdraw(sent.removeprefix("file:"))
            return
        chat, ts = _sent(sent)
        try:
            await self._api.call("chat.delete", channel=chat, ts=ts)
        except SlackRefused as error:
            if error.word not in _GONE:
                raise to_send(error) from error

    async def chat_with(self, account: str) -> str:
        return await self._people.chat_with(account)

    async def probe(self) -> Probed:
        reply = await self._api.ask_who_we_are()
        me, team = self_of(reply.fields), reply.fields.get("team")
        if self._chosen.mode == "socket":
            await self._api.ask_for_socket()
        missing = [
            f"The scope {scope}, {why}. Add it under OAuth & Permissions, then install the app again."
            for scope, why in SCOPES.items()
            if reply.scopes and scope not in reply.scopes
        ]
        account = f"{reply.fields.get('user', me.user)} in {team}" if team else str(reply.fields.get("user", me.user))
        link = f"{me.url}team/{me.user}" if me.url.startswith("https://") else ""
        return Probed(account=account, missing=tuple(missing), link=link)


def _posted(request: HookRequest) -> tuple[str, Mapping[str, Any]]:
    """What it is and what it says. Raises ValueError, DecodeError."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        return "events_api", read_json(request.body, dict[str, Any])
    form = {name: values[0] for name, values in parse_qs(request.body.decode(), max_num_fields=100).items()}
    if "payload" in form:
        return "interactive", read_json(form["payload"], dict[str, Any])
    return ("slash_commands" if "command" in form else ""), form


def _sent(receipt: str) -> tuple[str, str]:
    chat, _, ts = receipt.partition(":")
    if not ts or chat == "file":
        raise Undeliverable("only a message can be changed, not a file")
    return chat, ts


def _told(status: int, **told: str) -> HookAnswer:
    return HookAnswer(status, msgspec.json.encode(told))
