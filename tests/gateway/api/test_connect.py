"""Connecting a model through the API: look, choose, and all of it is kept in one go; a key goes nowhere else."""

import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import pytest
from aiohttp import web

from everloop.testing import Say, ScriptedModel
from everloop.testing.model_server import ModelServer

from .test_settings_guarded import KEY
from .test_setup import LOCAL, NOBODY, Door, no_keys, opened  # noqa: F401  # a fixture

SETTINGS = {"providers": LOCAL}


async def look(door: Door, provider: str, address: str = "", key: str = "") -> tuple[int, Any]:
    return await door.send("POST", "/api/models/look", {"provider": provider, "address": address, "key": key})


async def connect(door: Door, provider: str, model: str, address: str = "", key: str = "") -> tuple[int, Any]:
    body = {"provider": provider, "address": address, "key": key, "model": model}
    return await door.send("POST", "/api/models/connect", body)


class Listing:
    """A host that lists its models, and remembers what it was shown; with a status, one that refuses."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.shown: list[str] = []
        self.url = ""

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        self.shown.append(str(dict(request.headers)))
        rows = [{"id": "text-embedding-x"}, {"id": "good", "context_length": 9000}, {"id": "other"}]
        told = {"data": rows} if self.status == 200 else {"error": {"message": f"not with {self.shown[-1]}"}}
        return web.json_response(told, status=self.status if request.path == "/v1/models" else 404)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        runner = web.ServerRunner(web.Server(self))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        try:
            yield self
        finally:
            await runner.cleanup()


async def test_providers_come_in_an_order_that_one_can_use(tmp_path: Path):
    async with opened(tmp_path, {**SETTINGS, "providers": {**LOCAL, "mine": {"api_base": NOBODY}}}) as door:
        rows = (await door.get("/api/models/providers"))["providers"]
        keys = [row["name"] for row in (await door.get("/api/keys"))["keys"] if row["needs_key"]]
    names = [row["name"] for row in rows]
    assert names[:4] == ["openai", "anthropic", "gemini", "openrouter"]
    assert [row["name"] for row in rows if row["group"] == "local"] == ["ollama", "lmstudio", "llamacpp", "vllm"]
    assert [row["name"] for row in rows if row["group"] == "own"] == ["custom", "mine"] == names[-2:]
    assert rows[1] == {
        "name": "anthropic", "title": "Anthropic (Claude)", "group": "hosted", "address": "https://api.anthropic.com",
        "needs_key": True, "login": False, "ready": False,
    }  # fmt: skip
    assert keys[:3] == ["openai", "anthropic", "gemini"]
    assert not {"ollama", "vllm", "github-copilot"} & set(keys)


async def test_one_looks_chooses_and_is_answered_and_nothing_is_kept_before(tmp_path: Path):
    models = ("text-embedding-x", "good", "other")
    async with ModelServer([Say("here I am")], models=models) as server, opened(tmp_path, SETTINGS) as door:
        _, found = await look(door, "custom", server.url, KEY)
        before = door.file, [row["name"] for row in (await door.get("/api/keys"))["keys"] if row["in_vault"]]
        done = await connect(door, "custom", "good", server.url, KEY)
        answer = await door.ask("hello")
        kept = [row["name"] for row in (await door.get("/api/keys"))["keys"] if row["in_vault"]]
    assert found == {
        "address": server.url, "usual": "good",
        "models": [{"name": name, "window": 128_000, "input": None, "output": None} for name in ("good", "other")],
    }  # fmt: skip
    assert before == ("", [])
    assert (done, answer, kept) == ((200, {"model": "custom/good", "notes": []}), "here I am", ["custom"])
    assert tomllib.loads(door.file) == {
        "agents": {"defaults": {"model": "custom/good"}},
        "providers": {"custom": {"api_base": server.url}},
    }
    assert KEY not in door.file
    assert [each.headers["Authorization"] for each in server.requests] == [f"Bearer {KEY}"]


async def test_a_window_and_a_price_are_told_where_they_are_known(tmp_path: Path):
    async with Listing().open() as host, opened(tmp_path, SETTINGS) as door:
        _, found = await look(door, "custom", host.url)
    assert [(each["name"], each["window"]) for each in found["models"]] == [("good", 9000), ("other", None)]


async def test_an_address_without_its_path_is_found_all_the_same(tmp_path: Path):
    async with Listing().open() as host, opened(tmp_path, SETTINGS) as door:
        _, found = await look(door, "custom", host.url.removesuffix("/v1"))
    assert (found["address"], found["usual"]) == (host.url, "good")


async def test_a_second_address_of_ones_own_gets_a_name_of_its_own_and_never_the_first_ones_key(tmp_path: Path):
    async with Listing().open() as one, Listing().open() as two, opened(tmp_path, SETTINGS) as door:
        await connect(door, "custom", "good", one.url, KEY)
        await look(door, "custom", two.url)
        await look(door, "custom", one.url)
        _, first = await connect(door, "custom", "other", one.url)
        _, second = await connect(door, "custom", "good", two.url)
    host = two.url.removeprefix("http://").removesuffix("/v1").replace(".", "-").replace(":", "-")
    assert (first["model"], second["model"]) == ("custom/other", f"{host}/good")
    assert KEY not in str(two.shown)
    assert KEY in str(one.shown)  # the control: where it belongs it is sent


@pytest.mark.parametrize("where", ["vault", "settings", "environment", "headers", "custom"])
async def test_a_kept_secret_is_not_sent_to_an_address_that_somebody_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
):
    async with Listing().open() as own, Listing().open() as elsewhere:
        provider = "custom" if where in ("environment", "custom") else "mine"
        given: dict[str, Any] = {"settings": {"api_key": KEY}, "headers": {"headers": {"X-Secret": KEY}}}.get(where, {})
        if where == "environment":
            monkeypatch.setenv("CUSTOM_API_KEY", KEY)
        mine = {provider: {"api_base": own.url, "model": "m", **given}}
        async with opened(tmp_path, {"providers": {**LOCAL, **mine}}) as door:
            if where in ("vault", "custom"):
                await door.send("PUT", f"/api/keys/{provider}", {"key": KEY})
            port = elsewhere.url.removeprefix("http://127.0.0.1")
            addresses = [elsewhere.url, f"http://localhost{port}", f"{elsewhere.url}/", f"http://127.1{port}"]
            told = [(await look(door, provider, address))[0] for address in addresses]
            odd = [
                await look(door, provider, f"{own.url}@127.0.0.1{port}"),
                await look(door, provider, f"{own.url}\\@x"),
            ]
            await connect(door, provider, "m", elsewhere.url)
            await look(door, provider)
    assert (told, [status for status, _ in odd]) == ([200] * 4, [409, 409])
    assert KEY not in str(elsewhere.shown)
    assert KEY in str(own.shown)  # the control: its own host is given it


async def test_a_login_has_no_other_address(tmp_path: Path):
    async with Listing().open() as elsewhere, opened(tmp_path, SETTINGS) as door:
        status, told = await look(door, "github-copilot", elsewhere.url)
    assert (status, told["error"]["message"]) == (409, "github-copilot is logged in to, and has no other address.")
    assert elsewhere.shown == []


async def test_a_key_that_would_move_is_refused_and_nothing_changes(tmp_path: Path):
    async with Listing().open() as elsewhere, opened(tmp_path, SETTINGS) as door:
        await door.send("PUT", "/api/keys/openai", {"key": KEY})
        status, told = await connect(door, "openai", "gpt", elsewhere.url)
    assert (status, door.file, elsewhere.shown) == (409, "", [])
    assert "its key is in the vault, and would be sent to the new address" in told["error"]["message"]


@pytest.mark.parametrize("path", ["/api/models/look", "/api/models/connect"])
@pytest.mark.parametrize("lacking", ["read", "chat", "admin"])
async def test_to_aim_at_an_address_is_worth_what_setting_it_is(tmp_path: Path, path: str, lacking: str):
    held = tuple(scope for scope in ("admin", "read", "chat") if scope != lacking)
    body = {"provider": "custom", "key": "", **({"model": "m"} if path.endswith("connect") else {})}
    async with Listing().open() as server:
        async with opened(tmp_path, SETTINGS, scopes=held) as door:
            status, _ = await door.send("POST", path, {**body, "address": server.url})
        asked = len(server.shown)
        async with opened(tmp_path / "all", SETTINGS, scopes=("admin", "read", "chat")) as door:
            fine, _ = await door.send("POST", path, {**body, "address": server.url})
    assert (status, asked, fine) == (403, 0, 200)


@pytest.mark.parametrize(
    "status, key, code, ends",
    [
        (401, "sk-wrong", "key_refused", "Paste the key again, all of it, or make a new one there."),
        (401, "", "key_refused", "Paste your key."),
        (404, "", "no_list", "If the address is right, write the name of the model yourself."),
        (500, "", "no_list", "If the address is right, write the name of the model yourself."),
    ],
)
async def test_a_host_that_refuses_is_told_with_a_way_out_and_without_the_key(
    tmp_path: Path, status: int, key: str, code: str, ends: str
):
    async with Listing(status).open() as host, opened(tmp_path, SETTINGS) as door:
        _, told = await look(door, "custom", host.url, key)
    assert (told["error"]["code"], told["error"]["message"].endswith(ends)) == (code, True)
    assert not key or key not in str(told)


async def test_each_failure_is_a_sentence_with_a_way_out(tmp_path: Path):
    async with opened(tmp_path, SETTINGS) as door:
        told = {
            address: (await look(door, "custom", address))[1]["error"]
            for address in (NOBODY, "https://127.0.0.1:9/v1", "nonsense", "ftp://x", "http://a b", "http://x:99999")
        }
        nameless = (await look(door, "azure"))[1]["error"]["message"]
        nobody = await look(door, "nobody")
        bad_key = await look(door, "openai", "", "two words")
    assert told[NOBODY]["code"] == "unreachable"
    assert told[NOBODY]["message"].endswith("Is the server running, and the address right?")
    assert {each["code"] for address, each in told.items() if "127" not in address} == {"refused"}
    assert told["nonsense"]["message"] == "'nonsense' is no address: write one such as http://127.0.0.1:8080/v1."
    assert nameless == "azure has no address of its own: write that of your server."
    assert (nobody[0], nobody[1]["error"]["message"].partition(",")[0]) == (
        409,
        "there is no provider 'nobody'; there are openrouter",
    )
    assert bad_key[0] == 409


async def test_when_the_key_cannot_be_kept_the_settings_are_as_before(tmp_path: Path):
    async with ModelServer([]) as server, opened(tmp_path, SETTINGS) as door:
        await door.send("PUT", "/api/keys/openai", {"key": KEY})
        (tmp_path / "vault.key").unlink()
        status, told = await connect(door, "custom", "good", server.url, "sk-another")
        file = door.file
    assert status == 409
    assert "vault" in told["error"]["message"] or "key file" in told["error"]["message"]
    assert tomllib.loads(file) in (
        {},
        {"agents": {"defaults": {}}, "providers": {"custom": {}}},
        {"agents": {"defaults": {}}},
    )


async def test_where_one_model_was_handed_over_nothing_is_connected(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel([])) as door:
        told = [(await look(door, "openai"))[0], (await connect(door, "openai", "x"))[0]]
        embedded = await door.get("/api/models/embedded")
        fetched, _ = await door.send("POST", "/api/models/embedded/fetch", {})
    assert (told, embedded["state"], fetched) == ([409, 409], "none", 409)
