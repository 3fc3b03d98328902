"""Makes the homes of other agents that the tests of `everloop import` read: tests/fixtures/foreign.

Both are written by the real programs, which speak with a scripted model on loopback, in a network namespace that has
nothing else:

    python -m venv /tmp/nanobot && /tmp/nanobot/bin/pip install nanobot-ai==0.3.5
    npm install --prefix /tmp/openclaw --ignore-scripts openclaw@2026.9.6
    python scripts/make_foreign_homes.py nanobot /tmp/nanobot/bin/nanobot
    python scripts/make_foreign_homes.py openclaw /tmp/openclaw/node_modules/openclaw/openclaw.mjs --node NODE

Of what they wrote, only what an import reads is kept (no locks, no logs, no .git), with the path of the home as
/home/mara. Keys and tokens in them are made up. Of a database of OpenClaw's the tables that are read are kept, as SQL.
"""

import argparse
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures" / "foreign"
HOME = "/home/mara"
ALONE = "FOREIGN_HOMES_ALONE"
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da63f8cfc0f01f000501"
    "01ff5b7f6b0d0000000049454e44ae426082"
)
SKILL = """---
name: {name}
description: {about}
---

# {name}

{text}
"""

NANOBOT_SAID: tuple[tuple[str, str, list[Any]], ...] = (
    ("cli:direct", "Hello, I am Mara", ["Hello Mara, I am here."]),
    (
        "cli:direct",
        "Write the plan for the garden",
        [
            {"call": "write_file", "args": {"path": "notes/plan.txt", "content": "1. sow\n2. water\n"}, "id": "c1"},
            "The plan is written.",
        ],
    ),
    (
        "cli:direct",
        "Remember that I live in Graz",
        [
            {
                "call": "edit_file",
                "args": {
                    "path": "memory/MEMORY.md",
                    "old_text": "(Important facts about the user)",
                    "new_text": "- Mara lives in Graz\n- Mara grows tomatoes",
                },
                "id": "c2",
            },
            "I will keep that in mind.",
        ],
    ),
    (
        "telegram:123456",
        "Remind me on weekdays at eight",
        [
            {
                "call": "cron",
                "args": {
                    "action": "add",
                    "name": "water plants",
                    "message": "Water the tomatoes",
                    "cron_expr": "0 8 * * 1-5",
                    "tz": "Europe/Vienna",
                },
                "id": "c3",
            },
            "At eight then.",
        ],
    ),
    (
        "telegram:123456",
        "And every two hours: stretch",
        [
            {"call": "cron", "args": {"action": "add", "message": "Stretch", "every_seconds": 7200}, "id": "c4"},
            {
                "call": "cron",
                "args": {"action": "add", "message": "Call the dentist", "at": "2037-03-01T10:00:00"},
                "id": "c5",
            },
            "Done, and the dentist on the first of March.",
        ],
    ),
)

# What a channel would do with a photo; run by nanobot's own Python, with its own session store.
NANOBOT_MEDIA = """
import sys
from pathlib import Path
from nanobot.session.manager import SessionManager
home = Path(sys.argv[1])
manager = SessionManager(home / ".nanobot" / "workspace")
session = manager.get_or_create("telegram:123456")
session.add_message("user", "What is this?", media=[str(home / ".nanobot" / "media" / "telegram" / "leaf.png")])
session.add_message("assistant", "A leaf.")
session.metadata["title"] = "The garden"
manager.save(session)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("which", choices=("nanobot", "openclaw"))
    parser.add_argument("program", type=Path)
    parser.add_argument("--node", default="node")
    given = parser.parse_args()
    if not os.environ.get(ALONE):
        again = ("sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, *sys.argv)
        os.execvpe("unshare", ("unshare", "-rn", *again), {**os.environ, ALONE: "1"})
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        if given.which == "nanobot":
            make_nanobot(given.program, home)
        else:
            make_openclaw((given.node, str(given.program)), home)


def run(home: Path, *command: str, more: dict[str, str] | None = None) -> str:
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC", "NO_COLOR": "1", **(more or {})}
    done = subprocess.run(command, cwd=home, env=environ, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


@contextmanager
def model(home: Path, lines: Sequence[Any]) -> Iterator[str]:
    """The address of a scripted model that says these lines in this order."""
    script = home / "script.json"
    script.write_text(json.dumps({"by": "order", "lines": list(lines)}))
    command = (sys.executable, "-m", "everloop.testing.model_server", "--port", "0", "--script", str(script))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield server.stdout.readline().split()[1]
        finally:
            server.send_signal(signal.SIGTERM)


def keep(home: Path, names: Sequence[str], to: Path) -> None:
    """Copy these files and folders, with the home's own path taken out of whatever is text."""
    shutil.rmtree(to, ignore_errors=True)
    for name in names:
        for source in sorted(path for path in (home / name, *(home / name).rglob("*")) if path.is_file()):
            target = to / source.relative_to(home)
            if {".git", ".gitignore"} & set(source.parts) or source.suffix == ".lock":
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes().replace(str(home).encode(), HOME.encode()))


def make_nanobot(program: Path, home: Path) -> None:
    run(home, str(program), "onboard")
    lines = [line for _, _, answers in NANOBOT_SAID for line in answers]
    with model(home, lines) as url:
        set_up_nanobot(home / ".nanobot" / "config.json", url)
        for session, text, _ in NANOBOT_SAID:
            run(home, str(program), "agent", "--no-markdown", "-s", session, "-m", text)
    config = home / ".nanobot" / "config.json"
    config.write_text(config.read_text().replace(url, "http://127.0.0.1:8000/v1"))
    picture = home / ".nanobot" / "media" / "telegram" / "leaf.png"
    picture.parent.mkdir(parents=True)
    picture.write_bytes(PICTURE)
    run(home, str(program.parent / "python"), "-c", NANOBOT_MEDIA, str(home))
    workspace = home / ".nanobot" / "workspace"
    skill = workspace / "skills" / "tomatoes" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(SKILL.format(name="tomatoes", about="How tomatoes are grown", text="Sow in March."))
    (workspace / "HEARTBEAT.md").write_text("## Active Tasks\n\n- Look whether it will freeze tonight\n")
    with (workspace / "memory" / "history.jsonl").open("a") as history:
        history.write('{"cursor": 1, "timestamp": "2026-11-01 10:00", "content": "Mara moved to Graz."}\n')
    keep(home, (".nanobot",), FIXTURES / "nanobot")


def set_up_nanobot(path: Path, url: str) -> None:
    """As a user would, who uses some of what there is."""
    config = json.loads(path.read_text())
    config["providers"]["custom"].update(apiKey="sk-custom-made-up-000111222333", apiBase=url)
    config["providers"]["openrouter"].update(apiKey="sk-or-v1-made-up-444555666777")
    config["agents"]["defaults"].update(model="scripted", provider="custom", fallbackModels=["fast"])
    config["modelPresets"]["fast"] = {"model": "openai/gpt-5-mini", "provider": "openrouter", "maxTokens": 2000}
    config["channels"]["telegram"].update(enabled=True, token="123456:made-up-telegram-token", allowFrom=["123456"])
    config["channels"]["whatsapp"].update(enabled=True)
    config["tools"]["web"]["search"].update(provider="brave", apiKey="BSA-made-up-888999")
    config["tools"]["mcpServers"]["files"] = {"command": "little-mcp", "args": ["/data"], "env": {"TOKEN": "made-up"}}
    config["gateway"]["port"] = 18888
    config["gateway"]["heartbeat"]["intervalS"] = 3600
    path.write_text(json.dumps(config, indent=2, ensure_ascii=False))


OPENCLAW_SAID: tuple[tuple[str, str, list[Any]], ...] = (
    ("agent:main:main", "Hello, I am Mara", ["Hello Mara, I am here."]),
    (
        "agent:main:main",
        "Write the plan for the garden",
        [
            {"call": "write", "args": {"path": "notes/plan.txt", "content": "1. sow\n2. water\n"}, "id": "c1"},
            "The plan is written.",
        ],
    ),
    (
        "agent:main:main",
        "Remember that I live in Graz",
        [
            {
                "call": "write",
                "args": {"path": "MEMORY.md", "content": "# Memory\n\n- Mara lives in Graz\n"},
                "id": "c2",
            },
            {
                "call": "write",
                "args": {"path": "memory/2026-11-17.md", "content": "# 2026-11-17\n\n- sowed tomatoes\n"},
                "id": "c3",
            },
            "I will keep that in mind.",
        ],
    ),
    ("agent:main:telegram:direct:123456", "From the phone", ["Hello on Telegram."]),
)
OPENCLAW_CRON = (
    ("--name", "water plants", "--cron", "0 8 * * 1-5", "--tz", "Europe/Vienna", "--message", "Water the tomatoes"),
    ("--name", "stretch", "--every", "2h", "--message", "Stretch", "--session", "isolated"),
    ("--name", "dentist", "--at", "2036-03-01T10:00:00Z", "--message", "Call the dentist"),
    ("--name", "exact", "--cron", "30 0 8 * * *", "--message", "At the half minute"),
)
OPENCLAW_TABLES = ("session_nodes", "session_windows", "transcript_events", "session_transcript_active_events")


def make_openclaw(program: tuple[str, str], home: Path) -> None:
    state = home / ".openclaw"
    state.mkdir()
    lines = [line for _, _, answers in OPENCLAW_SAID for line in answers]
    with model(home, lines) as url:
        (state / "openclaw.json").write_text(OPENCLAW_CONFIG.replace("URL", url))
        for session, text, _ in OPENCLAW_SAID:
            run(home, *program, "agent", "--local", "--session-key", session, "--message", text)
        with gateway(program, home):
            for job in OPENCLAW_CRON:
                run(home, *program, "cron", "add", *job)
    config = (state / "openclaw.json").read_text().replace(url, "http://127.0.0.1:8000/v1")
    (state / "openclaw.json").write_text(config)
    skill = state / "workspace" / "skills" / "tomatoes" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(SKILL.format(name="tomatoes", about="How tomatoes are grown", text="Sow in March."))
    dump(state / "agents" / "main" / "agent" / "openclaw-agent.sqlite", OPENCLAW_TABLES)
    dump(state / "state" / "openclaw.sqlite", ("cron_jobs",))
    names = ("openclaw.json", "workspace", "agents/main/agent/openclaw-agent.sqlite.sql", "state/openclaw.sqlite.sql")
    keep(home, [f".openclaw/{name}" for name in names], FIXTURES / "openclaw")


OPENCLAW_CONFIG = """{
  // set up by hand
  gateway: { mode: "local", port: 19789, bind: "loopback", auth: { mode: "token", token: "made-up-gateway-token" } },
  models: {
    mode: "merge",
    providers: {
      local: {
        baseUrl: "URL",
        apiKey: "sk-local-made-up-000111222333",
        api: "openai-completions",
        models: [{ id: "scripted", name: "Scripted", contextWindow: 128000, maxTokens: 4096 }],
      },
    },
  },
  agents: {
    defaults: {
      model: { primary: "local/scripted" },
      userTimezone: "Europe/Vienna",
      heartbeat: { every: "1h" },
    },
  },
  channels: {
    telegram: {
      enabled: false, botToken: "123456:made-up-telegram-token", dmPolicy: "allowlist", allowFrom: ["123456"],
    },
  },
  mcp: { servers: { files: { command: "little-mcp", args: ["/data"], env: { TOKEN: "made-up" } } } },
}
"""


@contextmanager
def gateway(program: tuple[str, str], home: Path) -> Iterator[None]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC", "NO_COLOR": "1"}
    log = home / "gateway.log"
    with (
        log.open("w") as out,
        subprocess.Popen((*program, "gateway", "run"), env=environ, stdout=out, stderr=out) as one,
    ):
        try:
            until = time.monotonic() + 120
            while "http server listening" not in log.read_text():
                if one.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"the gateway did not start:\n{log.read_text()}")
                time.sleep(0.5)
            yield
        finally:
            one.send_signal(signal.SIGTERM)


def dump(path: Path, tables: Sequence[str]) -> None:
    """The rows of some tables as SQL, beside the database; what they check they have checked."""
    database = sqlite3.connect(path)
    lines = []
    for table in tables:
        columns = ", ".join(row[1] for row in database.execute(f'PRAGMA table_info("{table}")'))
        lines.append(f'CREATE TABLE "{table}"({columns});')
        for row in database.execute(f'SELECT * FROM "{table}" ORDER BY rowid').fetchall():
            marks = ", ".join(literal(value) for value in row)
            lines.append(f'INSERT INTO "{table}" VALUES({marks});')
    database.close()
    path.with_name(f"{path.name}.sql").write_text("\n".join(lines) + "\n")


def literal(value: Any) -> str:
    if isinstance(value, str) and '"skillsSnapshot"' in value:  # all that the agent was told, for nothing
        entry = json.loads(value)
        value = json.dumps({key: entry[key] for key in ("sessionId", "updatedAt", "sessionStartedAt")})
    if value is None or isinstance(value, int | float):
        return "NULL" if value is None else repr(value)
    return f"x'{value.hex()}'" if isinstance(value, bytes) else "'" + str(value).replace("'", "''") + "'"


if __name__ == "__main__":
    main()
