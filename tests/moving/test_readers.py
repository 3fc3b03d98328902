"""What readers make of homes and exports, whole or broken."""

import copy
import io
import json
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from everloop.app.moving_settings import settings_of
from everloop.errors import EverloopError
from everloop.moving import elements as reading
from everloop.moving.chatgpt import INSTRUCTED, OF_GPTS, OTHER, ChatGptExport
from everloop.moving.claude import ClaudeExport, conversation_of
from everloop.moving.elements import elements
from everloop.moving.export import LARGEST_LIST
from everloop.moving.homes import read_text
from everloop.moving.json5 import loads
from everloop.moving.nanobot import NanobotHome, own_lines
from everloop.moving.openclaw import OpenClawHome
from everloop.moving.service_export import ACCOUNT, MEMORY, UNREAD
from everloop.moving.transcript import BEGINS, NO_RESULT, ForeignTranscript, seconds
from everloop.moving.values import ForeignConversation, ForeignFile, ForeignText, Remark
from everloop.settings.nanobot import translated as of_nanobot
from everloop.settings.openclaw import translated as of_openclaw
from tests.app.doctor.test_doctor import as_one_of_many
from tests.moving.foreign_homes import (
    CLAUDE,
    FIXTURES,
    PICTURE,
    chatgpt_conversation,
    chatgpt_export,
    claude_export,
    openclaw_home,
)


def conversations(source: Any) -> list[ForeignConversation]:
    return [each for each in source.conversations() if isinstance(each, ForeignConversation)]


def remarks(found: Any) -> list[str]:
    return [each.text for each in found if isinstance(each, Remark)]


def spoken(found: ForeignConversation) -> list[tuple[str, str]]:
    calls = [[call["function"]["name"] for call in each.get("tool_calls", ())] for each in found.messages]
    texts = zip(found.messages, calls, strict=True)
    return [(each["role"], each["content"] or " ".join(names)) for each, names in texts]


def test_what_of_an_export_has_no_place_is_told_with_what_to_do(tmp_path: Path):
    plain, told = chatgpt_conversation(1), chatgpt_conversation(2) | {"gizmo_id": "g-p-1"}
    content = {"content_type": "user_editable_context", "user_profile": "I am Mara", "user_instructions": ""}
    told["mapping"]["s"]["message"] |= {"content": content, "author": {"role": "user"}}
    (tmp_path / "conversations.json").write_text(json.dumps([plain, told]))
    for name in ("user.json", "memory.json", "export_manifest.json", "of_tomorrow.json"):
        (tmp_path / name).write_text("{}")
    export = ChatGptExport(tmp_path)
    found = [*remarks(export.texts()), *remarks(export.conversations())]
    assert [line for line in found if "has other" not in line and " other branches" not in line] == [
        MEMORY.format(name="memory.json"),
        ACCOUNT.format(name="user.json"),
        UNREAD.format(count=1, names="of_tomorrow.json"),
        INSTRUCTED.format(count=1),
        OF_GPTS.format(count=1, kinds=1),
    ]
    assert "I am Mara" not in str(conversations(export))
    (claude_export(tmp_path / "claude") / "memories.json").write_text("[]")
    assert remarks(ClaudeExport(tmp_path / "claude").texts()) == [MEMORY.format(name="memories.json")]
    assert remarks(ChatGptExport(chatgpt_export(tmp_path / "x.zip")).texts()) == []


def test_what_nanobot_wrote_is_read_with_calls_results_times_and_pictures():
    home = NanobotHome(FIXTURES / "nanobot")
    direct, phone = sorted(conversations(home), key=lambda each: each.session)
    assert (direct.session, phone.session, phone.title) == ("cli:direct", "telegram:123456", "The garden")
    assert spoken(direct)[:6] == [
        ("user", "Hello, I am Mara"),
        ("assistant", "Hello Mara, I am here."),
        ("user", "Write the plan for the garden"),
        ("assistant", "write_file"),
        ("tool", "Successfully wrote 16 characters to /home/mara/.nanobot/workspace/notes/plan.txt"),
        ("assistant", "The plan is written."),
    ]
    [(place, [leaf])] = phone.files.items()
    assert phone.messages[place]["content"] == "What is this?"
    assert home.file(leaf, 1000) == PICTURE
    assert home.memory() == ("# Long-term Memory\n\n## User Information\n\n- Mara lives in Graz\n- Mara grows tomatoes")
    assert home.history() == "[2026-11-01 10:00] Mara moved to Graz."
    assert [each.name for each in home.skills()] == ["tomatoes"]
    assert [(job.name, job.when, job.zone, job.session) for job in home.jobs() if not isinstance(job, Remark)] == [
        ("water plants", "cron 0 8 * * 1-5", "Europe/Vienna", "telegram:123456"),
        ("Stretch", "every 120m", "", "telegram:123456"),
        ("Call the dentist", "at 2037-03-01T10:00:00", "UTC", "telegram:123456"),
    ]


def test_the_earlier_layout_of_nanobot_is_read_too(tmp_path: Path):
    sessions = tmp_path / "workspace" / "sessions"
    sessions.mkdir(parents=True)
    lines = [
        '{"_type": "metadata", "created_at": "2026-01-01T10:00:00"}',
        '{"role": "user", "content": "hello", "timestamp": "2026-01-01T10:00:00"}',
        '{"role": "assistant", "con',
        '{"role": "assistant", "content": "hi", "tools_used": []}',
    ]
    (sessions / "telegram_42.jsonl").write_text("\n".join(lines))
    (tmp_path / "cron").mkdir()
    job = {"id": "a", "name": "tea", "schedule": {"kind": "every", "everyMs": 90_000}, "payload": {"message": "Tea"}}
    (tmp_path / "cron" / "jobs.json").write_text(json.dumps({"version": 1, "jobs": [job]}))
    (tmp_path / "workspace" / "memory").mkdir()
    (tmp_path / "workspace" / "memory" / "HISTORY.md").write_text("[2026-01-01 09:00] Began.\n")
    home = NanobotHome(tmp_path)
    [found] = conversations(home)
    assert (found.session, spoken(found)) == ("telegram:42", [("user", "hello"), ("assistant", "hi")])
    assert found.remarks == ("1 lines of it are broken and left out",)
    assert [each.when for each in home.jobs() if not isinstance(each, Remark)] == ["every 90s"]
    assert home.history() == "[2026-01-01 09:00] Began."


def test_a_session_names_no_file_outside_of_its_home(tmp_path: Path):
    (tmp_path / "secret").write_text("s")
    (tmp_path / "home" / "workspace").mkdir(parents=True)
    (tmp_path / "home" / "media").mkdir()
    home = NanobotHome(tmp_path / "home")
    assert home.file(ForeignFile("x", "../../secret"), 100) is None
    assert home.file(ForeignFile("x", str(tmp_path / "secret")), 100) is None
    assert home.file(ForeignFile("x", "a\0b"), 100) is None


def in_database(home: Path, place: str, *statements: str) -> None:
    with closing(sqlite3.connect(home / place)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


SESSIONS, JOBS = "agents/main/agent/openclaw-agent.sqlite", "state/openclaw.sqlite"


@pytest.mark.parametrize("instead", ["pipe", "folder", "link", "terabyte", "view"])
def test_what_stands_in_the_place_of_a_database_is_named_and_stops_nothing(tmp_path: Path, instead: str):
    home = openclaw_home(tmp_path)
    path = home / JOBS
    if instead == "view":
        numbers = (
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS sort_order, '{}' AS job_json"
        )
        in_database(home, JOBS, "DROP TABLE cron_jobs", f"CREATE VIEW cron_jobs AS {numbers} FROM n")
    elif instead == "terabyte":
        with path.open("r+b") as file:
            file.truncate(1 << 42)
    else:
        path.unlink()
        {"pipe": os.mkfifo, "folder": Path.mkdir, "link": lambda at: at.symlink_to("/dev/zero")}[instead](path)
    found = OpenClawHome(home)
    (told,) = found.jobs()
    assert isinstance(told, Remark)
    assert "the jobs of OpenClaw cannot be read (" in told.text
    assert len(conversations(found)) == 2


def test_a_database_is_read_whatever_stands_in_its_columns(tmp_path: Path):
    home = openclaw_home(tmp_path)
    events, nodes = "UPDATE transcript_events SET event_json =", "UPDATE session_nodes SET"
    in_database(
        home,
        SESSIONS,
        f"{events} CAST(event_json AS BLOB) WHERE seq = 1",
        f"{events} 7 WHERE seq = 2",
        f"{events} CAST(x'7b22ff' AS TEXT) WHERE seq = 3",
        f"{nodes} display_name = x'47ff'",
    )
    found = conversations(OpenClawHome(home))
    assert [(each.title, each.remarks) for each in found] == [
        ("G\ufffd", ("2 lines of it are broken and left out",))
    ] * 2
    whole = [job.name for job in OpenClawHome(home).jobs() if not isinstance(job, Remark)]
    in_database(home, JOBS, f"UPDATE cron_jobs SET job_json = '{{' WHERE job_json LIKE '%{whole[0]}%'")
    left = list(OpenClawHome(home).jobs())
    assert [job.name for job in left if not isinstance(job, Remark)] == whole[1:]
    assert "1 jobs of OpenClaw are broken: make them anew with `everloop cron add`" in remarks(left)


def test_what_openclaw_wrote_is_read_from_its_database_which_stays_untouched(tmp_path: Path):
    home = OpenClawHome(openclaw_home(tmp_path))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    direct, phone = conversations(home)
    assert (direct.session, phone.session) == ("cli:direct", "telegram:123456")
    assert spoken(direct)[:6] == [
        ("user", "Hello, I am Mara"),
        ("assistant", "Hello Mara, I am here."),
        ("user", "Write the plan for the garden"),
        ("assistant", "write"),
        ("tool", "Successfully wrote 16 bytes to notes/plan.txt"),
        ("assistant", "The plan is written."),
    ]
    assert spoken(phone) == [("user", "From the phone"), ("assistant", "Hello on Telegram.")]
    assert (home.memory(), home.history()) == ("# Memory\n\n- Mara lives in Graz", "[2026-11-17] sowed tomatoes")
    jobs = list(home.jobs())
    assert [(job.name, job.when, job.zone) for job in jobs if not isinstance(job, Remark)] == [
        ("water plants", "cron 0 8 * * 1-5", "Europe/Vienna"),
        ("stretch", "every 120m", ""),
        ("dentist", "at 2036-03-01T10:00:00", "UTC"),
    ]
    assert len(remarks(jobs)) == 1
    assert "seconds" in remarks(jobs)[0]
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_the_earlier_layout_of_openclaw_is_read_too_along_the_branch_that_was_last(tmp_path: Path):
    folder = tmp_path / "agents" / "main" / "sessions"
    folder.mkdir(parents=True)

    def event(id: str, parent: str | None, role: str, text: str) -> str:
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        return json.dumps({"type": "message", "id": id, "parentId": parent, "message": message})

    lines = [
        '{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00Z"}',
        event("a", None, "user", "hi"),
    ]
    lines += [event("b", "a", "assistant", "left"), event("c", "a", "assistant", "taken")]
    (folder / "s1.jsonl").write_text("\n".join(lines))
    (folder / "sessions.json").write_text('{"agent:main:telegram:dm:7": {"sessionId": "s1"}}')
    [found] = conversations(OpenClawHome(tmp_path))
    assert (found.id, found.session, spoken(found)) == ("s1", "telegram:7", [("user", "hi"), ("assistant", "taken")])


def test_a_tree_of_chatgpt_becomes_the_branch_that_was_seen_last(tmp_path: Path):
    source = ChatGptExport(chatgpt_export(tmp_path / "export.zip"))
    first, second = conversations(source)
    assert spoken(first) == [
        ("user", "How much is 6*7?"),
        ("assistant", "python"),
        ("tool", "42"),
        ("assistant", "It is 42."),
        ("user", "And this leaf?"),
        ("assistant", "A tomato's."),
    ]
    assert [each["timestamp"][11:19] for each in first.messages[:2]] == ["22:13:30", "22:13:40"]
    assert (first.id, first.title, first.created) == ("conversation-1", "Garden 1", 1_700_000_000.0)
    assert first.remarks == (OTHER.format(count=1, messages=1),)
    assert source.file(first.files[4][0], 1000) == PICTURE
    assert second.id == "conversation-2"


def test_an_export_of_claude_brings_attachments_projects_and_thoughts(tmp_path: Path):
    source = ClaudeExport(claude_export(tmp_path / "claude"))
    [found] = conversations(source)
    assert spoken(found) == [
        ("user", "Read this\n\n[soil.txt]\npH 6.5"),
        ("assistant", "search"),
        ("tool", "acid"),
        ("assistant", "A little acid."),
    ]
    assert found.messages[1]["reasoning_content"] == "hm"
    assert "photo.jpg" in found.remarks[0]
    texts = [(each.name, each.text) for each in source.texts() if isinstance(each, ForeignText)]
    assert texts == [("imported/claude/_Garden/PROJECT.md", "Be brief.\n"), ("imported/claude/_Garden/a_b.md", "x")]


@pytest.mark.parametrize(
    ("text", "values", "told"),
    [
        ('[1, {"a": 2}, 3]', [1, {"a": 2}, 3], 0),
        ("[]", [], 0),
        ('{"a": 1}', [], 1),
        ("", [], 1),
        ('[1, {"a": 2', [1], 1),
        ('[1, {"a": nope}, 3]', [1, 3], 1),
        ('[1, {"a": "x}, 3]', [1], 1),
        ("[" + "1" * 5000 + ", 2]", [2], 1),
        ('[{"a": ' + "1" * 5000 + "}, 2]", [2], 1),
        ("[" * 100_000, [], 1),
        ("[" + "[" * 100_000 + "]" * 100_000 + ", 2]", [2], 1),
        ("[1,2", [1, 2], 1),
    ],
)
def test_an_array_is_read_as_far_as_it_is_whole(text: str, values: list[Any], told: int):
    found = list(elements(io.BytesIO(text.encode()), "x.json"))
    assert [each for each in found if not isinstance(each, Remark)] == values
    assert len(remarks(found)) == told


def test_an_element_that_is_too_large_is_passed_over(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "LARGEST", 100)
    monkeypatch.setattr(reading, "PIECE", 10)
    text = json.dumps(["a" * 1000, {"b": "ö" * 20}, [1]], ensure_ascii=False)
    found = list(elements(io.BytesIO(text.encode()), "x.json"))
    assert [each for each in found if not isinstance(each, Remark)] == [{"b": "ö" * 20}, [1]]
    assert len(remarks(found)) == 1


def test_an_archive_that_is_none_or_holds_nothing_is_refused_with_a_sentence(tmp_path: Path):
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 no archive")
    with zipfile.ZipFile(tmp_path / "empty.zip", "w") as export:
        export.writestr("readme.txt", "x")
    os.mkfifo(tmp_path / "pipe.zip")  # nobody will ever write into it
    for name in ("broken.zip", "empty.zip", "missing", "pipe.zip", ""):
        path = tmp_path / name
        with pytest.raises(EverloopError):
            ChatGptExport(path)
    for home in (NanobotHome, OpenClawHome):
        with pytest.raises(EverloopError):
            home(tmp_path / "missing")


@pytest.mark.parametrize("large", [False, True])
def test_an_archive_that_lists_more_names_than_memory_should_hold_is_refused(tmp_path: Path, large: bool):
    size = LARGEST_LIST + 1
    record = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 1, 1, size, 0)
    teller = b"PK\x06\x07" + struct.pack("<IQI", 0, size, 1)
    last = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, 0xFFFFFFFF if large else size, 0, 0)
    with open(tmp_path / "export.zip", "wb") as file:
        file.seek(size)
        file.write((record + teller if large else b"") + last)
    with pytest.raises(EverloopError, match=r"lists more files than an export has \(50 MB of names\)"):
        ChatGptExport(tmp_path / "export.zip")


def test_a_large_archive_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as export:
        export.writestr("conversations.json", "[]")
        export.writestr("user.json", "{}")
    assert b"PK\x06\x07" in (tmp_path / "export.zip").read_bytes()
    assert list(ChatGptExport(tmp_path / "export.zip").conversations()) == []


@pytest.mark.parametrize("way", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_is_damaged_in_the_middle_is_refused_with_a_sentence(tmp_path: Path, way: int):
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", way) as export:
        export.writestr("conversations.json", random.Random(1).randbytes(9000).hex())
        export.writestr("file-1.png", random.Random(2).randbytes(9000).hex())
    whole = path.read_bytes()
    for name, at in (("conversations.json", len(whole) // 4), ("file-1.png", len(whole) * 3 // 4)):
        path.write_bytes(whole[:at] + bytes(byte ^ 0xFF for byte in whole[at : at + 500]) + whole[at + 500 :])
        source = ChatGptExport(path)
        if name == "file-1.png":
            assert source.file(ForeignFile("x", name), 1 << 20) is None
            continue
        with pytest.raises(EverloopError, match=r"conversations\.json in the export cannot be read "):
            list(source.conversations())


def test_a_bomb_is_read_in_pieces_and_named(tmp_path: Path):
    with (
        zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as export,
        export.open("conversations.json", "w") as out,
    ):
        out.write(b"[")
        for _ in range(40):
            out.write(b" " * (1 << 20))
        out.write(b"]")
    assert list(ChatGptExport(tmp_path / "bomb.zip").conversations()) == []


def test_a_loop_in_a_tree_ends(tmp_path: Path):
    looped = chatgpt_conversation()
    looped["mapping"]["root"]["parent"] = "m6"
    source = ChatGptExport(chatgpt_export(tmp_path / "x.zip", json.dumps([looped, 7, {"mapping": {}}, {"mapping": 3}])))
    found = list(source.conversations())
    assert len(spoken(found[0])) == 6  # type: ignore[arg-type]
    assert len(remarks(found)) == 3


def test_what_was_cut_off_is_closed():
    transcript = ForeignTranscript(0.0)
    transcript.answer("first", 1.0)
    transcript.answer("", 2.0, calls=(("a", "look", "{}"), ("b", "look", "{}")))
    transcript.result("a", "seen\0\ud800", 3.0)
    transcript.result("nobody", "x", 4.0)
    transcript.ask("go on", 5.0)
    transcript.end()
    assert [(each["role"], each["content"]) for each in transcript.messages] == [
        ("user", BEGINS),
        ("assistant", "first"),
        ("assistant", ""),
        ("tool", "seen?"),
        ("tool", NO_RESULT),
        ("user", "go on"),
    ]
    assert transcript.left_out == 1


def test_times_of_all_kinds_are_seconds_and_nonsense_is_none():
    given = (1_700_000_000, 1_700_000_000_000, "2023-11-14T22:13:20Z", 10**30, float("inf"), "soon", None, True, -5)
    at = 1_700_000_000.0
    assert [seconds(each) for each in given] == [at, at, at, None, None, None, None, None, None]


def test_json5_as_people_write_it():
    text = """{ // a comment, with "quotes"
      key: 'it\\'s "so"', "url": "http://x/*no comment*/", /* b */ list: [1, 2,], }"""
    assert loads(text) == {"key": 'it\'s "so"', "url": "http://x/*no comment*/", "list": [1, 2]}


def test_a_memory_is_read_without_what_says_nothing():
    assert own_lines("# A\n\n(nothing)\n\n## B\n\n## C\n\n- c\n\n---\n\n*This file is automatically updated*") == (
        "# A\n\n## C\n\n- c"
    )


def test_of_a_workspace_links_are_named_and_not_followed(tmp_path: Path):
    shutil.copytree(FIXTURES / "nanobot" / ".nanobot", tmp_path / "home")
    for name, target in (("passwords", "/etc/passwd"), ("settings", "/etc")):
        (tmp_path / "home" / "workspace" / name).symlink_to(target)
    texts = list(NanobotHome(tmp_path / "home").texts())
    assert [told.partition(":")[0] for told in remarks(texts)] == [
        f"{name} of the workspace is a link or no plain file" for name in ("passwords", "settings")
    ]
    assert not {"passwords", "settings"} & {each.name for each in texts if isinstance(each, ForeignText)}
    assert CLAUDE["name"] == "Soil"


def test_of_a_workspace_what_may_not_be_read_is_named(tmp_path: Path):
    (shut := tmp_path / "workspace" / "shut").mkdir(parents=True)
    for path in (shut / "inner.txt", tmp_path / "workspace" / "shut.txt", tmp_path / "workspace" / "open.txt"):
        path.touch()
    for mode, path in ((0, shut), (0, tmp_path / "workspace" / "shut.txt")):
        path.chmod(mode)
    told = "for each in NanobotHome(Path(sys.argv[1])).texts(): print(getattr(each, 'text', '') or each.name)"
    code = f"import sys\nfrom pathlib import Path\nfrom everloop.moving.nanobot import NanobotHome\n{told}"
    words = (*as_one_of_many(), sys.executable, "-c", code, str(tmp_path))
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    shut.chmod(0o700)
    assert ran.stdout.splitlines() == [
        "open.txt",
        "shut of the workspace may not be read: copy it by hand",
        "shut.txt of the workspace may not be read: copy it by hand",
    ]


ODD: tuple[Any, ...] = (None, 3, -1, 10**400, float("nan"), "x", "", True, [], {}, [1, None, {}], {"a": 1}, "\ud800\0")


def changed(tree: Any, by: random.Random) -> Any:
    """With something in it that does not belong there."""
    tree = copy.deepcopy(tree)
    node = tree
    while node:
        key = by.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if by.random() < 0.35 or not isinstance(node[key], dict | list) or not node[key]:
            node[key] = copy.deepcopy(by.choice(ODD))
            break
        node = node[key]
    return tree


def test_nothing_that_stands_in_the_wrong_place_stops_a_reader(tmp_path: Path):
    by = random.Random(21)
    chatgpt = ChatGptExport(chatgpt_export(tmp_path / "e.zip"))
    nanobots = json.loads((FIXTURES / "nanobot" / ".nanobot" / "config.json").read_text())
    openclaws = loads((FIXTURES / "openclaw" / ".openclaw" / "openclaw.json").read_text())
    for _ in range(300):
        chatgpt.conversation_of(changed(chatgpt_conversation(), by), "here")
        conversation_of(changed(CLAUDE, by), "here")
        assert list(settings_of(of_nanobot(changed(nanobots, by)).values))
        assert list(settings_of(of_openclaw(changed(openclaws, by)).values))


def test_compressed_messages_are_read_or_their_session_is_left_and_told(tmp_path: Path):
    home = openclaw_home(tmp_path)
    database = sqlite3.connect(home / "agents" / "main" / "agent" / "openclaw-agent.sqlite")
    database.execute("UPDATE transcript_events SET event_json = NULL, event_zstd = x'00' WHERE seq = 4")
    database.commit()
    database.close()
    found = list(OpenClawHome(home).conversations())
    left = [each for each in found if isinstance(each, Remark) or each.remarks]
    assert len(left) == len(found) == 2


def test_a_link_and_a_pipe_say_nothing_and_a_file_does(tmp_path: Path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    assert [read_text(tmp_path / name) for name in ("file", "link", "pipe", "none")] == ["mine", "", "", ""]


def test_two_documents_of_one_name_are_two_files(tmp_path: Path):
    docs = [{"filename": "plan.md", "content": each} for each in ("first", "second")]
    (tmp_path / "conversations.json").write_text("[]")
    (tmp_path / "projects.json").write_text(json.dumps([{"name": "Soil", "docs": docs}]))
    texts = [(each.name, each.text) for each in ClaudeExport(tmp_path).texts() if isinstance(each, ForeignText)]
    assert texts == [
        ("imported/claude/Soil/plan.md", "first"),
        ("imported/claude/Soil/plan-16367aac.md", "second"),
    ]


def test_a_strangers_home_names_no_folder_of_whoever_moves_in(tmp_path: Path):
    keys, home = tmp_path / "keys", tmp_path / "theirs"
    keys.mkdir()
    (keys / "id").write_text("secret")
    home.mkdir()
    (home / "config.json").write_text(json.dumps({"agents": {"defaults": {"workspace": str(keys)}}}))
    with pytest.raises(EverloopError, match="holds nothing that a workspace has"):
        NanobotHome(home)
    (home / "config.json").write_text("{}")
    (home / "workspace").symlink_to(keys)
    with pytest.raises(EverloopError, match="holds nothing that a workspace has"):
        NanobotHome(home)
    (keys / "AGENTS.md").write_text("It is one.")
    assert [each.name for each in NanobotHome(home).texts() if isinstance(each, ForeignText)] == ["AGENTS.md", "id"]
    (home / "media").symlink_to(keys)
    assert NanobotHome(home).file(ForeignFile("id", "id"), 100) is None
    (home / "media").unlink()
    (home / "media").mkdir()
    (home / "media" / "id").write_bytes(b"a picture")
    assert NanobotHome(home).file(ForeignFile("id", "id"), 100) == b"a picture"
