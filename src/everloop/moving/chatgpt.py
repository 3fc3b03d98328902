"""An export of ChatGPT: `conversations.json`, an array of conversations, each a tree of messages.

The branch that its owner saw last (`current_node`) is the conversation. Pictures and files lie beside it,
under names that begin with their ids.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .export import Export
from .service_export import ACCOUNT, MEMORY, ServiceExport
from .service_export import OTHER as NO_PLACE
from .transcript import ForeignTranscript, seconds
from .values import ForeignConversation, ForeignFile, Remark

OTHER = (
    "{messages} messages in {count} other branches of it (edited or answered again there) are left: only the branch "
    "that was seen last is taken"
)
INSTRUCTED = (
    "{count} conversations were begun with your custom instructions (who you are, how to answer), which are not taken "
    "over: write what you want to keep into USER.md and SOUL.md of the workspace"
)
OF_GPTS = (
    "{count} conversations belong to {kinds} projects or GPTs; what these were told and their files are not in the "
    "export: write it into a persona (everloop personas add) or a skill"
)
KNOWN: Mapping[str, str] = {
    "user.json": ACCOUNT,
    "user_settings.json": ACCOUNT,
    "memory.json": MEMORY,
    "memories.json": MEMORY,
    "message_feedback.json": NO_PLACE,
    "model_comparisons.json": NO_PLACE,
    "shared_conversations.json": NO_PLACE,
    "export_manifest.json": "",
}
HIDDEN = "is_visually_hidden_from_conversation"
DEEPEST = 100_000  # messages of one branch


class ChatGptExport(ServiceExport):
    kind = "chatgpt"
    known = KNOWN

    def __init__(self, path: Path) -> None:
        """Raises EverloopError."""
        super().__init__(Export(path), self.conversation_of)
        self._instructed, self._gpts = 0, Counter[str]()

    def conversations(self) -> Iterator[ForeignConversation | Remark]:
        self._instructed, self._gpts = 0, Counter[str]()
        yield from super().conversations()
        if self._instructed:
            yield Remark(INSTRUCTED.format(count=self._instructed), all=True)
        if self._gpts:
            yield Remark(OF_GPTS.format(count=self._gpts.total(), kinds=len(self._gpts)), all=True)

    def conversation_of(self, element: Any, place: str) -> ForeignConversation | Remark:
        if not isinstance(element, Mapping) or not isinstance(element.get("mapping"), Mapping):
            return Remark(f"{place} is no conversation, and was passed over")
        created = seconds(element.get("create_time")) or 0.0
        transcript = ForeignTranscript(created)
        branch, others, messages = line_of(element)
        self._instructed += any(map(_is_instruction, branch))
        if isinstance(of := element.get("gizmo_id") or element.get("conversation_template_id"), str):
            self._gpts[of] += 1
        for message in branch:
            self._add(transcript, message)
        transcript.end()
        title = str(element.get("title") or "")
        if not transcript.messages:
            return Remark(f"{place} (“{title[:60]}”) holds no message")
        return ForeignConversation(
            id=str(element.get("conversation_id") or element.get("id") or f"{created}:{title}"),
            title=title,
            created=created,
            messages=transcript.messages,
            files=transcript.files,
            remarks=(OTHER.format(count=others, messages=messages),) if others else (),
        )

    def _add(self, transcript: ForeignTranscript, message: Mapping[str, Any]) -> None:
        author, about = _table(message.get("author")), _table(message.get("metadata"))
        if about.get(HIDDEN):
            return
        at, content = seconds(message.get("create_time")), _table(message.get("content"))
        text, files = text_of(content), self._files(content, about)
        match author.get("role"):
            case "user" if content.get("content_type") != "user_editable_context":
                transcript.ask(text, at, files)
            case "assistant" if content.get("content_type") in ("thoughts", "reasoning_recap"):
                pass
            case "assistant" if message.get("recipient") not in (None, "", "all"):
                call = (str(message.get("id") or "call"), str(message["recipient"]), text or "{}")
                transcript.answer("", at, calls=(call,))
            case "assistant":
                transcript.answer(text, at, files=files)
            case "tool" if text.strip() or files:
                self._add_result(transcript, str(author.get("name") or "tool"), message, text, at, files)

    def _add_result(
        self,
        transcript: ForeignTranscript,
        name: str,
        message: Mapping[str, Any],
        text: str,
        at: float | None,
        files: tuple[ForeignFile, ...],
    ) -> None:
        """Some tools speak without having been called, and some more than once."""
        if not transcript.waits_for:
            transcript.answer("", at, calls=((str(message.get("id") or "call"), name, "{}"),))
        transcript.result(transcript.waits_for, text or f"[{files[0].name}]", at)
        if files:
            transcript.answer("", at, files=files)

    def _files(self, content: Mapping[str, Any], about: Mapping[str, Any]) -> tuple[ForeignFile, ...]:
        parts = content.get("parts")
        wanted = [_asset(part) for part in (parts if isinstance(parts, list) else ()) if isinstance(part, Mapping)]
        named = {_asset_id(each.get("id")): str(each.get("name") or "") for each in _tables(about.get("attachments"))}
        ids = dict.fromkeys([each for each in wanted if each] + [each for each in named if each])
        return tuple(
            ForeignFile(named.get(id) or place, place)
            for id in ids
            if (place := self._place(id, named.get(id, ""))) or id
        )

    def _place(self, id: str, name: str) -> str:
        """What it is called in the export, or what it would be called there."""
        return self.export.beginning_with(id) or (name if name and self.export.has(name) else id)


def _is_instruction(message: Mapping[str, Any]) -> bool:
    content, about = _table(message.get("content")), _table(message.get("metadata"))
    written = (content.get("user_profile"), content.get("user_instructions"))
    said = _table(about.get("user_context_message_data")).values()
    return any(isinstance(each, str) and each.strip() for each in (*written, *said))


def line_of(element: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], int, int]:
    """The messages of the branch that was seen last, how many other branches there are, and messages in these alone."""
    mapping = _table(element["mapping"])
    leaves = [key for key, node in mapping.items() if not _table(node).get("children")]
    last = element.get("current_node")
    node: Any = last if isinstance(last, str) and last in mapping else next(reversed(leaves), None)
    line: list[Mapping[str, Any]] = []
    seen: set[Any] = set()
    while isinstance(node, str) and node in mapping and node not in seen and len(seen) < DEEPEST:
        seen.add(node)
        if isinstance(message := _table(mapping[node]).get("message"), Mapping):
            line.append(message)
        node = _table(mapping[node]).get("parent")
    others = [key for key, each in mapping.items() if key not in seen and _table(_table(each).get("message"))]
    return line[::-1], max(0, len(leaves) - 1), len(others)


def text_of(content: Mapping[str, Any]) -> str:
    parts = content.get("parts")
    if isinstance(parts, list):
        return "\n".join(filter(None, (_part(part) for part in parts)))
    for key in ("text", "result", "content"):
        if isinstance(found := content.get(key), str):
            title = content.get("title")
            return f"{title}\n{found}" if isinstance(title, str) and key == "text" else found
    return ""


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    return str(part["text"]) if isinstance(part, Mapping) and isinstance(part.get("text"), str) else ""


def _asset(part: Mapping[str, Any]) -> str:
    return _asset_id(part.get("asset_pointer") or _table(part.get("audio_asset_pointer")).get("asset_pointer"))


def _asset_id(given: Any) -> str:
    return str(given).rpartition("//")[2].partition("?")[0][:200] if isinstance(given, str) else ""


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _tables(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
