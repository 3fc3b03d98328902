"""What Slack's events mean. No clock, no network.

A message is known by its chat and its timestamp: Slack tells of one that mentions us twice, as `message` and as
`app_mention`, and again when we were slow.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ...core.mail import ReplyTo
from ...ports.channel import FileRef, Incoming
from .words import MENTION, addressed, commanded, plain, typed

APPROVE, DENY = "everloop_approve", "everloop_deny"
_SPOKEN = (None, "file_share", "thread_broadcast", "me_message", "bot_message")
QUOTED = 4_000  # characters of what somebody passes on
PASSED_ON = "[passed on]"
_GONE = ("tombstone", "hidden_by_limit", "external")

Fields = Mapping[str, Any]


class SlackSelf(Struct, frozen=True):
    """Who we are there."""

    user: str
    bot: str = ""
    team: str = ""
    url: str = ""


class SlackPlace(Struct, frozen=True):
    """What is kept of a message, to answer it: the ReplyTo."""

    chat: str
    ts: str = ""
    thread: str = ""
    user: str = ""
    team: str = ""


class SlackFileRef(Struct, frozen=True):
    name: str
    url: str
    size: int = 0
    mime: str = ""


class SlackReader(Struct, frozen=True):
    """Reads events for somebody. With `in_threads` what is said in a channel begins a thread."""

    me: SlackSelf
    in_threads: bool = True

    def event(self, payload: Fields, names: Mapping[str, str] = {}) -> Incoming | None:
        """Of an `event_callback`: something that was said, changed or taken back; None for what is not for us."""
        event = payload.get("event")
        if not isinstance(event, Mapping) or event.get("type") not in ("message", "app_mention"):
            return None
        match event.get("subtype"):
            case "message_changed":
                return self._changed(payload, event, names)
            case "message_deleted":
                return self._withdrawn(payload, event, _map(event.get("previous_message")))
            case subtype if subtype in _SPOKEN:
                return self._said(payload, event, event, names)
        return None

    def _said(self, payload: Fields, event: Fields, message: Fields, names: Mapping[str, str]) -> Incoming | None:
        chat, ts, author = _text(event, "channel"), _text(message, "ts"), self._author(payload, message)
        if not chat or not ts or not author:
            return None
        words, mentioned = addressed(_own_words(message), self.me.user)
        direct, thread = _is_direct(event), self._thread(event, message)
        files = _maps(message.get("files"))
        refs = {str(each.get("id")): _file(each) for each in files if each.get("mode") not in _GONE}
        links = [f"{_text(each, 'title')}: {_text(each, 'url_private')}" for each in files if _is_external(each)]
        user = _text(message, "user")
        place = SlackPlace(chat, ts, thread, user, _text(payload, "team_id"))
        return Incoming(
            event=f"{chat}:{ts}",
            chat=chat,
            thread=thread,
            account=author,
            text=_with_others(commanded(plain(words, names)).strip(), plain(_attached(message), names), links),
            direct=direct,
            mentioned=mentioned or event.get("type") == "app_mention",
            replies=message.get("parent_user_id") == self.me.user,
            quoted=plain(_shared(message), names)[:QUOTED] if words.strip() else "",
            reply_to=written(place),
            server=_text(payload, "team_id"),
            name=names.get(user, ""),
            bot=bool(message.get("bot_id")),
            files=tuple(refs.values()),
            voice=tuple(refs[id] for each in files if _is_spoken(each) and (id := str(each.get("id"))) in refs),
        )

    def _changed(self, payload: Fields, event: Fields, names: Mapping[str, str]) -> Incoming | None:
        """Slack also tells of links that were unfolded and of replies that came: then the words are the same."""
        after, before = _map(event.get("message")), _map(event.get("previous_message"))
        if after.get("subtype") == "tombstone":
            return self._withdrawn(payload, event, before)
        edited = after.get("edited")
        if not isinstance(edited, Mapping) or after.get("text") == before.get("text"):
            return None
        said = self._said(payload, event, after, names)
        if said is None:
            return None
        changed = f"{said.event}:edited:{_text(edited, 'ts')}"
        return msgspec.structs.replace(said, event=changed, replaces=said.event, files=(), voice=())

    def _withdrawn(self, payload: Fields, event: Fields, before: Fields) -> Incoming | None:
        ts = _text(event, "deleted_ts") or _text(before, "ts")
        said = self._said(payload, event, {**before, "ts": ts}, {})
        if said is None:
            return None
        gone = {"event": f"{said.event}:deleted", "replaces": said.event, "withdrawn": True, "text": "", "quoted": ""}
        return msgspec.structs.replace(said, **gone, files=(), voice=(), mentioned=False)

    def _author(self, payload: Fields, message: Fields) -> str:
        """Nobody for ourselves. Whoever is of another workspace, in a channel that two share, is told by both ids: a
        user's is promised to be the only one in its own workspace alone."""
        user, bot = _text(message, "user"), _text(message, "bot_id")
        if user == self.me.user or (bot and bot == self.me.bot):
            return ""
        home, ours = _text(message, "user_team"), {_text(payload, name) for name in _OURS}
        shared = payload.get("is_ext_shared_channel") is True
        return f"{user}@{home}" if user and shared and home and home not in ours else user or bot

    def _thread(self, event: Fields, message: Fields) -> str:
        if thread := _text(message, "thread_ts"):
            return thread
        return "" if _is_direct(event) or not self.in_threads else _text(message, "ts")


_OURS = ("team_id", "enterprise_id", "context_team_id", "context_enterprise_id")


def press(payload: Fields, workspace: str = "") -> Incoming | None:
    """A button of a question, as what one would type; None for anything else that can be pressed. `workspace` is our
    own: in a channel that two share, Slack may name that of whoever presses."""
    ours = [each for each in _maps(payload.get("actions")) if each.get("action_id") in (APPROVE, DENY)]
    if payload.get("type") != "block_actions" or not ours:
        return None
    message, held, user = (payload.get(name) for name in ("message", "container", "user"))
    chat = _text(payload.get("channel"), "id") or _text(held, "channel_id")
    ts = _text(held, "message_ts") or _text(message, "ts")
    thread = _text(held, "thread_ts") or _text(message, "thread_ts")
    team, home = _text(payload.get("team"), "id"), _text(user, "team_id")
    foreign = home and home != (workspace or team) and not payload.get("enterprise")
    word = "/approve" if ours[0]["action_id"] == APPROVE else "/deny"
    return Incoming(
        event=f"{chat}:{ts}:press:{_text(ours[0], 'action_ts')}:{_text(user, 'id')}",
        chat=chat,
        thread=thread,
        account=f"{_text(user, 'id')}@{home}" if foreign else _text(user, "id"),
        text=f"{word} {_text(ours[0], 'value')}",
        direct=chat.startswith("D"),
        mentioned=True,
        replies=True,
        reply_to=written(SlackPlace(chat, ts, thread, _text(user, "id"), team)),
        server=team,
        name=_text(user, "username"),
    )


def slash(payload: Fields, ours: str = "") -> Incoming:
    """`/everloop …`, wherever it was typed, also by somebody of another workspace than `ours`."""
    chat, user, team = (_text(payload, name) for name in ("channel_id", "user_id", "team_id"))
    foreign = ours and team and team != ours and not _text(payload, "enterprise_id")
    return Incoming(
        event=f"command:{_text(payload, 'trigger_id')}",
        chat=chat,
        account=f"{user}@{team}" if foreign else user,
        text=typed(plain(_text(payload, "text"))),
        direct=_text(payload, "channel_name") == "directmessage" or chat.startswith("D"),
        mentioned=True,
        reply_to=written(SlackPlace(chat, user=user, team=team)),
        server=team,
        name=_text(payload, "user_name"),
    )


def is_begun_by(incoming: Incoming) -> bool:
    """Whether it stands in no thread, or is the first message of its own."""
    return place_of(incoming.reply_to).ts == incoming.thread or not incoming.thread


def people_in(payload: Fields) -> list[str]:
    """Whose names are worth knowing: who wrote it, and a few whom they mention."""
    event = _map(payload.get("event"))
    message = _map(event.get("message")) or event
    return list(dict.fromkeys([_text(message, "user"), *MENTION.findall(_text(message, "text"))[:5]]))


def chat_of(payload: Fields) -> str:
    """Where it happened: what happens in one chat is taken in order."""
    event, channel = payload.get("event"), payload.get("channel")
    inside = event if isinstance(event, Mapping) else payload
    return _text(inside, "channel") or _text(channel, "id") or _text(payload, "channel_id")


def written(place: SlackPlace) -> ReplyTo:
    return ReplyTo(msgspec.json.encode(place).decode())


def place_of(reply_to: ReplyTo) -> SlackPlace:
    return msgspec.json.decode(reply_to, type=SlackPlace) if reply_to else SlackPlace("")


def seconds_of(stamp: str) -> float:
    """When a message was written, by its timestamp; 0 for what is none."""
    try:
        return float(stamp)
    except ValueError:
        return 0.0


def _text(fields: Any, name: str) -> str:
    value = fields.get(name) if isinstance(fields, Mapping) else None
    return value if isinstance(value, str) else ""


def _map(value: object) -> Fields:
    return value if isinstance(value, Mapping) else {}


def _maps(value: object) -> list[Fields]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _is_direct(event: Fields) -> bool:
    return event.get("channel_type") == "im" or _text(event, "channel").startswith("D")


def _file(file: Fields) -> FileRef:
    size = file.get("size")
    name = _text(file, "name") or _text(file, "title") or "file"
    url = _text(file, "url_private_download") or _text(file, "url_private")
    ref = SlackFileRef(name, url, size if isinstance(size, int) else 0, _text(file, "mimetype"))
    return FileRef(msgspec.json.encode(ref).decode())


def _is_external(file: Fields) -> bool:
    return file.get("mode") == "external"


def _is_spoken(file: Fields) -> bool:
    return file.get("subtype") == "slack_audio"


def _shared(message: Fields) -> str:
    """What somebody passes on with their own words."""
    attached = _maps(message.get("attachments"))
    return "\n".join(_text(each, "text") for each in attached if each.get("is_share") or each.get("is_msg_unfurl"))


def _attached(message: Fields) -> str:
    attached = _maps(message.get("attachments"))
    return "\n".join(filter(None, (_text(each, "text") or _text(each, "fallback") for each in attached)))


def _own_words(message: Fields) -> str:
    """Bots write what they say as an attachment; a person's attachments are what others have written."""
    is_own = message.get("bot_id") and not _shared(message)
    return _text(message, "text") or (_attached(message) if is_own else "")


def _with_others(own: str, attached: str, links: list[str]) -> str:
    """What was written by somebody else is told as such, where nothing stands before it: it is no command of whoever
    passes it on."""
    if own:
        return "\n".join([own, *links])
    others = "\n".join(filter(None, [attached, *links])).strip()
    return f"{PASSED_ON}\n{others}" if others else ""
