"""What is remembered, over the API: everybody's own, and nobody else's."""

from pathlib import Path

from aiohttp.test_utils import TestClient, TestServer

from everloop.app import open_desk
from everloop.gateway import api
from everloop.ports.memory import MEMORY, Fact, FactSource, MemoryChange, MemoryDocument
from everloop.testing import Say, ScriptedModel

from ..guarded import guarded
from .test_budgets import PEOPLE, Clients

BODY = "# Memory\n\n## Ann\n\n- Ann lives in Rome\n- Ann likes tea\n"


async def test_one_reads_edits_takes_back_and_forgets_what_is_ones_own(tmp_path: Path):
    async with (
        open_desk(tmp_path, provider=ScriptedModel(lambda shown: Say("ok"))) as agent,
        TestClient(TestServer(guarded(api.routes(agent), PEOPLE.get))) as client,
    ):
        ask = Clients(client).ask
        await agent.ask("hi", "api:one")
        [talk] = await agent.store.conversations("owner")
        rome = Fact("f1", "Ann lives in Rome", FactSource(talk.id, 1, "owner", 100.0), "Ann", 5)
        tea = Fact("f2", "Ann likes tea", FactSource("0" * 32, 1, "owner", 100.0), "Ann")
        change = MemoryChange("", "consolidated", facts=(rome, tea), documents=(MemoryDocument(MEMORY, BODY),))
        await agent.store.change_memory("owner", change)
        await agent.store.change_memory("web:3", MemoryChange("", "", facts=(Fact("f1", "CANARY of another"),)))

        _, shown = await ask("owner", "GET", "/api/memory")
        assert (shown["version"], shown["facts"], shown["ended"], shown["problems"]) == (1, 2, 0, [])
        _, found = await ask("owner", "GET", "/api/memory/facts?search=rome")
        assert found["facts"] == [
            {
                "id": "f1",
                "text": "Ann lives in Rome",
                "topic": "Ann",
                "importance": 5,
                "thread": talk.id,
                "session": "api:one",
                "seq": 1,
                "person": "owner",
                "at": 100.0,
                "since": 0.0,
                "until": 0.0,
                "replaced_by": "",
                "marked": False,
                "deleted": False,
            }
        ]
        _, every = await ask("owner", "GET", "/api/memory/facts")
        assert {each["id"]: each["deleted"] for each in every["facts"]} == {"f1": False, "f2": True}

        edited = {"document": MEMORY, "text": BODY.replace("Rome", "Oslo"), "base": BODY}
        assert await ask("owner", "PUT", "/api/memory/document", edited) == (200, {"version": 2})
        _, different = await ask("owner", "GET", "/api/memory/difference")
        assert "-- Ann lives in Rome\n+- Ann lives in Oslo" in different["text"]
        assert (tmp_path / "workspace" / "memory" / MEMORY).read_text() == edited["text"]
        _, log = await ask("owner", "GET", "/api/memory/versions")
        assert [(each["version"], each["author"]) for each in log["versions"]] == [(2, "owner"), (1, "")]
        assert await ask("owner", "POST", "/api/memory/restore", {"version": 1}) == (200, {"version": 3})
        _, told = await ask("owner", "GET", "/api/memory/document")
        assert told == {"document": MEMORY, "text": BODY}
        status, gone = await ask("owner", "POST", "/api/memory/forget", {"ids": ["f1"]})
        assert (status, gone["facts"], [each["thread"] for each in gone["said_in"]]) == (200, 1, [talk.id])
        _, told = await ask("owner", "GET", "/api/memory/document?version=1")
        assert "Rome" not in told["text"]

        path = "/api/memory/facts?ended=true"
        everybody = [await ask(who, "GET", path) for who in ("owner", "user", "admin", "guest")]
        assert ["CANARY" in str(each) for each in everybody] == [False, True, False, False]
        bad = [
            await ask("owner", "POST", "/api/memory/restore", {"version": 99}),
            await ask("owner", "PUT", "/api/memory/document", {"document": MEMORY, "text": "a\0b", "base": ""}),
            await ask("owner", "GET", "/api/memory/document?document=../config.toml"),
            await ask("reader", "POST", "/api/memory/forget", {"ids": ["f2"]}),
            await ask("owner", "POST", "/api/memory/forget", {"ids": []}),
            await ask("owner", "PUT", "/api/memory/document", {"document": MEMORY, "text": "x" * 100_001, "base": ""}),
        ]
        assert [status for status, _ in bad] == [409, 400, 400, 403, 400, 409]
        assert [fact.id for fact in await agent.store.facts("owner")] == ["f2"]
