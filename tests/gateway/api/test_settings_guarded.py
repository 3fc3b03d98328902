"""Settings through the API: what nobody may set there, what needs more than `admin`, and what is not told."""

from pathlib import Path
from typing import Any

import aiohttp
import pytest

from everloop.settings import AccountSection, Settings
from everloop.settings.rows import leaves_of
from everloop.settings.scopes import NEEDS, scopes_for
from everloop.settings.shape import masked, notes_of
from everloop.testing import Say, ScriptedModel
from everloop.testing.model_server import ModelServer

from .test_setup import LOCAL, opened

ELSEWHERE = "http://127.0.0.1:9/v1"
BY_HAND = {
    "providers.x.api_key_file": "/etc/shadow",
    "providers.embedded.path": "/etc/shadow",
    "net.ca_file": "/etc/shadow",
    "net.record": "/tmp/record",
    "net.proxy": "http://evil.example:3128",
    "gateway.tls_cert": "/etc/shadow",
    "gateway.tls_key": "/etc/shadow",
    "workspace": "/",
    "backup.folder": "/tmp/elsewhere",
    "backup.passphrase": "${vault:other}",
    "store.url": "postgresql://me:pw@evil.example/x?sslkey=/etc/shadow",
    "files.url": "s3://evil",
    "files.endpoint": "http://evil.example",
    "files.region": "evil",
    "files.access_key": "evil",
    "files.secret_key": "evil",
    "tools.exec.env": ["OPENAI_API_KEY"],
}


@pytest.mark.parametrize("key, value", BY_HAND.items())
@pytest.mark.parametrize("nested", [False, True], ids=["dotted", "nested"])
async def test_a_path_or_where_all_goes_is_changed_by_hand_only(tmp_path: Path, key: str, value: Any, nested: bool):
    asked: Any = {key: value}
    if nested:
        asked = value
        for part in reversed(key.split(".")):
            asked = {part: asked}
    async with opened(tmp_path, provider=ScriptedModel([])) as door:
        tries = [asked, {key: None}, {"agents.defaults.max_tokens": 9, **asked}]
        told = [await door.send("PATCH", "/api/settings", each) for each in tries]
        fine, _ = await door.change(agents__defaults__max_tokens=7)
    assert [(status, answer["error"]["code"]) for status, answer in told] == [(409, "setting_refused")] * 3
    assert all(answer["error"]["message"].endswith("edit config.toml in the home.") for _, answer in told)
    assert (fine, door.file) == (200, "[agents.defaults]\nmax_tokens = 7\n")


async def test_a_path_that_stands_in_the_file_is_shown_there(tmp_path: Path):
    (tmp_path / "config.toml").write_text('workspace = "elsewhere"\n')
    async with opened(tmp_path, provider=ScriptedModel([])) as door:
        rows = {row["key"]: row for row in (await door.get("/api/settings"))["rows"]}
    assert (rows["workspace"]["value"], rows["workspace"]["by_hand"]) == ("elsewhere", True)
    assert {key for key, row in rows.items() if row["by_hand"] and "<name>" not in key} == {
        key for key in BY_HAND if not key.startswith("providers.x")
    }


def test_every_setting_that_is_called_a_file_or_a_path_is_among_them():
    """A setting that is added later and forgotten here is found by its name."""
    suspicious = ("file", "path", "cert", "folder", "dir", "record", "workspace", "tls_key", "env", "proxy")
    leaves = {".".join(leaf.path): leaf.hint for leaf in leaves_of(Settings)}
    named = {key for key in leaves if key.rpartition(".")[2].endswith(suspicious)}
    named -= {"tools.restrict_to_workspace", "gateway.behind_proxy"}  # switches
    assert {key for key in named if "by_hand" not in notes_of(leaves[key])} == set()
    assert named


ALL = ("read", "chat", "approve")


@pytest.mark.parametrize(
    "asked, scopes",
    [
        ({"tools.approvals": "allow"}, ("approve",)),
        ({"tools": {"policy": [{"tool": "*", "stance": "allow"}]}}, ("approve",)),
        ({"tools.exec": {"network": ["*"]}}, ("approve",)),
        ({"tools.exec.timeout": 1}, ("approve",)),
        ({"tools.web.allow": ["127.0.0.1"]}, ("approve",)),
        ({"tools.web.search.url": ELSEWHERE}, ("approve", "read")),
        ({"tools.disabled": []}, ("approve",)),
        ({"tools.plugins": ["x"]}, ("approve",)),
        ({"agents.defaults.max_tokens": 9, "tools.approvals": "allow"}, ("approve",)),
        ({"agents": {"defaults": {"system_prompt": "Obey."}}}, ("chat",)),
        ({"agents": {"defaults": {"model": "evil/x"}}}, ("chat", "read")),
        ({"agents.defaults.fallbacks": ["evil/x"]}, ("chat", "read")),
        ({"agents.defaults.small_model": "evil/x"}, ("chat", "read")),
        ({"agents.defaults.embedding_model": "evil/x"}, ("read",)),
        ({"models": {"mine": {"model": "evil/x"}}}, ("chat", "read")),
        ({"providers.evil.api_base": ELSEWHERE}, ("chat", "read")),
        ({"telemetry": {"otlp_endpoint": "http://127.0.0.1:9", "content": True}}, ("read",)),
        ({"gateway.allowed_origins": ["https://evil.example"]}, ALL),
        ({"gateway": {"allowed_hosts": ["evil.example"]}}, ALL),
        ({"gateway.host": "0.0.0.0", "gateway.behind_proxy": True}, ALL),
        ({"agents.defaults.max_tokens": 9}, ()),
    ],
)
async def test_no_token_changes_what_is_worth_a_scope_that_it_lacks(tmp_path: Path, asked: Any, scopes: tuple[str]):
    """With `admin` alone, and with all but one of what it is worth."""
    for lacking in scopes:
        held = ("admin", *(scope for scope in ALL if scope != lacking))
        async with opened(tmp_path / lacking, scopes=held, provider=ScriptedModel([])) as door:
            status, told = await door.send("PATCH", "/api/settings", asked)
            file = door.file
        assert (status, file) == (403, "")
        assert told["error"]["message"] == f"this needs the scope {lacking}, which these credentials do not have"
    async with opened(tmp_path, scopes=("admin", *scopes), provider=ScriptedModel([])) as door:
        status, _ = await door.send("PATCH", "/api/settings", asked)
    assert status != 403


@pytest.mark.parametrize(
    "held, status", [(("admin",), 403), (("admin", "chat", "approve"), 403), (("admin", "read"), 200)]
)
async def test_under_whose_account_what_is_said_goes_out_is_worth_reading_it(
    tmp_path: Path, held: tuple[str, ...], status: int
):
    async with opened(tmp_path, scopes=held, provider=ScriptedModel([])) as door:
        told, _ = await door.send("PUT", "/api/keys/openai", {"key": KEY})
    assert told == status


# Worth no more than `admin`: how much, how long, how many, and what it costs.
PLAIN = [
    "agents.defaults.max_tokens",
    "agents.defaults.temperature",
    "agents.defaults.top_p",
    "agents.defaults.reasoning_effort",
    "agents.defaults.max_tool_iterations",
    "agents.defaults.context_window",
    "agents.defaults.steering",
    "agents.defaults.max_message_chars",
    "agents.defaults.titles",
    "agents.defaults.tool_result_max_chars",
    "agents.max_concurrent_turns",
    "agents.shutdown_seconds",
    "prices.<name>.input",
    "prices.<name>.output",
    "prices.<name>.cache_read",
    "prices.<name>.cache_write",
    "store.lease_seconds",
    "gateway.port",
    "gateway.connections",
    "gateway.connections_per_address",
    "gateway.sockets_per_user",
    "gateway.bytes_per_user",
    "files.max_bytes",
    "files.quota",
    "files.guest_quota",
    "files.link_seconds",
    "gateway.request_seconds",
    "agents.defaults.memory_window",
    "agents.tasks.at_once",
    "agents.tasks.depth",
    "agents.tasks.open",
    "agents.tasks.per_person",
    "agents.tasks.rounds",
    "agents.tasks.steps",
    "memory.enabled",
    "memory.idle_minutes",
    "memory.tokens_per_day",
    "schedules.least_seconds",
    "schedules.most_per_person",
    "schedules.timezone",
    "heartbeat.enabled",
    "heartbeat.every",
    "heartbeat.again_hours",
    "heartbeat.quiet",
    "heartbeat.people",
    "terminal.theme",
    "terminal.notify",
    "terminal.notify_seconds",
    "terminal.title",
    "backup.every",
    "backup.keep",
]


def test_of_every_setting_it_is_decided_what_it_is_worth():
    """A setting that is added later stands in scopes.py, or here."""
    leaves = {".".join(leaf.path): leaf for leaf in leaves_of(Settings)}
    free = [key for key, leaf in leaves.items() if not scopes_for([leaf.path]) and "by_hand" not in notes_of(leaf.hint)]
    assert sorted(free) == sorted(PLAIN)


async def test_with_that_scope_it_is_changed(tmp_path: Path):
    async with opened(tmp_path, scopes=("admin", "approve"), provider=ScriptedModel([])) as door:
        status, _ = await door.change(tools__approvals="deny")
    assert (status, door.file) == (200, '[tools]\napprovals = "deny"\n')


def test_the_table_names_settings_that_there_are():
    paths = {leaf.path for leaf in leaves_of(Settings)}
    assert [place for place in NEEDS if not any(path[: len(place)] == place for path in paths)] == []
    assert (scopes_for([("tools", "exec")]), scopes_for([()]), scopes_for([("prices", "x")])) == (
        {"approve"},
        {"approve", "chat", "read"},
        set(),
    )


KEY = "sk-canary-0123456789"


async def test_a_key_is_not_sent_to_an_address_that_was_set_after_it(tmp_path: Path):
    async with ModelServer([Say("good")]) as server, ModelServer([Say("evil")] * 9) as evil:
        settings = {"providers": LOCAL}
        (tmp_path / "config.toml").write_text(f'[providers.openai]\napi_base = "{server.url}"\n')
        async with opened(tmp_path, settings) as door:
            await door.send("PUT", "/api/keys/openai", {"key": KEY})
            tries: list[dict[str, Any]] = [
                {"providers.openai.api_base": evil.url},
                {"providers": {"openai": {"api_base": evil.url}}},
                {"providers.openai.api_base": evil.url, "providers.openai.dialect": "openai_chat"},
                {"providers.openai.headers": {"Host": "evil.example"}},
                {"providers.openai.api_base": server.url.replace("http://", "http://127.0.0.1@")},
            ]
            told = [await door.send("PATCH", "/api/settings", each) for each in tries]
            gone, _ = await door.send("PATCH", "/api/settings", {"providers.openai": None})
            again, _ = await door.send("PATCH", "/api/settings", {"providers.openai.api_base": evil.url})
            await door.send("POST", "/api/models/test", {"name": "openai/gpt-5"})
            sent = await _heard(evil)
            await door.send("DELETE", "/api/keys/openai")
            free, _ = await door.send("PATCH", "/api/settings", {"providers.openai.api_base": evil.url})
    assert [status for status, _ in told] == [409] * 5
    assert told[0][1]["error"]["message"] == (
        "providers.openai: its key is in the vault, and would be sent to the new address. Forget the key first and "
        "give it again afterwards, or edit config.toml."
    )
    assert (gone, again, free) == (200, 409, 200)
    assert KEY not in sent


async def test_nor_is_a_key_of_the_environment_or_a_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    (tmp_path / "config.toml").write_text(
        f'[providers.mine]\napi_base = "{ELSEWHERE}"\nheaders = {{ X-Key = "{KEY}" }}\n'
    )
    async with opened(tmp_path, {"providers": LOCAL}) as door:
        tries: list[dict[str, Any]] = [
            {"providers.groq.api_base": ELSEWHERE},
            {"providers.other.api_base": "http://api.groq.com/openai/v1"},  # in the clear, with the variable's key
            {"providers.mine.api_base": "http://127.0.0.1:10/v1"},
            {"providers.openai-codex.api_base": ELSEWHERE},
        ]
        told = [(await door.send("PATCH", "/api/settings", each))[0] for each in tries]
        fine: list[dict[str, Any]] = [
            {"providers.other.api_base": "https://api.groq.com/openai/v1"},
            {"providers.mine.api_base": "http://127.0.0.1:9/v2"},  # the same host
            {"providers.mine": {"api_base": "http://127.0.0.1:10/v1", "headers": {"X-Key": "another"}}},
        ]
        taken = [(await door.send("PATCH", "/api/settings", each))[0] for each in fine]
    assert (told, taken) == ([409] * 4, [200] * 3)


async def test_nor_is_what_a_header_refers_to_in_the_vault(tmp_path: Path):
    reference = "${vault:provider.mine.X-Key}"
    (tmp_path / "config.toml").write_text(
        f'[providers.mine]\napi_base = "{ELSEWHERE}"\nheaders = {{ X-Key = "{reference}" }}\n'
    )
    async with opened(tmp_path, {"providers": LOCAL}) as door:
        tries: list[dict[str, Any]] = [
            {"providers.mine.api_base": "http://127.0.0.1:10/v1"},
            {"providers.other": {"api_base": "http://127.0.0.1:10/v1", "headers": {"X-Key": reference}}},
        ]
        told = [(await door.send("PATCH", "/api/settings", each))[0] for each in tries]
        gone, _ = await door.send("PATCH", "/api/settings", {"providers.mine.headers": None})
        moved, _ = await door.send("PATCH", "/api/settings", {"providers.mine.api_base": "http://127.0.0.1:10/v1"})
        again = await door.send("PATCH", "/api/settings", {"providers.mine.headers": {"X-Key": reference}})
    assert (told, gone, moved, again[0]) == ([409] * 2, 200, 200, 409)
    assert "only be written in the file itself" in again[1]["error"]["message"]


async def test_nor_are_the_headers_of_a_collector(tmp_path: Path):
    (tmp_path / "config.toml").write_text(
        f'[telemetry]\notlp_endpoint = "http://127.0.0.1:9"\notlp_headers = {{ key = "{KEY}" }}\n'
    )
    async with opened(tmp_path, provider=ScriptedModel([])) as door:
        refused = await door.change(telemetry__otlp_endpoint="http://127.0.0.1:10")
        taken = await door.change(telemetry={"otlp_endpoint": "http://127.0.0.1:10", "otlp_headers": {"key": "new"}})
    assert (refused[0], taken[0]) == (409, 200)
    assert "Give telemetry.otlp_headers anew" in refused[1]["error"]["message"]


async def _heard(server: ModelServer) -> str:
    async with aiohttp.ClientSession() as client, client.get(server.url.replace("/v1", "/_calls")) as answer:
        return await answer.text()


@pytest.mark.parametrize(
    "address, shown",
    [
        ("https://api.example/v1", "https://api.example/v1"),
        ("https://api.example/v1?key=CANARY&x=CANARY", "https://api.example/v1?key=…&x=…"),
        ("https://api.example/v1?CANARY", "https://api.example/v1?…"),
        ("https://api.example/v1#CANARY", "https://api.example/v1#…"),
        ("https://api.example/v1?a=1#CANARY?b=CANARY", "https://api.example/v1?a=…#…"),
        ("https://me:CANARY@api.example/v1", "https://…@api.example/v1"),
        ("https://me:CAN/ARY@api.example/v1", "https://…@api.example/v1"),
        ("https://CANARY@api.example", "https://…@api.example"),
        ("//me:CANARY@api.example", "//…@api.example"),
        ("me:CANARY@api.example:1/v1?key=CANARY", "…@api.example:1/v1?key=…"),
    ],
)
async def test_an_address_is_shown_without_what_may_be_a_key(tmp_path: Path, address: str, shown: str):
    assert masked(address) == shown
    (tmp_path / "config.toml").write_text(
        f'[providers.mine]\napi_base = "{address}"\n[tools.web.search]\nurl = "{address}"\n'
        f'[agents.defaults]\nfallbacks = ["{address}"]\n'
    )
    async with (
        opened(tmp_path, scopes=("read",), provider=ScriptedModel([])) as door,
        door.client.get("/api/settings") as answer,
    ):
        text = await answer.text()
    assert answer.status == 200
    assert "CAN/ARY" not in text
    if "//" in address:  # in a list of names nothing else is taken for an address
        assert "CANARY" not in text


def test_a_repr_for_a_log_shows_as_little():
    assert "CANARY" not in repr(AccountSection(api_base="https://x.example/v1?key=CANARY#CANARY", api_key="CANARY"))
