"""Schedules through the API of an open gateway: made, changed, run and removed; nobody's but one's own."""

import asyncio
import time
from pathlib import Path
from typing import Any

from everloop.app.schedule_hooks import path_of, secret_for
from everloop.app.schedules import open_schedules
from everloop.channels.webhook.codec import secret_of, signed_headers
from everloop.testing import Say, ScriptedModel
from tests.gateway.api.test_setup import opened

WATER = {"when": "every 2h", "text": "drink water", "does": "message", "session": "page:one", "zone": "UTC"}


async def test_a_schedule_is_made_changed_run_stopped_and_removed(tmp_path: Path):
    model = ScriptedModel([Say("hello")])
    async with opened(tmp_path, provider=model) as door:
        status, made = await door.send("POST", "/api/schedules", {**WATER, "key": "k"})
        again = await door.send("POST", "/api/schedules", {**WATER, "key": "k"})
        schedule = made["schedule"]
        path = f"/api/schedules/{schedule['id']}"
        listed = await door.get("/api/schedules")
        changed = await door.send("PATCH", path, {"text": "drink tea", "name": "tea"})
        ran = await door.send("POST", f"{path}/run")
        runs = await door.get(f"{path}/runs")
        stopped = await door.send("PATCH", path, {"enabled": False})
        on = await door.send("PATCH", path, {"enabled": True})
        turn = await door.send("POST", "/api/schedules", {**WATER, "does": "turn"})
        removed = await door.send("DELETE", path)
        left = await door.get("/api/schedules")
    assert (status, again) == (201, (201, made))
    assert {name: schedule[name] for name in (*WATER, "misfire", "overlap", "runs", "over", "enabled", "owner")} == {
        **WATER,
        "misfire": "late",
        "overlap": "skip",
        "runs": 0,
        "over": "",
        "enabled": True,
        "owner": "owner",
    }
    assert [later - earlier for earlier, later in zip(schedule["next"], schedule["next"][1:], strict=False)] == [
        7200
    ] * 2
    assert listed == {"schedules": [schedule]}
    assert (changed[1]["schedule"]["text"], changed[1]["schedule"]["next"]) == ("drink tea", schedule["next"])
    assert ran == (200, {"told": "tea: done"})
    assert [run["state"] for run in runs["runs"]] == ["done"]
    assert (stopped[1]["schedule"]["enabled"], stopped[1]["schedule"]["next"]) == (False, [])
    assert len(on[1]["schedule"]["next"]) == 3
    assert turn[1]["cost"].startswith("What it costs is not known")
    assert removed == (200, {"told": "tea is removed."})
    assert [each["does"] for each in left["schedules"]] == ["turn"]
    assert model.prompts == []


async def test_a_program_that_knows_its_secret_has_a_schedule_run_once_and_nobody_else_does(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel([])) as door:
        _, made = await door.send("POST", "/api/schedules", {**WATER, "when": "hook"})
        _, clocked = await door.send("POST", "/api/schedules", WATER)
        id, other = made["schedule"]["id"], clocked["schedule"]["id"]
        async with open_schedules(tmp_path) as schedules:
            secrets = {each: await secret_for(schedules.links, each) for each in (id, other)}

        async def call(target: str, secret: str, event: str) -> tuple[int, Any]:
            headers = signed_headers(secret_of(secret), event, time.time(), b"{}")
            async with door.client.post(path_of(target), data=b"{}", headers=headers) as answer:
                return answer.status, await answer.json()

        wrong = [
            await call(id, secrets[other], "a"),
            await call(other, secrets[other], "a"),  # it runs by the clock alone
            await call("nothing", secrets[id], "a"),
            await call("", secrets[id], "a"),
        ]
        told = [await call(id, secrets[id], event) for event in ("a", "a", "b")]
        runs = await door.get(f"/api/schedules/{id}/runs")
        await door.send("PATCH", f"/api/schedules/{id}", {"enabled": False})
        stopped = await call(id, secrets[id], "c")
    assert [status for status, _ in wrong] == [401] * 4
    assert told == [
        (202, {"state": "done", "result": ""}),
        (200, {"state": "known"}),
        (409, {"state": "skipped", "result": "it ran less than 60 s ago"}),
    ]
    assert [run["state"] for run in runs["runs"]] == ["done"]
    assert stopped == (409, {"state": "skipped", "result": "it is stopped"})
    assert made["schedule"]["next"] == []


async def test_what_is_wrong_is_told_in_a_sentence_and_what_is_not_there_is_not_found(tmp_path: Path):
    others: tuple[tuple[str, str, Any], ...] = (
        ("PATCH", "", {}),
        ("DELETE", "", None),
        ("POST", "/run", None),
        ("GET", "/runs", None),
    )
    async with opened(tmp_path, provider=ScriptedModel([])) as door:
        wrong: list[tuple[int, Any]] = [
            await door.send("POST", "/api/schedules", {**WATER, **other})
            for other in ({"when": "whenever"}, {"does": "dance"}, {"when": "every 1s"}, {"fly": 1})
        ]
        missing = [await door.send(method, "/api/schedules/nothing" + more, body) for method, more, body in others]
    assert [status for status, _ in wrong] == [409, 400, 409, 400]
    assert wrong[0][1]["error"]["message"].startswith("'whenever' is no time; say when as `at 08:00`")
    assert {(status, told["error"]["message"]) for status, told in missing} == {
        (404, "There is no schedule 'nothing' of yours.")
    }


async def test_a_token_that_may_not_approve_makes_no_command_that_would_be_asked_about(tmp_path: Path):
    settings = {"tools": {"policy": [{"tool": "exec", "stance": "ask"}]}}
    async with opened(tmp_path, settings, ("read", "chat"), provider=ScriptedModel([])) as door:
        _, made = await door.send("POST", "/api/schedules", {**WATER, "does": "command", "text": "echo hi"})
        path = f"/api/schedules/{made['schedule']['id']}"
        await door.send("POST", f"{path}/run")
        while (runs := (await door.get(f"{path}/runs"))["runs"])[0]["state"] == "running":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert (runs[0]["state"], runs[0]["result"][:40]) == ("failed", "the settings would have a person asked, ")
