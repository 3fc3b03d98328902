"""The doctor finds each fault that was planted, says what to do about it, and finds nothing in a home that is well.

Faults that do not touch each other are planted into one home and looked for at once.
"""

import asyncio
import logging
import os
import socket
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from pathlib import Path

import apsw
import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID
from msgspec import Struct

from everloop.app.doctor.check import Patient
from everloop.app.doctor.machine import _lacking
from everloop.app.doctor.storage import look_at_wal
from everloop.cli.logbook import LogFile
from everloop.core.mail import Address, Outbound
from everloop.core.people import Role
from everloop.errors import StoreError
from everloop.net.trusted import TrustedHttp
from everloop.ports.budgets import Limit
from everloop.ports.directory import Person
from everloop.ports.doctor import Diagnosis
from everloop.ports.jobs import Job, TaskState
from everloop.ports.schedules import Schedule
from everloop.store import schema
from everloop.store.sqlite import SqliteStore
from everloop.store.vault import EncryptedVault, key_of
from everloop.tools.sandbox.choose import Confinement, Unconfined
from tests.app.doctor.home import DoctoredHome, ModelHost, freeze, grave, process_with
from tests.ports import free_port

YEAR = 365 * 86_400.0
TLS = 'tls_cert = "c.pem"\ntls_key = "k.pem"'


def write_certificate(folder: Path, days: float, locked: KeySerializationEncryption = NoEncryption()) -> None:  # noqa: B008
    """One that expires in so many days, and its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    made = made.not_valid_before(now - timedelta(days=9)).not_valid_after(now + timedelta(days=days))
    (folder / "c.pem").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    (folder / "k.pem").touch(0o600)
    (folder / "k.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked))


class Planted(Struct, frozen=True):
    """A fault: which check finds it, how grave it is, and words of what is said and of the cure."""

    check: str
    verdict: str
    says: str
    cure: str

    def is_found(self, findings: list[Diagnosis]) -> bool:
        return any(
            each.check == self.check
            and each.verdict == self.verdict
            and self.says in each.what
            and self.cure in each.todo
            for each in findings
        )


def missed(planted: list[Planted], findings: list[Diagnosis]) -> list[Planted]:
    return [fault for fault in planted if not fault.is_found(findings)]


async def test_a_home_that_is_well_has_no_findings_and_is_left_as_it_was(home: DoctoredHome):
    before = home.listing()
    findings = await home.examine()
    assert grave(findings) == []
    assert home.listing() == before
    assert sum(each.verdict == "ok" for each in findings) >= 35


async def test_a_home_that_is_not_there_yet_is_well_and_is_not_made(alone: pytest.MonkeyPatch, tmp_path: Path):
    home = DoctoredHome(tmp_path / "home", "")
    assert [each for each in grave(await home.examine()) if each.check not in ("models", "gateway-port")] == []
    assert not home.path.exists()


SETTINGS = """
[models.deep]
model = "nohost/x"

[channels.whatsapp]
token = "x"

[channels.webhook]
tokn = "x"

[tools.mcp_servers.misspelt]
comand = "x"

[tools.mcp_servers.absent]
command = "no-such-program-of-mine"

[tools.mcp_servers.gone]
url = "http://me:canary-of-gone@127.0.0.1:9/mcp"

[schedules]
timezone = "Europe/Berln"

[net]
ca_file = "/nowhere/ca.pem"

[files]
url = "s3://bucket"

[models.local]
model = "embedded"

[providers.embedded]
path = "/nowhere/x.gguf"

[providers.deepseek]
api_base = "BASE"

[providers.groq]
api_base = "BASE"
"""
IN_THE_SETTINGS = [
    Planted("settings-unused", "advice", "no channel for WhatsApp", "Take it out of the settings"),
    Planted("channels", "broken", "the channel webhook does not work", "everloop channels add webhook"),
    Planted("mcp-servers", "broken", "did you mean command?", "everloop mcp add misspelt"),
    Planted("mcp-servers", "broken", "the MCP server gone cannot be reached at 127.0.0.1:9", "mcp show gone"),
    Planted("models", "advice", "the models.deep model 'nohost/x' cannot be had", "models.deep.model"),
    Planted("mcp-servers", "broken", "no-such-program-of-mine of the MCP server absent", "Install it"),
    Planted("mcp-tools", "advice", "no tool of the MCP server absent is allowed", "everloop mcp allow absent"),
    Planted("time-zones", "broken", "'Europe/Berln', which is no time zone", "Europe/Berlin"),
    Planted("tls-roots", "broken", "/nowhere/ca.pem", "Name a file of certificates"),
    Planted("extras", "broken", "obstore is not installed", "pip install 'everloop[s3]'"),
    Planted("environment", "advice", "EVERLOOP_AGENTS_DEFAULTS_MODEL", "EVERLOOP_AGENTS__DEFAULTS__MODEL"),
    Planted("proxy", "broken", "cannot be reached", "NO_PROXY"),
    Planted("models", "advice", "the fallback model 'openrouter/x'", "everloop models"),
    Planted("hosts", "broken", "custom: key refused", "It is that of providers.custom.api_key: put another there"),
    Planted("hosts", "advice", "deepseek: key refused", "It is that of DEEPSEEK_API_KEY: put another there"),
    Planted("hosts", "advice", "groq: key refused", "everloop models key set groq keeps another"),
    Planted("clock", "broken", "ahead of that of custom", "timedatectl set-ntp true"),
    Planted("gateway-port", "broken", "is taken by another program", "gateway.port"),
    Planted(
        "models", "broken", "providers.embedded.path names /nowhere/x.gguf", "config unset providers.embedded.path"
    ),
]


async def test_what_is_wrong_in_settings_and_network_is_found(
    home: DoctoredHome, host: tuple[ModelHost, str], alone: pytest.MonkeyPatch
):
    expired = SETTINGS.replace("BASE", home.base)
    home.write_config(expired, context_window='fallbacks = ["openrouter/x"]\ncontext_window')
    alone.setenv("DEEPSEEK_API_KEY", "sk-canary-of-last-year")
    await home.do(lambda store: EncryptedVault(store, key_of(home.path, {})).set("key:groq", "sk-canary-of-last-year"))
    alone.setenv("EVERLOOP_AGENTS_DEFAULTS_MODEL", "x")
    alone.setitem(sys.modules, "obstore", None)
    host[0].status, host[0].headers = 401, {"Date": formatdate(time.time() - YEAR, usegmt=True)}
    alone.setenv("HTTPS_PROXY", f"http://127.0.0.1:{free_port()}")
    with socket.create_server(("127.0.0.1", home.port)):
        before = home.listing()
        findings = await home.examine()
        assert home.listing() == before
    assert missed(IN_THE_SETTINGS, findings) == []


IN_THE_HOME = [
    Planted("file-modes", "advice", "is open to other users", "chmod 700"),
    Planted("file-modes", "advice", "config.toml holds a key", "chmod 600"),
    Planted("file-modes", "advice", "everloop.db holds every conversation", "chmod 600"),
    Planted("vault-file", "broken", "vault.key can be used by others", "chmod 600"),
    Planted("running", "advice", "1 file in", "--fix"),
    Planted("running", "broken", "is frozen", "kill -CONT"),
    Planted("leftovers", "advice", "half-made by a process that was killed", "--fix removes"),
    Planted("folders", "broken", "views is no folder", "Move it away"),
    Planted("prompt-files", "broken", "AGENTS.md is no file", "Put a plain file"),
    Planted("prompt-files", "broken", "USER.md cannot be read as it is (it is not UTF-8", "Save it as UTF-8"),
    Planted("prompt-files", "advice", "SOUL.md is too long", "20,000 characters"),
    Planted("home", "broken", "is half restored", "Run `everloop backup restore` again with the same file"),
    Planted("memory-files", "advice", "both sides of a merge", "everloop memory edit"),
    Planted("skills", "advice", "the skill charts cannot be used: missing: program no-such-plotter", "Install what"),
    Planted("skills", "advice", "the SKILL.md of plain has no front matter", "Put three lines before it"),
    Planted("skills", "advice", "the skill empty of the workspace cannot be used", "Correct it, or remove"),
    Planted("outbox", "advice", "1 answer could not be delivered", "everloop outbox retry"),
    Planted("jobs", "advice", "overdue: 1 job (consolidate)", "everloop gateway"),
    Planted("schedules", "advice", "belongs to anna, who is not known any more", "everloop cron remove s1"),
    Planted("budgets", "advice", "the budget of Berta for a month is used up", "everloop users budget berta"),
    Planted("audit", "broken", "is not as it was written", "a backup"),
    Planted("log", "advice", "holds 1 error; the last: it has failed", "everloop logs --level error"),
]
COLUMNS = "key, thread, owner, channel, chat, body, at, state"
SKILL = """---
name: charts
description: Draws charts.
metadata: {"everloop": {"requires": {"bins": ["no-such-plotter"]}}}
---
Draw.
"""


async def fill(store: SqliteStore) -> None:
    await store.add_job(Job("late", "consolidate", time.time() - 9000))
    gone = Schedule(id="s1", owner="anna", name="tidy", does="message", text="x", session="cli:x", rule="every 3600")
    await store.add_schedule(gone, time.time() + 3600, 10)
    await store.introduce(Person("berta", "Berta", Role.USER))
    await store.set_limit("berta", "month", Limit(0, None))


async def test_what_is_wrong_in_the_home_is_found(home: DoctoredHome):
    folder = home.path / "skills" / "charts"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    for name, text in (("plain", "Draw."), ("empty", "")):
        (home.workspace / "skills" / name).mkdir(parents=True)
        (home.workspace / "skills" / name / "SKILL.md").write_text(text)
    await home.do(fill)
    letter = msgspec.json.encode(Outbound("k", Address("webhook", "x"), "hi")).decode()
    home.sql(f"INSERT INTO outbox({COLUMNS}) VALUES('k', 't', 'owner', 'webhook', 'x', ?, 1, 'failed')", letter)
    forge_audit(home)
    part = home.path / "everloop.db.before-99.part"
    part.touch()
    os.utime(part, (1, 1))
    book = LogFile(home.path / "logs" / "everloop.log")
    book.emit(
        logging.makeLogRecord({"name": "everloop.x", "msg": "it has failed", "levelno": 40, "levelname": "ERROR"})
    )
    book.close()
    memory = home.workspace / "memory" / "MEMORY.md"
    memory.write_text("# Memory\n<<<<<<< mine\n- a\n=======\n- b\n>>>>>>> theirs\n")
    (home.path / "views").touch()
    (home.workspace / "AGENTS.md").mkdir()
    (home.workspace / "USER.md").write_bytes(b"\xff\xfe")
    (home.workspace / "SOUL.md").write_text("x" * 20_001)
    (home.path / "restoring.json").touch()
    for path, mode in ((home.path, 0o755), (home.config, 0o644), (home.database, 0o644)):
        path.chmod(mode)
    (home.path / "vault.key").chmod(0o644)
    async with process_with(home.path) as process:
        (home.path / "run" / "999999-1-abcd").touch()
        freeze(process)
        findings = await home.examine()
    assert missed(IN_THE_HOME, findings) == []


IN_A_FILES_PLACE = [
    Planted("vault-file", "broken", "vault.key is no file", "bring its copy back"),
    Planted("folders", "broken", "everloop.log is no file", "Move it away"),
    Planted("folders", "broken", "history is no file", "Move it away"),
    Planted("prompt-files", "broken", "HEARTBEAT.md is no file", "Put a plain file"),
    Planted("settings-file", "advice", "config.edit.toml holds an edit", "everloop config edit goes on with it"),
    Planted("leftovers", "advice", ".config.toml.0123456789abcdef", "--fix removes"),
    Planted("file-modes", "advice", "service.env holds a key", "chmod 600"),
    Planted("mcp-servers", "broken", "of the MCP server mine is not there, or cannot be run", "chmod +x"),
    Planted("backups", "broken", "the backups cannot be written", "Set backup.folder"),
    Planted("running", "advice", "1 file in", "--fix"),
    Planted("workspace", "broken", "a link to /nowhere/drive, which is not there", "Mount or make that folder"),
    Planted("time-zones", "advice", "TZ is 'Mars/Olympus', which is no name of a time zone", "schedules.timezone"),
]


async def test_what_stands_where_a_file_should_be_is_found_and_waited_for_by_nobody(
    home: DoctoredHome, alone: pytest.MonkeyPatch
):
    alone.setenv("TZ", "Mars/Olympus")
    (home.path / "mine").write_text("no program")
    home.write_config(
        f'[backup]\nevery = "daily"\nfolder = "{home.path}/mine/backups"\n'
        f'[tools.mcp_servers.mine]\ncommand = "{home.path}/mine"\n'
    )
    (home.path / "vault.key").unlink()
    (home.path / "logs").mkdir()
    for folder in ("vault.key", "history", "workspace/HEARTBEAT.md", "run/folder"):
        (home.path / folder).mkdir(parents=True)
    (home.path / "logs" / "everloop.log.²").touch()
    os.mkfifo(home.path / "logs" / "everloop.log")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(home.path / "run" / "socket"))
    (home.path / "run" / "999999-1-abcd").touch()
    (home.path / "config.edit.toml").write_text("[agents]\n")
    (home.path / "service.env").write_text("OPENAI_API_KEY=of-mine")
    (home.path / "service.env").chmod(0o644)
    (draft := home.path / ".config.toml.0123456789abcdef").touch()
    os.utime(draft, (1, 1))
    found = await home.examine()
    home.workspace.rename(home.path / "drive")
    home.workspace.symlink_to("/nowhere/drive")
    assert (
        missed(IN_A_FILES_PLACE, [*found, *(each for each in await home.examine() if each.check == "workspace")]) == []
    )
    home.workspace.unlink()
    await home.do(fill)  # it opens all the same


def forge_audit(home: DoctoredHome) -> None:
    with closing(apsw.Connection(str(home.database))) as connection:
        connection.create_scalar_function("everloop_hash", lambda *_: "forged", 8)
        connection.execute(
            "INSERT INTO audit(at, actor, authority, deed, subject, detail) VALUES(1,'x','x','x','x','{}')"
        )


class TestAlone:
    """Faults that keep others from being seen."""

    async def test_a_setting_that_is_misspelt_is_named_with_its_line(self, home: DoctoredHome):
        home.write_config("[agents.default]\nmodel = 'x'\n")
        found = grave(await home.examine())
        assert missed([Planted("settings-file", "broken", "did you mean defaults?", "Correct it there")], found) == []
        assert "config.toml, line" in found[0].what
        assert {each.check for each in found} - {"gateway-port"} == {"settings-file", "store"}

    async def test_two_settings_files_and_one_that_is_no_toml(self, home: DoctoredHome):
        home.config.write_text("= what")
        torn = Planted("settings-file", "broken", "this is not valid TOML", "Correct it there")
        assert missed([torn], await home.examine()) == []
        (home.path / "config.json").write_text("{}")
        two = Planted("settings-file", "broken", "There are two settings files", "Correct it there")
        assert missed([two], await home.examine()) == []

    @pytest.mark.parametrize(
        ("setting", "says"),
        [
            ("[tools]\ndisabled = ['shel']", "tools.disabled: there is no tool 'shel'"),
            ("[tools]\nplugins = ['wheather']", "no package brings 'wheather'"),
        ],
    )
    async def test_what_looks_right_and_keeps_the_house_from_opening(self, home: DoctoredHome, setting: str, says: str):
        home.write_config(setting)
        followed = Planted("settings-followed", "broken", says, "no gateway opens before")
        assert missed([followed], await home.examine()) == []

    async def test_a_settings_file_that_is_a_link_to_nothing_is_not_passed_over(self, home: DoctoredHome):
        home.config.unlink()
        home.config.symlink_to(home.path / "dotfiles.toml")
        lost = Planted("settings-file", "broken", "dotfiles.toml, which is not there", "Correct it there")
        assert missed([lost], await home.examine()) == []

    async def test_a_database_that_is_gone_from_a_home_that_was_used(self, home: DoctoredHome):
        home.database.unlink()
        gone = Planted("store", "advice", "everloop.db is not there, but vault.key", "Put it back, or a backup")
        assert missed([gone], await home.examine()) == []

    async def test_a_database_that_is_a_folder(self, home: DoctoredHome):
        home.database.unlink()
        home.database.mkdir()
        odd = Planted("store", "broken", "everloop.db is a folder, where the database should be", "backup restore FILE")
        assert missed([odd], await home.examine()) == []

    @pytest.mark.parametrize("name", ["everloop.db", "config.toml"])
    async def test_a_pipe_in_a_files_place_is_waited_for_by_nobody(self, home: DoctoredHome, name: str):
        (home.path / name).unlink()
        os.mkfifo(home.path / name)
        check = "store" if name == "everloop.db" else "settings-file"
        assert missed([Planted(check, "broken", f"{name} is no file", "")], await home.examine()) == []

    async def test_a_settings_file_that_was_emptied(self, home: DoctoredHome):
        home.config.write_text("")
        emptied = Planted("settings-file", "advice", "config.toml is empty", "Put back what was in it")
        assert missed([emptied], await home.examine()) == []

    async def test_the_database_of_another_program(self, home: DoctoredHome):
        home.database.unlink()
        home.sql("CREATE TABLE mine(x)")
        found = await home.examine()
        other = Planted("store", "broken", "is the database of another program", "everloop backup restore FILE")
        assert missed([other], found) == []
        assert {each.check for each in grave(found)} - {"file-modes"} == {"store"}
        with pytest.raises(StoreError, match="of another program"):
            await home.do(fill)

    @pytest.mark.parametrize("gone", ["table entries", "index inbox_open"])
    async def test_a_store_from_which_something_was_taken(self, home: DoctoredHome, gone: str):
        home.sql(f"DROP {gone}")
        taken = Planted("schema", "broken", f"taken something out of {home.database}: {gone}", "Restore a backup")
        assert missed([taken], await home.examine()) == []

    async def test_a_copy_whose_log_waits_for_the_next_start_is_not_called_broken(self, home: DoctoredHome):
        async with process_with(home.path):
            home.sql("CREATE TABLE mine(x)")
            copy = home.copy(home.path.with_name("copy"))
        (copy.path / "everloop.db-shm").unlink()
        found = await copy.examine()
        assert missed([Planted("store-wal", "advice", "was left over without its index", "Start it once")], found) == []
        assert [each.verdict for each in found if each.check == "store"] == ["skipped"]

    async def test_a_clock_that_has_gone_back_is_known_by_the_log(self, home: DoctoredHome):
        book = LogFile(home.path / "logs" / "everloop.log")
        book.emit(logging.makeLogRecord({"name": "everloop.x", "msg": "later", "created": time.time() + YEAR}))
        book.close()
        behind = Planted("clock", "broken", "behind that of everloop.log", "timedatectl set-ntp true")
        assert missed([behind], await home.examine()) == []

    async def test_a_log_that_something_else_fills(self, home: DoctoredHome):
        (home.path / "logs").mkdir()
        with (home.path / "logs" / "everloop.log").open("wb") as file:
            file.truncate(3_000_000_000)
        large = Planted("log", "advice", "everloop.log takes 3,000 MB", "rm ")
        found = await home.examine()
        assert missed([large], found) == []
        assert [each for each in found if "has not ended" in each.what] == []  # nor has anybody read it

    @pytest.mark.parametrize(
        ("setting", "fault"),
        [
            ('host = "0.0.0.0"', Planted("gateway-listens", "broken", "without encryption", "does not start before")),
            ('tls_cert = "c.pem"', Planted("gateway-listens", "broken", "belong together", "does not start before")),
            (TLS, Planted("gateway-listens", "broken", "cannot be used", "does not start before")),
            (
                'host = "192.0.2.77"\nbehind_proxy = true',
                Planted("gateway-listens", "broken", "cannot listen at 192.0.2.77", "an address of this machine"),
            ),
        ],
    )
    async def test_a_place_where_the_gateway_would_not_start_is_found(
        self, home: DoctoredHome, setting: str, fault: Planted
    ):
        home.write_config(setting)
        assert missed([fault], await home.examine()) == []

    @pytest.mark.parametrize(("days", "verdict", "what"), [(-1, "broken", "expired on"), (5, "advice", "expires on")])
    async def test_a_certificate_that_is_too_old_is_found(self, home: DoctoredHome, days: int, verdict: str, what: str):
        write_certificate(home.path, days)
        home.write_config(TLS)
        aged = Planted("gateway-listens", verdict, what, "Get another certificate")
        assert missed([aged], await home.examine()) == []

    async def test_a_key_that_waits_for_a_passphrase_is_told_and_nobody_is_asked_for_it(self, home: DoctoredHome):
        write_certificate(home.path, 99, BestAvailableEncryption(b"secret"))
        home.write_config(TLS)
        locked = Planted("gateway-listens", "broken", "k.pem is locked with a passphrase", "does not start before")
        assert missed([locked], await home.examine()) == []

    async def test_a_database_that_was_emptied_is_told_once(self, home: DoctoredHome):
        home.database.write_bytes(b"")
        found = await home.examine()
        assert missed([Planted("store", "broken", "is empty", "Put a backup in its place")], found) == []
        assert {each.check for each in grave(found)} == {"store"}

    async def test_a_damaged_page_is_found(self, home: DoctoredHome):
        rows = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 200)"
        home.sql(f"INSERT INTO said(thread, seq, owner, who) {rows} SELECT 't' || n, n, 'owner', 'x' FROM n")
        size = home.database.stat().st_size
        with home.database.open("r+b") as file:
            file.seek(size // 4096 // 2 * 4096)
            file.write(os.urandom(4096 * 3))
        damaged = Planted("store-pages", "broken", "is damaged", "Restore a backup")
        assert missed([damaged], await home.examine()) == []

    async def test_what_is_no_database_is_found(self, home: DoctoredHome):
        home.database.write_bytes(b"not a database at all" * 500)
        found = await home.examine()
        assert missed([Planted("store", "broken", "is damaged or not a database", "Restore a backup")], found) == []
        assert next(each for each in found if each.check == "jobs").verdict == "skipped"

    @pytest.mark.parametrize(
        "version, fault",
        [
            (999, Planted("schema", "broken", "written by a newer everloop", "Upgrade everloop")),
            (len(schema.MIGRATIONS) - 1, Planted("schema", "advice", "brings it to", "a copy is kept")),
        ],
    )
    async def test_a_store_of_another_version_is_found_and_not_changed(
        self, home: DoctoredHome, version: int, fault: Planted
    ):
        home.sql(f"PRAGMA user_version = {version}")
        before = home.listing()
        assert missed([fault], await home.examine()) == []
        assert home.listing() == before

    async def test_who_holds_the_write_lock_is_named(self, home: DoctoredHome):
        async with process_with(home.path, "lock") as process:
            freeze(process)
            found = await home.examine()
        locked = Planted("store-lock", "broken", f"process {process.pid} (", f"kill -CONT {process.pid}")
        assert missed([locked], found) == []

    async def test_a_vault_with_another_key_is_found(self, home: DoctoredHome):
        (home.path / "vault.key").write_bytes(os.urandom(32))
        locked = Planted("vault", "broken", "locked with another key", "Nothing that needs it works")
        assert missed([locked], await home.examine()) == []

    async def test_a_server_that_is_not_there_is_found(self, home: DoctoredHome):
        home.write_config(f"[store]\nurl = 'postgresql://x:canary@127.0.0.1:{free_port()}/x'\n")
        found = await home.examine()
        away = "does not answer"
        planted = [
            Planted("store", "broken", away, "See that the server runs"),
            Planted("postgres", "broken", away, "docs/postgres.md"),
        ]
        assert missed(planted, found) == []
        assert "canary" not in str(found)

    async def test_a_host_that_is_not_there_a_model_that_it_has_not_and_what_nobody_knows_of_it(
        self, home: DoctoredHome, host: tuple[ModelHost, str]
    ):
        home.write_config("", little="litle", context_window="max_tokens")
        named = [
            Planted("model-names", "advice", "does not list the default model 'litle'", "custom/little"),
            Planted("model-facts", "advice", "nobody knows how much", "agents.defaults.context_window"),
        ]
        assert missed(named, await home.examine()) == []
        home.base = f"http://127.0.0.1:{free_port()}/v1"
        home.write_config()
        away = [
            Planted("hosts", "broken", "custom: not reachable", "providers.custom.api_base"),
            Planted("egress", "broken", "cannot be reached", "no firewall is between"),
        ]
        assert missed(away, await home.examine()) == []

    async def test_a_login_that_has_run_out_is_not_spent_by_looking(
        self, home: DoctoredHome, alone: pytest.MonkeyPatch
    ):
        tokens = '{"access": "sk-canary-a", "expires": 1, "refresh": "sk-canary-r", "account": "x"}'
        await home.do(lambda store: EncryptedVault(store, key_of(home.path, {})).set("login:openai-codex", tokens))
        home.write_config("", **{"custom/little": "openai-codex/gpt-5"})
        asked: list[bytes] = []

        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.readline())
            writer.close()

        async with await asyncio.start_server(refuse, "127.0.0.1", 0) as proxy:
            alone.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
            found = {each.check: each for each in await home.examine(live=True)}
        assert [line for line in asked if b"auth.openai.com" in line] == []
        assert (found["hosts"].verdict, "has run out, and is renewed" in found["hosts"].what) == ("ok", True)
        assert found["model-answers"].verdict == "skipped"

    async def test_with_live_the_model_and_the_platforms_are_asked(
        self, home: DoctoredHome, host: tuple[ModelHost, str], alone: pytest.MonkeyPatch
    ):
        host[0].status = 401
        home.write_config('[channels.telegram]\ntoken = "123456:canary-of-a-bot"\n')
        alone.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
        mute = Planted("model-answers", "broken", "custom/little failed at the answer", "everloop models test")
        away = Planted("channel-tokens", "broken", "telegram does not let us in", "everloop channels add telegram")
        found = await home.examine(live=True)
        assert missed([mute, away], found) == []
        assert "canary" not in str(found)

    async def test_a_price_that_nobody_knows(self, home: DoctoredHome):
        home.write_config("", **{'prices."little"': 'prices."another"'})
        unpriced = Planted("model-facts", "advice", "nobody knows what custom/little costs", '[prices."little"]')
        assert missed([unpriced], await home.examine()) == []

    async def test_a_missing_workspace_and_the_wrong_home(self, home: DoctoredHome, tmp_path: Path):
        home.workspace.rename(tmp_path / "moved")
        assert missed([Planted("workspace", "advice", "is missing", "mkdir")], await home.examine()) == []
        home.path.rename(tmp_path / ".everloop")
        other = DoctoredHome(tmp_path / "other", home.base)
        empty = Planted("homes", "advice", "is empty, and there is another", "EVERLOOP_HOME")
        assert missed([empty], await other.examine()) == []

    async def test_what_has_failed_in_the_gateway_that_looks_at_itself(self, home: DoctoredHome):
        tasks = [TaskState("channel x", "failed", 0.0, 3, "no such token"), TaskState("hub", "running", 0.0)]
        failed = Planted("tasks", "broken", "channel x has failed, 3 times so far: no", "Restart the gateway")
        assert missed([failed], await home.examine(tasks=lambda: tasks)) == []

    def test_a_package_that_is_missing_or_too_old(self):
        missing, old = _lacking("no-such-package-of-mine>=1"), _lacking("aiohttp>=99.1")
        assert missing is not None
        assert old is not None
        assert missing.what == "the package no-such-package-of-mine is not installed"
        assert old.todo == "pip install 'aiohttp>=99.1'"
        assert _lacking("aiohttp>=3.1") is None

    @pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
    async def test_files_of_another_user_are_found(self, home: DoctoredHome):
        os.chown(home.config, 12345, 12345)
        foreign = Planted("file-owners", "broken", "belongs to another user (uid 12345)", "sudo chown -R")
        assert missed([foreign], await home.examine()) == []
        wal = home.path / "everloop.db-wal"
        wal.touch()
        os.chown(wal, 12345, 12345)  # where root opens the store, SQLite gives it back by itself: it is looked at alone
        found = await look_at_wal(Patient(home=home.path, environ={}, http=lambda: TrustedHttp()))
        assert [(each.verdict, "(uid 12345)" in each.what, "sudo chown" in each.todo) for each in found] == [
            ("broken", True, True),
            ("advice", False, False),
        ]


class Leaky:
    """A sandbox that says that it is one."""

    name = "leaky"
    order = Unconfined.order


class TestTheSandbox:
    async def test_one_that_does_not_confine_is_found_out(self, home: DoctoredHome):
        async def leaky() -> Confinement:
            return Leaky()

        leak = Planted("sandbox-holds", "broken", "was read and written", "install another bubblewrap")
        assert missed([leak], await home.examine(confine=leaky)) == []

    async def test_none_at_all_is_told(self, home: DoctoredHome):
        async def none() -> Confinement:
            return Unconfined()

        bare = Planted("sandbox", "broken", "without any wall", "Install bubblewrap")
        assert missed([bare], await home.examine(confine=none)) == []
