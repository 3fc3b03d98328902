"""Homes that real nanobot and OpenClaw wrote (scripts/make_foreign_homes.py), and exports in the known formats."""

import json
import shutil
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent.parent / "fixtures" / "foreign"
PICTURE = (FIXTURES / "nanobot/.nanobot/media/telegram/leaf.png").read_bytes()


def openclaw_home(folder: Path) -> Path:
    """With its databases, which the fixtures hold as SQL."""
    home = folder / ".openclaw"
    shutil.copytree(FIXTURES / "openclaw" / ".openclaw", home)
    for script in home.rglob("*.sqlite.sql"):
        database = sqlite3.connect(script.with_suffix(""))
        database.executescript(script.read_text())
        database.close()
        script.unlink()
    return home


def node(id: str, parent: str | None, children: list[str], message: dict[str, Any] | None) -> dict[str, Any]:
    return {"id": id, "parent": parent, "children": children, "message": message}


def said(id: str, role: str, text: str, at: float, **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [text]}
    return {"id": id, "author": {"role": role}, "create_time": at, "content": content, "metadata": {}, **more}


def chatgpt_conversation(number: int = 1) -> dict[str, Any]:
    """A question that was edited, a call of a tool, and a picture."""
    pointer = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-leaf1"}
    picture = said("m5", "user", "", 1_700_000_050.0)
    picture["content"] = {"content_type": "multimodal_text", "parts": [pointer, "And this leaf?"]}
    code = said("m2", "assistant", "", 1_700_000_020.0, recipient="python")
    code["content"] = {"content_type": "code", "language": "python", "text": "print(6*7)"}
    ran = said("m3", "tool", "", 1_700_000_030.0)
    ran["author"]["name"], ran["content"] = "python", {"content_type": "execution_output", "text": "42"}
    return {
        "title": f"Garden {number}",
        "create_time": 1_700_000_000.0,
        "conversation_id": f"conversation-{number}",
        "current_node": "m6",
        "mapping": {
            "root": node("root", None, ["s"], None),
            "s": node("s", "root", ["m1", "old"], said("s", "system", "", 1_700_000_000.0)),
            "old": node("old", "s", [], said("old", "user", "How much is 6*8?", 1_700_000_005.0)),
            "m1": node("m1", "s", ["m2"], said("m1", "user", "How much is 6*7?", 1_700_000_010.0)),
            "m2": node("m2", "m1", ["m3"], code),
            "m3": node("m3", "m2", ["m4"], ran),
            "m4": node("m4", "m3", ["m5"], said("m4", "assistant", "It is 42.", 1_700_000_040.0)),
            "m5": node("m5", "m4", ["m6"], picture),
            "m6": node("m6", "m5", [], said("m6", "assistant", "A tomato's.", 1_700_000_060.0)),
        },
    }


def chatgpt_export(path: Path, text: str | None = None) -> Path:
    with zipfile.ZipFile(path, "w") as export:
        export.writestr("conversations.json", text or json.dumps([chatgpt_conversation(1), chatgpt_conversation(2)]))
        export.writestr("file-leaf1-IMG_1.png", PICTURE)
        export.writestr("../../outside.txt", "out")
    return path


CLAUDE = {
    "uuid": "11111111-2222",
    "name": "Soil",
    "created_at": "2026-05-01T10:00:00.000000Z",
    "chat_messages": [
        {
            "sender": "human",
            "created_at": "2026-05-01T10:00:01Z",
            "text": "Read this",
            "content": [{"type": "text", "text": "Read this"}],
            "attachments": [{"file_name": "soil.txt", "extracted_content": "pH 6.5"}],
            "files": [{"file_name": "photo.jpg"}],
        },
        {
            "sender": "assistant",
            "created_at": "2026-05-01T10:00:02Z",
            "text": "",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "pH"}},
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "acid"}]},
                {"type": "text", "text": "A little acid."},
            ],
        },
    ],
}
PROJECTS = [
    {"uuid": "p", "name": "../Garden", "prompt_template": "Be brief.", "docs": [{"filename": "a/b.md", "content": "x"}]}
]


def claude_export(folder: Path) -> Path:
    folder.mkdir()
    (folder / "conversations.json").write_text(json.dumps([CLAUDE]))
    (folder / "projects.json").write_text(json.dumps(PROJECTS))
    return folder
