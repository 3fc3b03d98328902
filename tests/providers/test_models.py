"""Names of models, resolved: what they cost, how much they read, who stands in for whom, how patient they are."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everloop.core.message import Message, said
from everloop.core.prompt import Prompt, Transcript, Usage
from everloop.errors import ModelMissing, RateLimited
from everloop.ports.provider import Delta, ModelLimits, Reply
from everloop.providers.keys import Keys
from everloop.providers.models import ModelResolver, ResolvedModel, given, in_process
from everloop.providers.prices import Price, Prices
from everloop.settings import AccountSection
from everloop.testing import Fail, Say, ScriptedModel, Spend
from everloop.testing.model_server import WINDOW, ModelServer

ANSWER = [Say("hello"), Spend(Usage(1000, 100, cache_read=400))]


class House:
    """Models of one server and an embedded one, with the keys of nobody else."""

    def __init__(self, http, base: str = "") -> None:
        self.made: list[str] = []
        self.accounts = {"custom": AccountSection("sk-canary-models", api_base=base)} if base else {}
        self.environ: dict[str, str] = {}
        self.prices: dict[str, Price] = {}
        self._http = http

    @property
    def models(self) -> ModelResolver:
        keys = Keys(self.accounts, self.environ, {}, Path())
        return ModelResolver(self._http, keys, Prices(self.prices), self._embedded)

    def _embedded(self, name: str) -> ResolvedModel:
        if name == "nosuch":
            raise ModelMissing("there is no such embedded model")
        self.made.append(name)
        model = ScriptedModel(lambda shown: Say("from inside"), name=f"embedded/{name}" if name else "embedded")

        async def warm() -> None:
            pass

        return in_process(model, 4096, "It is small.", warm)


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer(lambda shown: ANSWER, models=("a", "b")) as server:
        yield server


@pytest.fixture
def house(http, server) -> House:
    return House(http, server.url)


async def ask(model: ResolvedModel, shown: list[Delta] | None = None) -> Reply:
    prompt = Prompt(model.model, "Be brief.", Transcript((Message("user", said("hi")),)))
    return await model.provider.reply(prompt, (shown if shown is not None else []).append)


async def test_an_answer_says_who_gave_it_and_what_it_cost(house):
    house.prices = {"custom/a*": Price(2.0, 10.0, cache_read=0.5)}
    reply = await ask(house.models.find("custom/a"))
    assert (reply.model, reply.text) == ("custom/a", "hello")
    assert reply.cost == pytest.approx((600 * 2.0 + 400 * 0.5 + 100 * 10.0) / 1_000_000)


async def test_a_price_that_nobody_knows_is_not_nothing(house):
    assert (await ask(house.models.find("custom/a"))).cost is None


async def test_a_server_of_this_machine_costs_nothing(house, server):
    house.accounts = {"vllm": AccountSection(api_base=server.url)}
    assert (await ask(house.models.find("vllm/a"))).cost == 0.0


async def test_the_embedded_model_costs_nothing(house):
    reply = await ask(house.models.find("embedded"))
    assert (reply.model, reply.cost) == ("embedded", 0.0)


async def test_one_model_under_two_names_is_made_once(house):
    models = house.models
    models.find("embedded", ["custom/a"])
    models.find("custom/a", ["embedded"])
    models.find("embedded")
    assert house.made == [""]
    assert models.find("custom/a").provider is models.find("custom/a").provider


# Windows


@pytest.mark.parametrize(("name", "window"), [("openai/gpt-5.4-mini", 400_000), ("custom/a", 8192), ("embedded", 4096)])
def test_a_window_is_that_of_the_table_or_small(house, name, window):
    house.environ = {"OPENAI_API_KEY": "k"}
    assert house.models.find(name).window == window


async def test_the_host_knows_better(house):
    assert [await house.models.find(f"custom/{name}").measure() for name in ("a", "nosuch")] == [
        ModelLimits(WINDOW),
        ModelLimits(),
    ]
    assert house.models.find("embedded").measure is None


def test_a_provider_that_was_brought_along_reads_as_much_as_it_likes():
    model = given(ScriptedModel([], name="mine"))
    assert (model.name, model.model, model.window) == ("mine", "mine", 128_000)


# Chains


async def test_a_chain_is_called_as_its_first_and_looks_like_it(house):
    models = house.models
    alone, chain = models.find("embedded"), models.find("embedded", ["custom/a"])
    assert (chain.name, chain.window, chain.compact, chain.notice, chain.warm) == (
        *(alone.name, alone.window, True, "It is small."),
        alone.warm,
    )
    assert (await ask(chain)).model == "embedded"


@pytest.mark.parametrize("spares", [[], ["nosuch/x"], ["openai/gpt-5"], ["embedded/nosuch"], ["custom/a"]])
async def test_a_fallback_that_cannot_be_had_or_is_the_first_itself_is_left_out(house, spares):
    models = house.models
    assert models.find("custom/a", spares).provider is models.find("custom/a").provider


async def test_the_first_that_cannot_be_had_is_told_whatever_the_fallbacks_are(house):
    with pytest.raises(ModelMissing, match="openai/gpt-5 needs a key"):
        house.models.find("openai/gpt-5", ["custom/a"])


async def test_nobody_is_asked_twice_in_a_chain(house, server):
    server.play(lambda shown: Fail(RateLimited("busy", 0.0)))
    shown: list[Delta] = []
    with pytest.raises(RateLimited, match=r"The fallbacks failed too: custom/b \(too many requests\)\.$"):
        await ask(house.models.find("custom/a", ["custom/a", "custom/b", "custom/a"]), shown)
    assert shown == [Delta(notice="custom/a does not answer (too many requests); asking custom/b")]
    assert [prompt.model for prompt in server.prompts] == ["a", "a", "b", "b", "b"]  # the last is the most patient


async def test_the_models_of_a_chain_keep_their_rest_whoever_asks(house, server):
    server.play(lambda shown: Fail(RateLimited("busy", 60.0)) if shown.model == "a" else ANSWER)
    models = house.models
    assert (await ask(models.find("custom/a", ["custom/b"]))).model == "custom/b"
    assert (await ask(models.find("custom/a", ["custom/b"]))).model == "custom/b"
    assert [prompt.model for prompt in server.prompts] == ["a", "b", "b"]


# Looking


async def test_a_look_finds_what_is_named_without_asking_anyone(house, server):
    models = house.models
    assert (await models.look("custom/a")).name == "custom/a"
    assert models.choice("custom/a") == await models.look("custom/a")
    assert server.calls == 0


async def test_a_name_that_nobody_has_is_missing(house):
    with pytest.raises(ModelMissing, match="the model 'no-such-model' is not known: write provider/model"):
        await house.models.look("no-such-model")
    with pytest.raises(ModelMissing, match="claude-x needs a key: set ANTHROPIC_API_KEY"):
        house.models.find("claude-x")


@pytest.mark.parametrize("name", ["openai-codex", "github-copilot"])
async def test_a_host_that_wants_a_login_says_how(house, name):
    with pytest.raises(ModelMissing) as raised:
        house.models.find(f"{name}/m")
    assert str(raised.value) == f"{name}/m needs a login: everloop models login {name}"


async def test_a_login_gives_its_headers_with_each_request(http, server):
    count = 0

    async def headers() -> dict[str, str]:
        nonlocal count
        count += 1
        return {"Authorization": f"Bearer token-{count}"}

    keys = Keys({"github-copilot": AccountSection(api_base=server.url)}, {}, {}, Path())
    models = ModelResolver(http, keys, Prices(), lambda name: None, {"github-copilot": headers})
    model = models.find("github-copilot/a")
    await ask(model)
    assert (await ask(model)).model == "github-copilot/a"
    shown = [asked.headers["Authorization"] for asked in server.requests]
    assert shown == ["Bearer token-1", "Bearer token-2"]


# Vectors


async def test_one_who_makes_vectors_is_found_as_any_model_is(house):
    house.environ = {"OPENAI_API_KEY": "k", "OPENROUTER_API_KEY": "r"}
    names = ("openai/text-embedding-3-small", "text-embedding-3-large", "custom/vectors")
    assert [(await house.models.embedder(name)).name for name in names] == [
        "openai/text-embedding-3-small",
        "openrouter/openai/text-embedding-3-large",
        "custom/vectors",
    ]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("groq/x", "groq/x needs a key: "),
        ("github-copilot/text-embedding-3-small", "github-copilot/text-embedding-3-small needs a login: everloop "),
        ("embedded", "the embedded model offers no embeddings: "),
    ],
)
async def test_one_who_cannot_be_had_is_explained(house, name, why):
    with pytest.raises(ModelMissing, match=f"^{why}"):
        await house.models.embedder(name)
