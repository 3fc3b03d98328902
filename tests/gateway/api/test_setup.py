"""Settings, keys and models, set up through the API of an open gateway: the next turn knows."""

import asyncio
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from everloop.app import serve
from everloop.app.access import new_token, token_scopes
from everloop.app.records import open_records
from everloop.core.tool import Effect
from everloop.testing import Call, Say, ScriptedModel, Shown
from everloop.testing.model_server import ModelServer
from everloop.tools.decorator import tool

NOBODY = "http://127.0.0.1:9/v1"  # where nobody listens: no server of this machine is found
LOCAL = {name: {"api_base": NOBODY} for name in ("ollama", "lmstudio", "llamacpp", "vllm")}


class Door:
    """A gateway, and its owner at it."""

    def __init__(self, home: Path, client: aiohttp.ClientSession) -> None:
        self.home = home
        self.client = client

    async def get(self, path: str) -> Any:
        async with self.client.get(path) as answer:
            return await answer.json()

    async def send(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        async with self.client.request(method, path, json=body, headers=headers) as answer:
            return answer.status, await answer.json()

    async def change(self, **asked: Any) -> tuple[int, Any]:
        return await self.send("PATCH", "/api/settings", {key.replace("__", "."): each for key, each in asked.items()})

    async def ask(self, text: str, session: str = "one") -> str:
        body = {"model": "everloop", "messages": [{"role": "user", "content": text}]}
        headers = {"X-Everloop-Session": f"test:{session}"}
        status, told = await self.send("POST", "/v1/chat/completions", body, **headers)
        return str(told["choices"][0]["message"]["content"] if status == 200 else told["error"]["message"])

    @property
    def file(self) -> str:
        path = self.home / "config.toml"
        return path.read_text() if path.exists() else ""


@asynccontextmanager
async def opened(
    home: Path, settings: dict[str, Any] | None = None, scopes: tuple[str, ...] = token_scopes(), **given: Any
) -> AsyncIterator[Door]:
    async with serve(home, {"gateway": {"port": 0}, **(settings or {})}, **given) as gateway:
        async with open_records(home) as records:
            token = await new_token(
                records.store, "owner", "test", scopes, platforms=["discord", "slack"] if "chat" in scopes else []
            )
        headers = {"Authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession(gateway.url, headers=headers) as client:
            yield Door(home, client)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine has: no key of a host, and no model in the process."""
    from everloop.providers.catalog import HOSTS

    for host in HOSTS.values():
        for variable in host.key_variables:
            monkeypatch.delenv(variable, raising=False)


def echo(shown: Shown) -> Say:
    return Say(f"you said: {shown.asked}")


async def test_a_setting_is_changed_in_the_file_and_shown_with_its_origin(tmp_path: Path):
    (tmp_path / "config.toml").write_text("# mine\n[agents.defaults]\nmax_tokens = 5 # short\n")
    async with opened(tmp_path, provider=ScriptedModel(echo)) as door:
        before = await door.get("/api/settings")
        status, told = await door.change(agents__defaults__max_tokens=9)
        after = await door.get("/api/settings")
    (row,) = [row for row in told["rows"] if row["key"] == "agents.defaults.max_tokens"]
    assert (status, door.file) == (200, "# mine\n[agents.defaults]\nmax_tokens = 9 # short\n")
    assert row == {
        "key": "agents.defaults.max_tokens", "kind": "whole", "about": "Tokens that an answer may have", "value": 9,
        "default": 8192, "is_set": True, "source": "file", "place": "config.toml, line 3", "secret": False,
        "by_hand": False, "optional": False, "options": [], "least": 1.0, "most": None,
    }  # fmt: skip
    assert (told, told["restart_needed"], told["file"]) == (after, [], "config.toml")
    assert before["version"] != after["version"]
    assert after["settings"]["agents"]["defaults"]["max_tokens"] == 9


@pytest.mark.parametrize(
    "asked, sentence",
    [
        ({"agents.defaults.max_tokens": "many"}, "agents.defaults.max_tokens must be a whole number of at least 1."),
        ({"tools": {"disabled": ["nothing"]}},
         "tools.disabled: there is no tool 'nothing'; see docs/tools.md for their names."),
        ({"gateway.port": 1}, "gateway.port was given when the program was started; start it without that first."),
        ({"gateway.host": "0.0.0.0"}, None),
        ({"gateway": {"host": "no such host", "behind_proxy": True}}, None),
        ({"gateway": {"tls_cert": "nothing.pem", "tls_key": "nothing.pem"}}, None),
        ({"gateway": {"tls_cert": "a\0b", "tls_key": "a\0b"}}, None),
        ({"telemetry.otlp_endpoint": "localhost:4318"}, None),
        ({"tools.exec.network": ["::::"]}, None),
        ({"workspace": "/dev/null"}, None),
        ({"workspace": "a\0b"}, None),
        ({"nothing": 1}, None),
    ],
)  # fmt: skip
async def test_a_wrong_value_is_refused_by_its_key_and_nothing_changes(tmp_path: Path, asked: Any, sentence: str):
    async with opened(tmp_path, provider=ScriptedModel(echo)) as door:
        status, told = await door.send("PATCH", "/api/settings", asked)
        shown = await door.get("/api/settings")
    assert (status, told["error"]["code"], door.file) == (409, "setting_refused", "")
    assert sentence is None or told["error"]["message"] == sentence
    assert all(row["source"] != "file" for row in shown["rows"])


async def test_what_the_environment_says_is_shown_and_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EVERLOOP_AGENTS__DEFAULTS__TOP_P", "0.5")
    async with opened(tmp_path, provider=ScriptedModel(echo)) as door:
        status, told = await door.change(agents__defaults__top_p=0.1)
        rows = {row["key"]: row for row in (await door.get("/api/settings"))["rows"]}
    row = rows["agents.defaults.top_p"]
    assert (row["value"], row["source"], row["place"]) == (0.5, "environment", "EVERLOOP_AGENTS__DEFAULTS__TOP_P")
    assert (status, door.file) == (409, "")
    assert "EVERLOOP_AGENTS__DEFAULTS__TOP_P; change it there" in told["error"]["message"]


async def test_of_two_writers_the_second_is_told(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel(echo)) as door:
        seen = (await door.get("/api/settings"))["version"]
        first = await door.send("PATCH", "/api/settings", {"store.lease_seconds": 10}, **{"If-Match": f'"{seen}"'})
        second = await door.send("PATCH", "/api/settings", {"store.lease_seconds": 20}, **{"If-Match": f'"{seen}"'})
        third = await door.send("PATCH", "/api/settings", {"store.lease_seconds": 30})
    assert [status for status, _ in (first, second, third)] == [200, 412, 200]
    assert second[1]["error"]["code"] == "settings_moved"
    assert tomllib.loads(door.file) == {"store": {"lease_seconds": 30}}


async def test_what_the_house_is_built_on_waits_for_the_next_start(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel(echo)) as door:
        _, told = await door.change(
            store__lease_seconds=60, agents__defaults__steering="queue", tools__approvals="deny"
        )
        _, back = await door.change(store__lease_seconds=None, agents__defaults__steering=None)
    assert told["restart_needed"] == ["agents.defaults.steering", "store.lease_seconds"]
    assert (told["settings"]["store"]["lease_seconds"], told["settings"]["tools"]["approvals"]) == (30.0, "deny")
    assert back["restart_needed"] == []


async def test_the_next_turn_has_other_tools_rules_and_words(tmp_path: Path):
    ran: list[str] = []

    @tool(Effect.UNSAFE, guarded=True)
    async def send(to: str) -> str:
        """Send something."""
        ran.append(to)
        return "sent"

    def line(shown: Shown) -> Any:
        if "send" in shown.asked and shown.step == 0:
            return Call("send", {"to": shown.asked})
        return Say(f"{'exec' in shown.tools} {'pirate' in shown.system}")

    async with opened(tmp_path, provider=ScriptedModel(line), tools=[send]) as door:
        before = await door.ask("hello")
        await door.change(
            tools__disabled=["exec*"], tools__approvals="allow", agents__defaults__system_prompt="You are a pirate."
        )
        after = await door.ask("send one", "two")
        await door.change(tools__approvals="deny")
        await door.ask("send another", "three")
    assert (before, after, ran) == ("True False", "False True", ["send one"])


async def test_without_a_model_it_opens_and_says_what_to_do_and_then_works_without_a_restart(tmp_path: Path):
    async with ModelServer([Say("here I am")] * 2) as server:
        settings = {"providers": LOCAL, "agents": {"shutdown_seconds": 1}}
        (tmp_path / "config.toml").write_text('[agents.defaults]\nmodel = "mine/good"\n')
        async with opened(tmp_path, settings) as door:
            models, told = await door.get("/api/models"), await door.ask("hello")
            status, changed = await door.send("PATCH", "/api/settings", {"providers.mine.api_base": server.url})
            after, answer = await door.get("/api/models"), await door.ask("hello again")
    assert models["missing"].startswith("Nobody can answer yet: ")
    assert told.startswith(models["missing"])
    assert models["missing"].endswith("You can choose a model and keep a key in the page, under Manage.")
    assert (status, changed["restart_needed"], after["missing"], after["default"]) == (200, [], "", "mine/good")
    assert answer == "here I am"


async def test_what_was_missing_and_has_come_meanwhile_is_found_by_the_next_message(tmp_path: Path):
    async with ModelServer([Say("here I am")]) as server:
        settings = {"providers": {**LOCAL, "openai": {"api_base": server.url, "api_key_file": "key.txt"}}}
        (tmp_path / "config.toml").write_text('[agents.defaults]\nmodel = "openai/gpt-5"\n')
        async with opened(tmp_path, settings) as door:
            before, told = (await door.get("/api/models"))["missing"], await door.ask("hello")
            (tmp_path / "key.txt").write_text("a-key-of-mine")
            answer = await door.ask("hello again")
            after = (await door.get("/api/models"))["missing"]
    assert told.startswith(before)
    assert (before.split(":")[0], answer, after) == ("Nobody can answer yet", "here I am", "")


async def test_another_model_answers_the_next_turn_and_a_running_one_ends_with_its_own(tmp_path: Path):
    async with ModelServer([Say("one"), Say("two")]) as server:
        settings = {"providers": {**LOCAL, "mine": {"api_base": server.url}}}
        (tmp_path / "config.toml").write_text('[agents.defaults]\nmodel = "mine/first"\n')
        async with opened(tmp_path, settings) as door:
            await door.ask("hello")
            await door.change(agents__defaults__model="quick", models={"quick": {"model": "mine/second"}})
            await door.ask("hello again")
            models = await door.get("/api/models")
            asked = [each["body"]["model"] for each in (await _calls(server))["requests"]]
    assert asked == ["first", "second"]
    assert [(each["name"], each["model"], each["default"]) for each in models["choices"]] == [
        ("quick", "mine/second", True)
    ]


async def _calls(server: ModelServer) -> Any:
    async with aiohttp.ClientSession() as client, client.get(server.url.replace("/v1", "/_calls")) as answer:
        return await answer.json()


async def test_a_key_goes_to_the_vault_is_used_at_once_and_never_told(tmp_path: Path):
    key = "sk-canary-0123456789"
    async with ModelServer([Say("thank you")]) as server:
        settings = {"providers": {**LOCAL, "openai": {"api_base": server.url}}}
        (tmp_path / "config.toml").write_text('[agents.defaults]\nmodel = "openai/gpt-5"\n')
        async with opened(tmp_path, settings) as door:
            kept = await door.send("PUT", "/api/keys/openai", {"key": key})
            rows = {row["name"]: row for row in (await door.get("/api/keys"))["keys"]}
            answer = await door.ask("hello")
            shown = str([await door.get(path) for path in ("/api/keys", "/api/settings", "/api/models")])
            sent = (await _calls(server))["requests"][0]["headers"]
            gone = [await door.send("DELETE", "/api/keys/openai") for _ in range(2)]
    assert kept == (200, {"name": "openai", "notes": []})
    assert rows["openai"] == {
        "name": "openai", "where": "vault", "variable": "OPENAI_API_KEY", "login": False, "in_vault": True,
        "problem": "", "needs_key": True,
    }  # fmt: skip
    assert (answer, sent["Authorization"], [status for status, _ in gone]) == (
        *("thank you", f"Bearer {key}"),
        [200, 404],
    )
    assert key not in shown
    assert key not in door.file


@pytest.mark.parametrize(
    "name, key, status",
    [("openai", "two words", 409), ("nobody", "sk-1", 404), ("openai-codex", "sk-1", 409), ("a b", "sk-1", 404)],
)
async def test_what_is_no_key_is_not_kept(tmp_path: Path, name: str, key: str, status: int):
    async with opened(tmp_path, {"providers": LOCAL}) as door:
        found, told = await door.send("PUT", f"/api/keys/{name}", {"key": key})
        kept = [row["name"] for row in (await door.get("/api/keys"))["keys"] if row["in_vault"]]
    assert (found, kept) == (status, [])
    assert key not in told["error"]["message"]


async def test_a_model_is_tried_with_timings(tmp_path: Path):
    lines = [Say("ready"), Call("add", {"a": 17, "b": 25})]
    async with ModelServer(lines) as server:
        settings = {"providers": {**LOCAL, "mine": {"api_base": server.url, "model": "good"}}}
        async with opened(tmp_path, settings) as door:
            status, told = await door.send("POST", "/api/models/test", {"name": "mine/good"})
            missing = await door.send("POST", "/api/models/test", {"name": "nobody/knows"})
    checks = [(each["name"], each["ok"], each["why"], each["total"] > 0) for each in told["checks"]]
    assert (status, told["model"], told["ok"]) == (200, "mine/good", True)
    assert checks == [("answer", True, "", True), ("tool call", True, "", True)]
    assert (missing[0], missing[1]["error"]["code"]) == (409, "model_missing")


async def test_changes_at_the_same_time_are_all_kept(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel(echo)) as door:
        names = [f"preset{n}" for n in range(8)]
        told = await asyncio.gather(*(door.change(models={name: {"model": "openai/x"}}) for name in names))
    assert [status for status, _ in told] == [200] * 8
    assert sorted(tomllib.loads(door.file)["models"]) == names
