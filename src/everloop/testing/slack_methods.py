"""The methods of Slack's Web API that a bot needs, over a workspace in memory."""

import json
import re
from collections.abc import Callable, Mapping

from .slack_workspace import BOT, BOT_USER, TEAM, Fields, SlackRefusal, SlackWorkspace

TEXT, UPDATE, MARKDOWN, SECTION = 40_000, 4_000, 12_000, 3_000  # characters
Told = Callable[[str, Fields], None]


class SlackMethods:
    """`call` does what one of them means. `tell` is told of events that come of it: (type, fields)."""

    def __init__(self, workspace: SlackWorkspace, base: Callable[[], str], tell: Told) -> None:
        self._workspace = workspace
        self._base = base
        self._tell = tell

    def call(self, method: str, given: Mapping[str, object]) -> Fields:
        """Raises SlackRefusal."""
        name = "_" + method.replace(".", "_")
        if not hasattr(self, name):
            raise SlackRefusal("unknown_method")
        fields = {key: value for key, value in given.items() if value is not None}
        answer: Fields = getattr(self, name)(fields)
        return answer

    def _api_test(self, given: Fields) -> Fields:
        return {"args": given}

    def _auth_test(self, given: Fields) -> Fields:
        me = {"user": "everloop", "user_id": BOT_USER, "bot_id": BOT, "team": "Team", "team_id": TEAM}
        return {**me, "url": "https://team.slack.com/", "is_enterprise_install": False}

    def _users_info(self, given: Fields) -> Fields:
        name = self._workspace.people.get(given["user"])
        if name is None:
            raise SlackRefusal("user_not_found")
        profile = {"display_name": name, "real_name": f"{name} Somebody"}
        return {"user": {"id": given["user"], "team_id": TEAM, "name": name.lower(), "profile": profile}}

    def _conversations_open(self, given: Fields) -> Fields:
        return {"channel": {"id": self._workspace.direct_chat(given["users"])}}

    def _users_conversations(self, given: Fields) -> Fields:
        """One at a time, so that there are pages."""
        chats = [each for each in self._workspace.chats if each not in self._workspace.left]
        at = int(given.get("cursor") or 0)
        more = str(at + 1) if at + 1 < len(chats) else ""
        found = [{"id": each, "is_im": each.startswith("D")} for each in chats[at : at + 1]]
        return {"channels": found, "response_metadata": {"next_cursor": more}}

    def _conversations_history(self, given: Fields) -> Fields:
        messages = [*self._workspace.chat(given["channel"]).values()]
        oldest = float(given.get("oldest", 0))
        first = [each for each in messages if each.get("thread_ts", each["ts"]) == each["ts"]]
        counts = [sum(reply.get("thread_ts") == each["ts"] for reply in messages) for each in first]
        told = [{**each, "reply_count": count} for each, count in zip(first, counts, strict=True)]
        return {"messages": [each for each in reversed(told) if float(each["ts"]) > oldest]}

    def _conversations_replies(self, given: Fields) -> Fields:
        chat, first = self._workspace.chat(given["channel"]), given["ts"]
        replies = [each for each in chat.values() if each.get("thread_ts") == first and each["ts"] != first]
        if first not in chat:
            raise SlackRefusal("thread_not_found")
        repliers = list(dict.fromkeys(each["user"] for each in replies))
        messages = [{**chat[first], "reply_users": repliers, "reply_count": len(replies)}, *replies]
        return {"messages": messages[: int(given.get("limit", 1000))], "has_more": False}

    def _chat_postMessage(self, given: Fields) -> Fields:
        text = given.get("markdown_text") or given.get("text") or ""
        blocks = _blocks(given)
        if not text and not blocks:
            raise SlackRefusal("no_text")
        if len(given.get("markdown_text") or "") > MARKDOWN:
            raise SlackRefusal("msg_too_long")
        kept = {"text": text[:TEXT], "blocks": blocks, **_thread(given)}
        chat = given["channel"]
        message = self._workspace.post(chat, kept)
        chat = self._workspace.direct_chat(chat) if chat in self._workspace.people else chat
        self._tell("message", {**message, "channel": chat})
        return {"channel": chat, "ts": message["ts"], "message": message}

    def _chat_update(self, given: Fields) -> Fields:
        message = self._workspace.message(given["channel"], given["ts"])
        text = given.get("markdown_text") or given.get("text") or ""
        if len(text) > UPDATE:
            raise SlackRefusal("msg_too_long")
        if message.get("bot_id") != BOT:
            raise SlackRefusal("cant_update_message")
        if message.get("streaming"):
            raise SlackRefusal("streaming_state_conflict")
        before = dict(message)
        message |= {"text": text, "blocks": _blocks(given), "edited": {"user": BOT_USER, "ts": self._workspace.stamp()}}
        self._workspace.notify(message)
        changed = {"subtype": "message_changed", "message": dict(message), "previous_message": before}
        self._tell("message", {**changed, "channel": given["channel"], "ts": self._workspace.stamp()})
        return {"channel": given["channel"], "ts": given["ts"], "text": text, "message": message}

    def _chat_delete(self, given: Fields) -> Fields:
        message = self._workspace.message(given["channel"], given["ts"])
        if message.get("bot_id") != BOT:
            raise SlackRefusal("cant_delete_message")
        del self._workspace.chats[given["channel"]][given["ts"]]
        gone = {"subtype": "message_deleted", "deleted_ts": given["ts"], "previous_message": message}
        self._tell("message", {**gone, "channel": given["channel"], "ts": self._workspace.stamp()})
        return {"channel": given["channel"], "ts": given["ts"]}

    def _chat_startStream(self, given: Fields) -> Fields:
        if "thread_ts" not in given:
            raise SlackRefusal("missing_thread_ts")
        if not given["channel"].startswith("D") and not (given.keys() >= {"recipient_team_id", "recipient_user_id"}):
            raise SlackRefusal("missing_recipient_user_id")
        kept = {"text": _markdown(given), "streaming": True, **_thread(given)}
        message = self._workspace.post(given["channel"], kept)
        return {"channel": given["channel"], "ts": message["ts"]}

    def _chat_appendStream(self, given: Fields) -> Fields:
        message = self._streaming(given)
        message["text"] += _markdown(given)
        self._workspace.notify(message)
        return {"channel": given["channel"], "ts": given["ts"]}

    def _chat_stopStream(self, given: Fields) -> Fields:
        message = self._streaming(given)
        message["text"] += _markdown(given)
        message |= {"streaming": False, "blocks": _blocks(given)}
        self._workspace.notify(message)
        self._tell("message", {**message, "channel": given["channel"]})
        return {"channel": given["channel"], "ts": given["ts"], "message": message}

    def _streaming(self, given: Fields) -> Fields:
        message = self._workspace.message(given["channel"], given["ts"])
        if not message.get("streaming"):
            raise SlackRefusal("message_not_in_streaming_state")
        return message

    def _assistant_threads_setStatus(self, given: Fields) -> Fields:
        self._workspace.chat(given["channel_id"])
        self._workspace.statuses.append((given["channel_id"], given["thread_ts"], given["status"]))
        return {}

    def _reactions_add(self, given: Fields) -> Fields:
        message = self._workspace.message(given["channel"], given["timestamp"])
        reactions = message.setdefault("reactions", [])
        if given["name"] in reactions:
            raise SlackRefusal("already_reacted")
        if not re.fullmatch(r"[a-z0-9_+-]+", given["name"]):
            raise SlackRefusal("invalid_name")
        reactions.append(given["name"])
        return {}

    def _files_getUploadURLExternal(self, given: Fields) -> Fields:
        if int(given["length"]) < 1:
            raise SlackRefusal("file_upload_size_zero")
        file = self._workspace.keep(given["filename"], b"")
        return {"upload_url": f"{self._base()}/upload/v1/{file.id}", "file_id": file.id}

    def _files_completeUploadExternal(self, given: Fields) -> Fields:
        wanted = given["files"] if isinstance(given["files"], list) else json.loads(given["files"])
        files = [self._workspace.files[each["id"]] for each in wanted]
        told = [self._workspace.file_fields(file, self._base()) for file in files]
        if chat := given.get("channel_id"):
            shared = {"text": given.get("initial_comment", ""), "files": told, "upload": True, **_thread(given)}
            self._workspace.post(chat, shared)
        return {"files": told}

    def _files_info(self, given: Fields) -> Fields:
        if given["file"] not in self._workspace.files:
            raise SlackRefusal("file_not_found")
        return {"file": self._workspace.file_fields(self._workspace.files[given["file"]], self._base())}

    def _files_delete(self, given: Fields) -> Fields:
        if given["file"] not in self._workspace.files:
            raise SlackRefusal("file_not_found")
        del self._workspace.files[given["file"]]
        return {}


def _thread(given: Fields) -> Fields:
    return {"thread_ts": given["thread_ts"]} if given.get("thread_ts") else {}


def _blocks(given: Fields) -> list[Fields]:
    blocks = given.get("blocks") or []
    blocks = json.loads(blocks) if isinstance(blocks, str) else blocks
    for block in blocks:
        text = block.get("text")
        if isinstance(text, dict) and not 0 < len(text["text"]) <= SECTION:
            raise SlackRefusal("invalid_blocks")
    return list(blocks)


def _markdown(given: Fields) -> str:
    chunks = given.get("chunks") or []
    chunks = json.loads(chunks) if isinstance(chunks, str) else chunks
    text = (given.get("markdown_text") or "") + "".join(chunk.get("text", "") for chunk in chunks)
    if len(text) > MARKDOWN:
        raise SlackRefusal("msg_too_long")
    return text
