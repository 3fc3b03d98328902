"""An export of Claude: `conversations.json`, an array of conversations with their messages, and `projects.json`.

Of an attachment the export holds the text that was read from it, of a file only the name.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from .elements import elements
from .export import Export
from .service_export import ACCOUNT, MEMORY, ServiceExport
from .transcript import ForeignTranscript, seconds
from .values import ForeignConversation, ForeignText, Remark, digest

PROJECTS = "projects.json"
KNOWN: Mapping[str, str] = {"users.json": ACCOUNT, "memories.json": MEMORY, PROJECTS: ""}
NO_FILE = "{count} files of it are not in the export, only their names: {names}"


class ClaudeExport(ServiceExport):
    kind = "claude"
    known = KNOWN

    def __init__(self, path: Path) -> None:
        """Raises EverloopError."""
        super().__init__(Export(path), conversation_of)

    def texts(self) -> Iterator[ForeignText | Remark]:
        """What projects hold, as files to look at; what they are told stands among them, and tells nobody anything."""
        yield from self._left()
        if not self.export.has(PROJECTS):
            return
        taken = set[str]()
        with self.export.open(PROJECTS) as file:
            for project in elements(file, PROJECTS):
                if isinstance(project, Remark):
                    yield project
                elif isinstance(project, Mapping):
                    yield from (_named_once(each, taken) for each in _project(project))


def conversation_of(element: Any, place: str) -> ForeignConversation | Remark:
    if not isinstance(element, Mapping) or not isinstance(element.get("chat_messages"), list):
        return Remark(f"{place} is no conversation, and was passed over")
    created = seconds(element.get("created_at")) or 0.0
    transcript = ForeignTranscript(created)
    missing: list[str] = []
    for message in element["chat_messages"]:
        if isinstance(message, Mapping):
            _add(transcript, message)
            missing += [str(each.get("file_name") or "?")[:100] for each in _tables(message.get("files"))]
    transcript.end()
    title = str(element.get("name") or "")
    if not transcript.messages:
        return Remark(f"{place} (“{title[:60]}”) holds no message")
    remarks = (NO_FILE.format(count=len(missing), names=", ".join(missing[:5])),) if missing else ()
    return ForeignConversation(
        id=str(element.get("uuid") or f"{created}:{title}"),
        title=title,
        created=created,
        messages=transcript.messages,
        remarks=remarks,
    )


def _project(project: Mapping[str, Any]) -> Iterator[ForeignText]:
    folder = f"imported/claude/{_name(project.get('name') or project.get('uuid'))}"
    about = [str(project[key]) for key in ("description", "prompt_template") if project.get(key)]
    if about:
        yield ForeignText(f"{folder}/PROJECT.md", text="\n\n".join(about) + "\n")
    for doc in _tables(project.get("docs")):
        yield ForeignText(
            f"{folder}/{_name(doc.get('filename') or doc.get('uuid'))}", text=str(doc.get("content") or "")
        )


def _named_once(text: ForeignText, taken: set[str]) -> ForeignText:
    """Documents of a project may share a name, and so may projects: the second is called after what it says."""
    path = PurePosixPath(text.name)
    name = text.name if text.name not in taken else str(path.with_stem(f"{path.stem}-{digest(text.text)[:8]}"))
    taken.add(name)
    return ForeignText(name, text=text.text)


def _name(given: Any) -> str:
    """One part of a path, and never one that leads elsewhere."""
    kept = "".join(each if each.isalnum() or each in " ._-" else "_" for each in str(given or "unnamed"))
    return kept.strip(" .")[:80] or "unnamed"


def _add(transcript: ForeignTranscript, message: Mapping[str, Any]) -> None:
    at = seconds(message.get("created_at"))
    blocks = _tables(message.get("content")) or [{"type": "text", "text": message.get("text")}]
    if message.get("sender") == "human":
        attached = [_attached(each) for each in _tables(message.get("attachments"))]
        transcript.ask("\n\n".join(filter(None, (_texts(blocks) or str(message.get("text") or ""), *attached))), at)
        return
    said: list[str] = []
    thought: list[str] = []
    for block in blocks:
        match block.get("type"):
            case "text":
                said.append(str(block.get("text") or ""))
            case "thinking":
                thought.append(str(block.get("thinking") or ""))
            case "tool_use":
                call = (str(block.get("id") or "call"), str(block.get("name") or ""), _written(block.get("input")))
                transcript.answer("\n".join(said), at, calls=(call,), reasoning="\n".join(thought))
                said, thought = [], []
            case "tool_result" if transcript.waits_for:
                failed = bool(block.get("is_error"))
                transcript.result(transcript.waits_for, _result(block.get("content")), at, failed=failed)
    transcript.answer("\n".join(said), at, reasoning="\n".join(thought))


def _attached(given: Mapping[str, Any]) -> str:
    text = given.get("extracted_content")
    return f"[{str(given.get('file_name') or 'attachment')[:200]}]\n{text}" if isinstance(text, str) and text else ""


def _texts(blocks: list[Mapping[str, Any]]) -> str:
    return "\n".join(str(each.get("text") or "") for each in blocks if each.get("type") == "text")


def _result(content: Any) -> str:
    return _texts(_tables(content)) if isinstance(content, list) else str(content or "")


def _written(value: Any) -> str:
    return json.dumps(value if value is not None else {}, ensure_ascii=False)


def _tables(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
