"""What is remembered in an open house: it comes back in the tail of the prompt, of nobody else."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

import everloop
from everloop.app import open_for_owner
from everloop.app.recall import HouseEmbedder, how_recalled
from everloop.app.records import open_view
from everloop.core.people import Role
from everloop.core.prompt import Usage
from everloop.memory.built_in import MISSING, NAME, is_installed
from everloop.memory.scales import TEXTS
from everloop.memory.telling import REMEMBERED
from everloop.ports.budgets import Limit
from everloop.ports.memory import Fact, FactEnd, FactSource, MemoryChange
from everloop.ports.provider import Embeddings
from everloop.runtime.budgets import BudgetControl, BudgetRules
from everloop.runtime.people import KnownPeople
from everloop.settings import load
from everloop.testing import Say, ScriptedModel, Shown
from everloop.testing.model_server import ModelServer
from tests.store.conftest import cannot

AT = 1_772_496_000.0  # 2026-03-03
MISO = Fact("f1", "The cat is called Miso and is eleven", FactSource("t1", 1, "owner", AT))
TOLD = f"{REMEMBERED}\n- {MISO.text} (2026-03-03)"


def tail(shown: Shown) -> Say:
    return Say(shown.tail)


async def remember(agent: everloop.Agent, owner: str = "owner", **parts: Any) -> None:
    await agent.store.change_memory(owner, MemoryChange("", "said so", **parts))


class TestTheTail:
    async def test_a_fact_that_is_meant_stands_in_it_from_the_next_message_on_in_any_conversation(self, tmp_path: Path):
        async with everloop.open(tmp_path, provider=ScriptedModel(tail)) as agent:
            assert REMEMBERED not in (await agent.ask("How old is Miso?")).content
            await remember(agent, facts=(MISO,))
            assert (await agent.ask("How old is Miso?")).content.endswith(TOLD)
            assert (await agent.ask("And Miso?", session="api:new")).content.endswith(TOLD)
            assert REMEMBERED not in (await agent.ask("What is the capital of Chad?", session="api:new")).content

    async def test_what_is_true_no_longer_or_was_forgotten_is_not_told(self, tmp_path: Path):
        rome, oslo = (Fact(f"f-{city}", f"The family's home is in {city}") for city in ("Rome", "Oslo"))
        async with everloop.open(tmp_path, provider=ScriptedModel(tail)) as agent:
            await remember(agent, facts=(rome,))
            assert rome.text in (await agent.ask("Where is our home?", session="api:1")).content
            await remember(agent, facts=(oslo,), ended=(FactEnd("f-Rome", 5.0, "f-Oslo"),))
            answer = (await agent.ask("Where is our home?", session="api:2")).content
            assert (oslo.text in answer, rome.text in answer) == (True, False)
            await remember(agent, removed=("f-Oslo",))
            assert REMEMBERED not in (await agent.ask("Where is our home?", session="api:3")).content

    async def test_what_stands_in_the_conversation_already_is_not_told_again(self, tmp_path: Path):
        async with everloop.open(tmp_path, provider=ScriptedModel(tail)) as agent:
            await remember(agent, facts=(MISO,))
            assert REMEMBERED not in (await agent.ask(f"{MISO.text}. Is Miso old?")).content
            assert REMEMBERED not in (await agent.ask("So, Miso?")).content

    async def test_nobody_s_facts_come_into_another_s_prompt(self, tmp_path: Path):
        roles = {"web:ann": Role.USER, "web:bob": Role.USER}
        async with everloop.open(tmp_path, provider=ScriptedModel(tail), roles=roles) as agent:
            await remember(agent, "web:ann", facts=(MISO,))
            assert MISO.text in (await agent.user("web:ann").ask("And Miso?")).content
            assert MISO.text not in (await agent.user("web:bob").ask("And Miso?")).content
            assert MISO.text not in (await agent.ask("And Miso?")).content

    async def test_the_context_command_shows_it(self, tmp_path: Path):
        async with everloop.open(tmp_path, provider=ScriptedModel(tail)) as agent:
            await remember(agent, facts=(MISO,))
            await agent.ask("And Miso?")
        async with open_view(tmp_path) as view:
            contents = await view.contents("api:default")
        told = {piece.name: piece.text for piece in contents.pieces}
        assert told["recalled"] == TOLD


async def test_meaning_finds_what_words_do_not_and_a_process_that_answers_once_loads_nothing(tmp_path: Path):
    if not is_installed():
        cannot(MISSING)
    asked = "Does our feline pet have a name?"
    async with everloop.open(tmp_path, provider=ScriptedModel(tail)) as agent:
        await remember(agent, facts=(MISO, Fact("f2", "Invoices are due within 30 days")))
        while await agent.store.vectors_behind(NAME, 1):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        assert (await agent.ask(asked)).content.endswith(TOLD)
    async with open_for_owner(tmp_path, provider=ScriptedModel(tail), embeds=False) as agent:
        assert REMEMBERED not in (await agent.ask(asked, session="api:once")).content
        assert (await agent.ask("And Miso?", session="api:once")).content.endswith(TOLD)
        assert "fact vectors" not in [task.name for task in agent.tasks()]


async def test_the_embedding_model_of_the_settings_finds_by_meaning_and_is_paid_and_counted(tmp_path: Path):
    asked: list[str] = []

    def meaning(text: str) -> list[float]:
        chance = random.Random(text)
        return [*(chance.gauss(0, 0.1) for _ in range(64)), float("cat" in text or "pet" in text)]

    async def embeddings(request: web.Request) -> web.Response:
        texts = (await request.json())["input"]
        asked.extend(texts)
        rows = [{"index": n, "embedding": meaning(text)} for n, text in enumerate(texts)]
        return web.json_response({"data": rows, "usage": {"prompt_tokens": 5 * len(texts)}})

    app = web.Application()
    app.router.add_post("/v1/embeddings", embeddings)
    host = TestServer(app)
    await host.start_server()
    async with ModelServer(lambda shown: Say(shown.messages[-1].text), models=("m",)) as server:
        settings = {
            "agents": {"defaults": {"model": "custom/m", "embedding_model": "openai/text-embedding-3-small"}},
            "providers": {
                "custom": {"api_base": server.url, "api_key": "sk-1"},
                "openai": {"api_base": str(host.make_url("/v1")), "api_key": "sk-2"},
            },
        }
        async with everloop.open(tmp_path, settings) as agent:
            others = tuple(Fact(f"x{n}", f"Invoice {n} was paid") for n in range(50))
            await remember(agent, facts=(MISO, *others))
            while await agent.store.vectors_behind("openai/text-embedding-3-small", 1):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            await agent.ask("Has our pet a name?")
            [row] = [row for row in await agent.store.spent() if row.purpose == "memory"]
    await host.close()
    assert MISO.text in str(server.requests[-1].body)
    assert (row.usage.input, row.cost is not None) == (5 * len(asked), True)
    assert asked[51:] == ["Has our pet a name?", *TEXTS]


class _Host:
    """An embedding model at a host: a dollar for each token that it reads."""

    name = "host/embed"

    def __init__(self) -> None:
        self.asked = 0

    def price(self, usage: Usage) -> float:
        return float(usage.input)

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        self.asked += 1
        usage = Usage(3 * len(texts))
        return Embeddings([[1.0, 0.0] for _ in texts], self.name, usage, self.price(usage))


class TestWhoEmbeds:
    def house(self, agent: everloop.Agent, host: _Host | None, rules: BudgetRules | None = None) -> HouseEmbedder:
        chosen = {"agents": {"defaults": {"embedding_model": "host/embed"}}} if host else {}

        async def embedder() -> _Host | None:
            return host

        now: Any = SimpleNamespace(
            settings=load(Path("/nowhere"), {}, chosen), presets=SimpleNamespace(embedder=embedder)
        )
        rules = rules or BudgetRules()
        budgets, people = BudgetControl(agent.store, lambda: rules), KnownPeople(agent.store, {"web:ann": Role.USER})
        return HouseEmbedder(lambda: now, agent.store, lambda: budgets, people)

    async def test_the_model_of_the_settings_wins_and_is_paid_by_whose_memory_it_is(self, tmp_path: Path):
        async with everloop.open(tmp_path, provider=ScriptedModel(tail)) as agent:
            host = _Host()
            embedder = self.house(agent, host)
            assert await embedder.model() == "host/embed"
            made = await embedder.embed("web:ann", ["one", "two"])
            assert made is not None
            assert len(made.vectors) == 2
            [row] = await agent.store.spent(who="web:ann")
            assert (row.purpose, row.model, row.usage.input, row.cost) == ("memory", "host/embed", 6, 6.0)

    async def test_whoever_has_nothing_left_is_not_charged_and_words_answer(self, tmp_path: Path):
        async with everloop.open(tmp_path, provider=ScriptedModel(tail)) as agent:
            host = _Host()
            poor = self.house(agent, host, BudgetRules(roles={Role.USER: Limit(tokens=5)}))
            assert await poor.embed("web:ann", ["a text that is longer than five tokens"]) is None
            assert (host.asked, await agent.store.spent(who="web:ann")) == (0, [])

    def test_it_is_said_by_what_facts_are_found(self):
        plain, chosen = (
            load(Path("/nowhere"), {}),
            load(Path("/nowhere"), {}, {"agents": {"defaults": {"embedding_model": "mistral/mistral-embed"}}}),
        )
        assert "mistral/mistral-embed" in how_recalled(chosen)
        assert ("built-in" if is_installed() else "words alone") in how_recalled(plain)
