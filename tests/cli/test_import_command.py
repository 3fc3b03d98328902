"""`everloop import` as people run it: from homes that nanobot and OpenClaw wrote, and from exports."""

import asyncio
import json
import os
import shlex
import shutil
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from tests.cli.person import Person, said_in
from tests.moving.foreign_homes import (
    FIXTURES,
    chatgpt_conversation,
    chatgpt_export,
    claude_export,
    node,
    openclaw_home,
    said,
)
from tests.processes import kill

from everloop.app.opening import opened_home
from everloop.testing import Say
from everloop.testing.model_server import ModelServer

NANOBOT = str(FIXTURES / "nanobot")


@pytest.fixture
def person(person: Person) -> Person:
    for name in ("AGENTS__DEFAULTS__MODEL", "PROVIDERS__CUSTOM__API_BASE", "PROVIDERS__CUSTOM__API_KEY"):
        del person.environment[f"EVERLOOP_{name}"]
    person.environment["TZ"] = "UTC"
    return person


async def moved(person: Person, *words: str) -> dict[str, Any]:
    ran = await person.run("import", *words, "--json")
    assert (ran.status, ran.err) == (0, "")
    report: dict[str, Any] = msgspec.json.decode(ran.out)
    return report


async def asked(person: Person, *words: str) -> Any:
    ran = await person.run(*words, "--json")
    assert ran.status == 0
    return msgspec.json.decode(ran.out)


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def rows_in(home: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What the store holds of what an import makes."""
    tables = ("threads", "entries", "sessions", "schedules", "jobs", "facts", "memory_documents", "files", "vault")
    with closing(apsw.Connection(str(home / "everloop.db"))) as database:
        return {name: database.execute(f'SELECT * FROM "{name}"').fetchall() for name in tables}


async def test_a_dry_run_tells_and_writes_nothing(person):
    report = await moved(person, "nanobot", NANOBOT, "--dry-run")
    assert (report["dry_run"], report["messages"], files_in(person.home)) == (True, 22, {})
    await moved(person, "nanobot", NANOBOT)
    before = files_in(person.home)
    again = await moved(person, "nanobot", NANOBOT, "--dry-run")
    assert (again["taken"], files_in(person.home)) == ([], before)


async def test_what_nanobot_had_is_found_again_and_a_second_import_changes_nothing(person, model: ModelServer):
    report = await moved(person, "nanobot", NANOBOT)
    settings = [
        *("providers.custom.api_key", "providers.custom.api_base", "providers.openrouter.api_key", "models.fast"),
        *("agents.defaults.model", "agents.defaults.max_tokens", "agents.defaults.temperature"),
        *("agents.defaults.max_tool_iterations", "agents.defaults.fallbacks", "gateway.host", "gateway.port"),
        *("heartbeat.every", "channels.telegram", "tools.mcp_servers.files"),
    ]
    files = ["AGENTS.md", "HEARTBEAT.md", "SOUL.md", "USER.md", "notes/plan.txt", "prompts/README.md"]
    assert [(each["what"], each["name"]) for each in report["taken"]] == [
        *(("setting", name) for name in settings),
        *(("memory", "MEMORY.md"), ("memory", "HISTORY.md")),
        *(("file", name) for name in files),
        ("skill", "tomatoes"),
        *(("job", name) for name in ("water plants", "Stretch", "Call the dentist")),
        *(("conversation", name) for name in ("Hello, I am Mara", "The garden")),
    ]
    assert sorted(line.partition(" ")[0] for line in report["left"]) == [
        *("channels.whatsapp", "the", "tools.restrictToWorkspace"),
    ]
    [water] = [each["note"] for each in report["taken"] if each["name"] == "water plants"]
    assert water.startswith("cron 0 8 * * 1-5; paused, so that two do not do it")
    [heart] = [each["note"] for each in report["taken"] if each["name"] == "HEARTBEAT.md"]
    assert "imported/nanobot/HEARTBEAT.md of the workspace, so that two do not do it" in heart
    assert "freeze" in (person.home / "workspace" / "imported" / "nanobot" / "HEARTBEAT.md").read_text()
    assert (await person.run(*shlex.split(water.partition("everloop ")[2]))).status == 0
    assert [
        each["schedule"]["name"] for each in (await asked(person, "cron", "list"))["schedules"] if each["enabled"]
    ] == ["water plants"]
    assert (await person.run("cron", "disable", "water plants")).status == 0
    await same_again(person, "nanobot", NANOBOT)
    listed = (await asked(person, "sessions", "list"))["conversations"]
    assert [(each["session"], each["title"], each["current"]) for each in listed] == [
        ("telegram:123456", "The garden", True),
        ("cli:direct", "Hello, I am Mara", True),
    ]
    shown = (await asked(person, "sessions", "show", "telegram:123456"))["said"]
    assert [(each["who"], each["text"]) for each in shown][-2:] == [
        ("owner", "What is this?\n[leaf.png]"),
        ("assistant", "A leaf."),
    ]
    jobs = (await asked(person, "cron", "list"))["schedules"]
    assert sorted((each["schedule"]["name"], each["schedule"]["zone"], each["enabled"]) for each in jobs) == [
        *(("Call the dentist", "UTC", False), ("Stretch", "UTC", False), ("water plants", "Europe/Vienna", False)),
    ]
    memory = (person.home / "workspace" / "memory" / "MEMORY.md").read_text()
    assert "- Mara lives in Graz\n- Mara grows tomatoes" in memory
    assert model.calls == 0


async def same_again(person: Person, *words: str) -> None:
    files, rows = files_in(person.home), rows_in(person.home)
    again = await moved(person, *words)
    assert again["taken"] == []
    assert rows_in(person.home) == rows
    kept = {name: data for name, data in files.items() if not name.startswith(("everloop.db", "run/"))}
    now = files_in(person.home)
    assert {name: data for name, data in now.items() if not name.startswith(("everloop.db", "run/"))} == kept


async def test_no_key_stands_in_the_settings_and_all_are_in_the_vault(person):
    ran = await person.run("import", "nanobot", NANOBOT)
    config = (person.home / "config.toml").read_text()
    for secret in ("made-up-000", "made-up-444", "made-up-telegram", "made-up-888"):
        assert secret not in config + ran.out + ran.err
    assert 'token = "${vault:telegram.token}"' in config
    assert "enabled = false" in config
    async with opened_home(person.home) as opened:
        kept = {name: await opened.vault.get(name) for name in await opened.vault.names()}
    assert kept == {
        "key:custom": "sk-custom-made-up-000111222333",
        "key:openrouter": "sk-or-v1-made-up-444555666777",
        "secret:telegram.token": "123456:made-up-telegram-token",
        "secret:mcp.files.TOKEN": "made-up",
    }


async def test_what_was_changed_or_removed_here_since_stays_so(person):
    await moved(person, "nanobot", NANOBOT)
    [garden, hello] = (await asked(person, "sessions", "list"))["conversations"]
    assert (await person.run("sessions", "delete", garden["id"], "--yes")).status == 0
    assert (await person.run("sessions", "rename", hello["id"], "Mine")).status == 0
    (person.home / "workspace" / "SOUL.md").write_text("mine")
    (person.home / "workspace" / "notes" / "plan.txt").unlink()
    config = person.home / "config.toml"
    config.write_text(config.read_text().replace('model = "custom/scripted"', 'model = "custom/other"'))
    memory = person.home / "workspace" / "memory" / "MEMORY.md"
    memory.write_text(memory.read_text().replace("- Mara grows tomatoes", "- Mara grows beans"))
    for job in (await asked(person, "cron", "list"))["schedules"]:
        assert (await person.run("cron", "remove", job["schedule"]["id"])).status == 0
    assert (await moved(person, "nanobot", NANOBOT))["taken"] == []
    assert [each["title"] for each in (await asked(person, "sessions", "list"))["conversations"]] == ["Mine"]
    assert (person.home / "workspace" / "SOUL.md").read_text() == "mine"
    assert not (person.home / "workspace" / "notes" / "plan.txt").exists()
    assert 'model = "custom/other"' in config.read_text()
    assert "tomatoes" not in memory.read_text()
    assert "beans" in memory.read_text()
    assert (await asked(person, "cron", "list"))["schedules"] == []


async def test_what_is_here_already_is_not_written_over(person):
    (person.home / "workspace").mkdir(parents=True)
    (person.home / "workspace" / "SOUL.md").write_text("mine")
    (person.home / "config.toml").write_text('[agents.defaults]\nmodel = "custom/mine"\n')
    foretold = await moved(person, "nanobot", NANOBOT, "--dry-run")
    report = await moved(person, "nanobot", NANOBOT)
    assert (foretold["left"], foretold["taken"]) == (report["left"], report["taken"])
    assert (person.home / "workspace" / "SOUL.md").read_text() == "mine"
    assert 'model = "custom/mine"' in (person.home / "config.toml").read_text()
    left = [line.partition(":")[0] for line in report["left"]]
    assert {"file SOUL.md", "setting agents.defaults.model"} <= set(left)


async def test_an_imported_conversation_goes_on_where_it_was(person, model):
    await moved(person, "nanobot", NANOBOT)
    person.environment["EVERLOOP_PROVIDERS__CUSTOM__API_BASE"] = model.url
    model.play([Say("I remember.")])
    ran = await person.run("agent", "-m", "Do you remember?")
    assert (ran.status, ran.out, model.calls) == (0, "I remember.\n", 1)
    [shown] = [said for said in map(said_in, model.prompts) if said[-1] == ("user", "Do you remember?")]
    assert ("assistant", "The plan is written.") in shown


async def test_what_openclaw_had_is_found_again(person, tmp_path):
    home = str(openclaw_home(tmp_path / "other"))
    report = await moved(person, "openclaw", home)
    assert [each["name"] for each in report["taken"] if each["what"] != "setting"] == [
        *("MEMORY.md", "HISTORY.md", "AGENTS.md", "IDENTITY.md", "SOUL.md", "USER.md", "notes/plan.txt", "tomatoes"),
        *("water plants", "stretch", "dentist", "Hello, I am Mara", "From the phone"),
    ]
    await same_again(person, "openclaw", home)
    config = (person.home / "config.toml").read_text()
    assert 'model = "local/scripted"' in config
    assert "made-up" not in config


async def test_exports_of_chatgpt_and_claude_become_conversations(person, tmp_path):
    export = str(chatgpt_export(tmp_path / "export.zip"))
    assert (await moved(person, "chatgpt", export))["messages"] == 12
    await same_again(person, "chatgpt", export)
    assert (await moved(person, "claude", str(claude_export(tmp_path / "claude"))))["messages"] == 4
    listed = (await asked(person, "sessions", "list"))["conversations"]
    assert sorted(each["title"] for each in listed) == ["Garden 1", "Garden 2", "Soil"]
    assert all(each["session"].startswith("page:") for each in listed)
    shown = (await asked(person, "sessions", "show", listed[-1]["id"]))["said"]
    assert next((each["at"], each["who"], each["text"]) for each in shown) == (
        1_700_000_010.0,
        "owner",
        "How much is 6*7?",
    )
    assert not (tmp_path / "outside.txt").exists()


async def test_killed_in_the_middle_and_run_again_it_is_whole_and_nothing_is_twice(person, tmp_path):
    many = [chatgpt_conversation(number) for number in range(60)]
    export = str(chatgpt_export(tmp_path / "export.zip", json.dumps(many)))
    process = await person.start("import", "chatgpt", export)
    ledger = person.home / "imports"
    while not (ledger.exists() and len(ledger.read_text().split()) >= 5) and process.returncode is None:
        await wait_a_moment(process)
    await kill(process)
    await moved(person, "chatgpt", export)
    listed = (await asked(person, "sessions", "list", "-n", "100"))["conversations"]
    assert sorted(each["title"] for each in listed) == sorted(f"Garden {number}" for number in range(60))
    await same_again(person, "chatgpt", export)


async def test_whoever_was_killed_before_it_was_written_down_finds_everything_there(person, tmp_path):
    """As if each thing had been the last that was done."""
    home = str(openclaw_home(tmp_path / "other"))
    for words in (("nanobot", NANOBOT), ("openclaw", home), ("chatgpt", str(chatgpt_export(tmp_path / "x.zip")))):
        await moved(person, *words)
        files, rows = files_in(person.home), rows_in(person.home)
        (person.home / "imports").unlink()
        await moved(person, *words)
        assert rows_in(person.home) == rows
        now = files_in(person.home)
        assert {name for name in now if now[name] != files.get(name)} <= {"imports", "everloop.db", "everloop.db-wal"}


async def wait_a_moment(process: asyncio.subprocess.Process) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), 0.01)


async def test_what_has_grown_there_since_is_told_and_comes_beside_the_first_when_asked_for(person, tmp_path):
    export = str(chatgpt_export(tmp_path / "x.zip", json.dumps([chatgpt_conversation(1)])))
    await moved(person, "chatgpt", export)
    longer = chatgpt_conversation(1)
    longer["mapping"]["m6"]["children"], longer["current_node"] = ["m7"], "m7"
    longer["mapping"]["m7"] = node("m7", "m6", [], said("m7", "user", "Thanks!", 1_700_000_070.0))
    chatgpt_export(tmp_path / "x.zip", json.dumps([longer]))
    told = await moved(person, "chatgpt", export)
    assert (told["taken"], len(told["left"])) == ([], 1)
    assert (await moved(person, "chatgpt", export, "--grown"))["messages"] == 7
    assert (await moved(person, "chatgpt", export, "--grown"))["taken"] == []
    assert len((await asked(person, "sessions", "list"))["conversations"]) == 2


async def test_a_broken_export_is_taken_over_as_far_as_it_is_whole(person, tmp_path):
    whole, broken = json.dumps(chatgpt_conversation(1)), json.dumps(chatgpt_conversation(2))[:-40] + "}"
    export = str(chatgpt_export(tmp_path / "x.zip", f"[{whole}, {broken}"))
    report = await moved(person, "chatgpt", export)
    assert (len(report["taken"]), len(report["left"])) == (1, 2)
    ran = await person.run("import", "chatgpt", str(tmp_path / "nothing"))
    assert (ran.status, ran.err) == (1, f"everloop: there is no file or folder {tmp_path / 'nothing'}\n")


async def test_titles_and_names_steer_no_terminal(person, tmp_path):
    evil = chatgpt_conversation(1) | {"title": "\x1b]0;owned\x07\x00\u202e"}
    ran = await person.run("import", "chatgpt", str(chatgpt_export(tmp_path / "x.zip", json.dumps([evil]))))
    assert ran.status == 0
    assert not {"\x1b", "\x07", "\x00", "\u202e"} & set(ran.out + ran.err)


async def test_a_name_that_is_no_text_is_told_and_kept_all_the_same(person, tmp_path):
    evil = chatgpt_conversation(1) | {"title": "\ud800 leaf", "conversation_id": "\udcff"}
    picture = evil["mapping"]["m5"]["message"]["metadata"]
    picture["attachments"] = [{"id": "file-\ud800", "name": "\ud800\0.png"}]
    report = await moved(person, "chatgpt", str(chatgpt_export(tmp_path / "x.zip", json.dumps([evil]))))
    assert ([each["name"] for each in report["taken"]], report["left"][0][:8]) == (["? leaf"], "“? leaf”")
    home = tmp_path / "other" / ".nanobot"
    shutil.copytree(FIXTURES / "nanobot" / ".nanobot", home)
    os.close(os.open(os.fsencode(home / "workspace") + b"/caf\xe9.txt", os.O_CREAT))
    report = await moved(person, "nanobot", str(home))
    assert "caf?.txt" in [each["name"] for each in report["taken"]]
    assert os.fsencode(person.home / "workspace") + b"/caf\xe9.txt" in map(
        os.fsencode, (person.home / "workspace").iterdir()
    )
    docs = [{"filename": "plan.md", "content": "\ud800 sow"}]
    (claude_export(tmp_path / "claude") / "projects.json").write_text(json.dumps([{"name": "Soil", "docs": docs}]))
    await moved(person, "claude", str(tmp_path / "claude"))
    assert (person.home / "workspace" / "imported" / "claude" / "Soil" / "plan.md").read_text() == "? sow"


async def test_what_another_heartbeat_asks_for_is_looked_at_here_once_its_owner_says_so(person, tmp_path):
    theirs = (FIXTURES / "nanobot/.nanobot/workspace/HEARTBEAT.md").read_text()
    await moved(person, "nanobot", NANOBOT)
    assert not (person.home / "workspace" / "HEARTBEAT.md").exists()
    person.home = tmp_path / "other"
    person.environment["EVERLOOP_HOME"] = str(person.home)
    await moved(person, "nanobot", NANOBOT, "--enable")
    assert (person.home / "workspace" / "HEARTBEAT.md").read_text() == theirs


async def test_a_dry_run_refuses_what_the_import_would_refuse(person, tmp_path):
    """And takes what it would take: the two reports are the same."""
    home = tmp_path / "other"
    shutil.copytree(FIXTURES / "nanobot" / ".nanobot", home)
    jobs = [
        {"id": "a", "name": "often", "schedule": {"kind": "every", "everyMs": 1000}, "payload": {"message": "x"}},
        {"id": "b", "name": "never", "schedule": {"kind": "cron", "expr": "99 * * * *"}, "payload": {"message": "x"}},
        {"id": "c", "name": "daily", "schedule": {"kind": "cron", "expr": "0 8 * * *"}, "payload": {"message": "x"}},
    ]
    (home / "cron").mkdir()
    (home / "cron" / "jobs.json").write_text(json.dumps({"jobs": jobs}))
    (home / "workspace" / "skills" / "bad").mkdir()
    (home / "workspace" / "skills" / "bad" / "SKILL.md").write_text("how")
    (home / "workspace" / "skills" / "bad" / "key").symlink_to("/etc/hostname")
    (home / "workspace" / "memory" / "MEMORY.md").write_text("- a line of it\n" * 100_000)
    foretold = await moved(person, "nanobot", str(home), "--dry-run")
    report = await moved(person, "nanobot", str(home))
    assert (foretold["taken"], foretold["left"]) == (report["taken"], report["left"])
    left = "\n".join(report["left"])
    for refused in ("job often: that is too", "job never: the cron", "skill bad:", "MEMORY.md would have"):
        assert refused in left
    assert "daily" in [each["name"] for each in report["taken"]]
    twice = str(chatgpt_export(tmp_path / "x.zip", json.dumps([chatgpt_conversation(1)] * 2)))
    foretold = await moved(person, "chatgpt", twice, "--dry-run")
    assert {**foretold, "dry_run": False} == await moved(person, "chatgpt", twice)
