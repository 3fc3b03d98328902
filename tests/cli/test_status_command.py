"""`everloop status` and GET /api/status: how the whole house stands, with and without a gateway."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from tests.channels.parrot import PLUGGED
from tests.cli.person import Person
from tests.cli.test_gateway_command import start
from tests.cli.test_models_command import nowhere
from tests.gateway.api.test_setup import opened

from everloop import __version__
from everloop.ports.house_status import HouseStatus
from everloop.testing import Say, ScriptedModel
from everloop.testing.model_server import ModelServer

__all__ = ["nowhere"]


async def status_of(person: Person) -> tuple[int, HouseStatus]:
    ran = await person.run("status", "--json")
    return ran.status, msgspec.json.decode(ran.out, type=HouseStatus)


async def test_in_a_new_home_nothing_runs_and_nothing_is_broken(person: Person, model: ModelServer):
    code, told = await status_of(person)
    assert (code, told.problems, told.errors, told.channels, told.gateway.running) == (0, [], [], [], False)
    assert (told.version, told.home, told.model.name, told.model.state) == (
        __version__,
        str(person.home),
        "custom/scripted",
        "reachable",
    )
    assert model.calls == 0  # nothing was paid
    assert not (person.home / "workspace").exists()
    shown = await person.run("status")
    assert [line.split("  ")[0] for line in shown.out.splitlines()] == [
        *("everloop", "store", "model", "gateway", "channels", "schedules", "tasks", "MCP servers", "memory"),
        *("this month", "disk", "errors"),
    ]


async def test_a_gateway_is_seen_while_it_runs_and_not_after_a_kill(person: Person):
    gateway = await start(person, 0)
    _, told = await status_of(person)
    assert (told.gateway.running, told.gateway.address, told.gateway.pid) == (True, gateway.url, gateway.process.pid)
    await gateway.kill()
    assert (await status_of(person))[1].gateway.running is False
    (person.home / "run" / ".gateway").write_bytes(b"\xff\xfe")  # as a disk leaves it
    assert (await status_of(person))[1].gateway.running is False
    gateway = await start(person, 0)
    await gateway.stop()
    assert (await status_of(person))[1].gateway.running is False
    os.mkfifo(person.home / "run" / ".gateway")  # nobody will ever write into it
    assert (await status_of(person))[1].gateway.running is False


async def test_what_is_to_come_and_what_was_spent_is_told(person: Person, model: ModelServer):
    model.play([Say("Done.")])
    assert (await person.run("-m", "hi")).status == 0
    added = await person.run("cron", "add", "in 20m", "water the plants", "--name", "plants")
    assert added.status == 0, added.err
    _, told = await status_of(person)
    assert (told.month.calls, told.month.tokens > 0, told.schedules_to_come) == (1, True, 1)
    assert [(each.name, each.owner) for each in told.schedules] == [("plants", "owner")]
    assert told.disk.home > 0


async def test_what_is_broken_is_named_and_ends_with_1(person: Person, nowhere: str):
    person.environment["EVERLOOP_PROVIDERS__CUSTOM__API_BASE"] = nowhere
    person.environment["PYTHONPATH"] = str(PLUGGED)
    (person.home / "logs").mkdir(parents=True)
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = {"time": now, "level": "error", "logger": "everloop.x", "message": "it broke", "error": "9c41d2-7"}
    old = {**line, "time": "2020-01-01T00:00:00.000Z", "message": "long ago"}
    fine = {**line, "level": "info", "message": "all is well"}
    lines = [json.dumps(each) for each in (old, line, fine)]
    (person.home / "logs" / "everloop.log").write_text("\n".join(["not json", *lines, '{"half']))
    (person.home / "config.toml").write_text("[channels.telegram]\nnothing = 1\n")
    code, told = await status_of(person)
    assert code == 1
    assert [(each.message, each.error) for each in told.errors] == [("it broke", "9c41d2-7")]
    assert [(each.name, each.state) for each in told.channels] == [("telegram", "wrong")]
    assert told.problems[0].startswith("custom/scripted cannot be asked (")
    assert told.problems[1].startswith("channel telegram: ")
    shown = await person.run("status")
    assert (shown.status, shown.err.count("Broken: ")) == (1, 2)


async def test_settings_that_cannot_be_read_are_one_sentence(person: Person):
    person.home.mkdir(exist_ok=True)
    (person.home / "config.toml").write_text("[gateway\n")
    ran = await person.run("status")
    assert (ran.status, ran.out, ran.err.count("\n"), "line 1" in ran.err) == (1, "", 1, True)


async def test_the_api_tells_the_owner_the_same(tmp_path: Path):
    async with opened(tmp_path / "a", {}, provider=ScriptedModel([Say("x")])) as door:
        told = msgspec.convert(await door.get("/api/status"), HouseStatus)
    async with opened(tmp_path / "b", {}, ("read", "chat"), provider=ScriptedModel([Say("x")])) as door:
        refused = await door.send("GET", "/api/status")
    assert (told.version, told.model.state, told.problems) == (__version__, "was handed over by the program", [])
    assert refused[0] == 403
