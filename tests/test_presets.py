"""Presets, fallbacks and windows, from the settings to what a model is asked."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from everloop.app.presets import HouseModels, Presets, filled
from everloop.core.briefing import Briefing
from everloop.core.decide import Rules
from everloop.core.message import Message, said
from everloop.core.prompt import Prompt, Transcript
from everloop.core.thread import Thread
from everloop.errors import ModelMissing, RateLimited
from everloop.net.trusted import TrustedHttp
from everloop.ports.provider import ModelLimits
from everloop.providers.keys import Keys
from everloop.providers.models import ModelResolver, ResolvedModel, in_process
from everloop.providers.prices import Prices
from everloop.runtime.context import Context, Profile
from everloop.runtime.models import SHORT, Briefed, Model
from everloop.settings import AccountSection, Agents, Defaults, Preset, Providers, Settings
from everloop.testing import Fail, Say, ScriptedModel
from everloop.testing.model_server import WINDOW, ModelServer

LOCAL = ("ollama", "lmstudio", "llamacpp", "vllm")
TOLD = Briefing("Be brief.", Rules(max_steps=7))
NAMED = Preset("custom/b", ("custom/c",), "low", 0.5, 0.9, 100, 1000)


class Small(ModelServer):
    """Counts how often it is asked for its list of models."""

    lists = 0

    async def _answer(self, request):
        self.lists += request.path == "/v1/models"
        return await super()._answer(request)


@pytest.fixture
async def server() -> AsyncIterator[Small]:
    async with Small(lambda shown: Say("hello"), models=("a", "b", "c")) as server:
        yield server


class House:
    def __init__(self, http: TrustedHttp, base: str) -> None:
        self._http = http
        self.accounts = {"custom": AccountSection("sk-canary-models", api_base=base)}

    def presets(self, defaults: Defaults, **presets: Preset) -> Presets:
        keys = Keys(self.accounts, {"OPENAI_API_KEY": "k"}, {}, Path())
        settings = Settings(Agents(defaults), Providers(accounts=self.accounts), presets)
        return Presets(settings, ModelResolver(self._http, keys, Prices(), self._embedded))

    def models(self, defaults: Defaults, **presets: Preset) -> HouseModels:
        return HouseModels(self.presets(defaults, **presets), lambda: "noon")

    def _embedded(self, name: str) -> ResolvedModel:
        async def warm() -> None:
            pass

        return in_process(ScriptedModel([], name="embedded"), 4096, "", warm)


@pytest.fixture
async def house(server) -> AsyncIterator[House]:
    http = TrustedHttp()
    yield House(http, server.url)
    await http.close()


A = Defaults("custom/a")


def test_a_preset_with_gaps_is_filled_from_the_defaults():
    defaults = Defaults("a", ("b",), temperature=0.1, top_p=0.2, reasoning_effort="high", context_window=5000)
    assert filled(Preset("m"), defaults) == Preset("m", ("b",), "high", 0.1, 0.2, 8192, 5000)
    assert filled(NAMED, defaults) == NAMED
    assert filled(Preset("m", (), "", 0.0, 0.0), defaults) == Preset("m", (), "", 0.0, 0.0, 8192, 5000)


async def test_a_name_is_a_preset_or_a_model(house):
    presets = house.presets(A, fast=Preset("custom/b", max_tokens=5))
    assert [presets.find(name).name for name in ("", "fast", "custom/c")] == ["custom/a", "custom/b", "custom/c"]
    assert [presets.asked(name).max_tokens for name in ("", "fast", "custom/c")] == [8192, 5, 8192]


async def test_the_default_may_be_a_preset(house):
    models = house.models(Defaults("fast"), fast=Preset("custom/b"))
    assert (models.default, models.names()) == ("custom/b", ["fast"])


async def test_a_voice_is_found_again_by_its_preset_or_its_whole_name(house):
    models = house.models(A, fast=NAMED)
    found = [(await models.look(name)).key for name in ("fast", "custom/b", "gpt-5.4-mini")]
    assert found == ["fast", "custom/b", "openai/gpt-5.4-mini"]
    assert [models.find(key).name for key in found] == ["custom/b", "custom/b", "openai/gpt-5.4-mini"]
    assert models.find("fast") is await models.look("fast")


async def test_a_name_that_nobody_has_is_missing(house):
    for name in ("nosuch/x", "anthropic/claude-x"):
        with pytest.raises(ModelMissing):
            house.models(A).find(name)
        with pytest.raises(ModelMissing):
            await house.models(A).look(name)


def should_measure(model: Model, tokens: int) -> bool:
    return Briefed(model, TOLD).should_measure(tokens)


def asked(models: HouseModels, name: str) -> Prompt:
    thread = Thread("t1")
    return models.find(name).fitted_to(TOLD).context.prompt(thread, "", False)


async def test_a_preset_says_how_its_model_is_asked(house):
    models = house.models(Defaults("custom/a", temperature=0.1, reasoning_effort="high"), fast=NAMED)

    def how(prompt: Prompt) -> tuple[object, ...]:
        return prompt.model, prompt.temperature, prompt.top_p, prompt.effort, prompt.max_tokens

    assert how(asked(models, "")) == ("a", 0.1, None, "high", 2048)
    assert how(asked(models, "fast")) == ("b", 0.5, 0.9, "low", 100)
    assert how(asked(models, "openai/gpt-5.4-mini")) == ("gpt-5.4-mini", 0.1, None, "high", 8192)


async def test_all_models_are_told_the_same_and_a_small_one_no_time(house):
    models = house.models(A)
    assert (asked(models, "").system, models.find("").fitted_to(TOLD).rules.max_steps) == ("Be brief.", 7)
    assert [models.find(name).fitted_to(TOLD).context.tail(Thread(), False) for name in ("", "embedded")] == [
        "Current time: noon",
        "",
    ]


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("custom/a", 8192 - 2048),  # nothing is known of it
        ("openai/gpt-5.4-mini", 400_000 - 8192),  # the table's
        ("embedded", 4096 - 1024),  # its own
        ("fast", 1000 - 100),  # the setting's
    ],
)
async def test_a_prompt_may_hold_what_the_window_leaves_beside_the_answer(house, server, name, limit):
    assert house.models(A, fast=NAMED).find(name).fitted_to(TOLD).rules.limit == limit
    assert server.lists == 0


LONG = 400_000  # tokens; more than any of these models is believed to read


async def test_the_setting_wins_over_all_that_hosts_and_tables_say(house, server):
    models = house.models(Defaults("custom/a", context_window=2000, max_tokens=100))
    names = ("", "openai/gpt-5.4-mini")
    assert [models.find(name).fitted_to(TOLD).rules.limit for name in names] == [1900, 1900]
    assert [should_measure(models.find(name), LONG) for name in names] == [False, False]


async def test_a_host_is_asked_for_its_window_when_a_conversation_is_no_longer_short(house, server):
    models = house.models(A)
    names = ("", "custom/b", "openai/gpt-5.4-mini", "embedded")
    assert [should_measure(models.find(name), SHORT) for name in names] == [True, True, False, False]  # nothing known
    assert [should_measure(models.find(name), SHORT + 1) for name in names] == [True, True, True, False]
    for name in names[:2]:
        await models.find(name).measure_window()
        assert (models.find(name).fitted_to(TOLD).rules.limit, models.find(name).unsure) == (WINDOW - 8192, False)
        # It is believed, until a conversation is too long for that, too.
        assert [should_measure(models.find(name), tokens) for tokens in (WINDOW - 8192, LONG)] == [False, True]
    assert server.lists == 1


async def test_a_server_of_this_machine_is_asked_before_its_first_answer_and_again_if_it_did_not_know(house, server):
    house.accounts["vllm"] = AccountSection(api_base=server.url)
    models = house.models(Defaults("vllm/a"))
    known, unknown = models.find("vllm/a"), models.find("vllm/not-loaded-yet")
    assert [should_measure(model, 5) for model in (known, unknown)] == [True, True]
    await known.measure_window()
    await unknown.measure_window()
    assert [
        (model.window, should_measure(model, 5), should_measure(model, SHORT + 1)) for model in (known, unknown)
    ] == [
        (WINDOW, False, False),
        (8192, False, True),
    ]


async def test_whoever_comes_while_the_host_is_asked_waits_for_the_same_answer():
    begun, told = asyncio.Event(), asyncio.Event()
    asked = []

    async def measure() -> ModelLimits:
        asked.append(1)
        begun.set()
        await told.wait()
        return ModelLimits(5000)

    def fit(limits: ModelLimits, told: Briefing) -> tuple[Context, Rules]:
        return Context(Profile("b", ()), (), lambda: "noon"), Rules(limit=limits.window)

    model = Model("a/b", "a/b", "b", ScriptedModel([]), 100, fit, measure)
    first, second, third = (asyncio.create_task(model.measure_window()) for _ in range(3))
    await begun.wait()
    first.cancel()  # someone stopped that turn; the others still want to know
    await asyncio.wait([first])
    told.set()
    await asyncio.gather(second, third)
    assert (model.fitted_to(TOLD).rules.limit, len(asked)) == (5000, 2)


async def asked_in_turn(model: ResolvedModel, server: Small) -> list[str]:
    """The models that are asked when none of them can answer."""
    server.play(lambda shown: Fail(RateLimited("busy", 3600.0)))
    server.requests.clear()
    with pytest.raises(RateLimited):
        await model.provider.reply(
            Prompt(model.model, "", Transcript((Message("user", said("hi")),))), lambda delta: None
        )
    return [prompt.model for prompt in server.prompts]


async def test_a_chain_is_made_of_presets_and_models(house, server):
    presets = house.presets(Defaults("custom/a", ("fast", "nosuch/x", "custom/c")), fast=NAMED)
    assert await asked_in_turn(await presets.look(""), server) == ["a", "b", "c"]


async def test_a_model_that_is_chosen_from_its_own_fallbacks_is_there_once(house, server):
    presets = house.presets(Defaults("custom/a", ("custom/b", "custom/c")))
    assert await asked_in_turn(presets.find("custom/b"), server) == ["b", "c"]


async def test_a_preset_may_have_fallbacks_of_its_own_or_none(house, server):
    presets = house.presets(Defaults("custom/a", ("custom/b",)), own=NAMED, none=Preset("custom/a", ()))
    assert await asked_in_turn(presets.find("own"), server) == ["b", "c"]
    assert await asked_in_turn(presets.find("none"), server) == ["a"]


async def test_vectors_are_made_by_the_model_that_is_set_for_it_and_else_by_none(house):
    named = house.models(Defaults("custom/a", embedding_model="custom/vectors"))
    preset = house.models(Defaults("custom/a", embedding_model="meaning"), meaning=Preset("text-embedding-3-small"))
    assert [(await models.embedder()).name for models in (named, preset)] == [
        "custom/vectors",
        "openai/text-embedding-3-small",
    ]
    assert await house.models(A).embedder() is None
    for name in ("nosuch/x", "embedded"):
        with pytest.raises(ModelMissing):
            await house.models(Defaults("custom/a", embedding_model=name)).embedder()


async def test_a_small_model_is_asked_for_small_things_and_else_whoever_answers(house):
    both = house.models(Defaults("custom/a", small_model="fast"), fast=NAMED)
    assert [(await both.small()).key, both.default] == ["fast", "custom/a"]
    assert await house.models(A).small() is None


async def test_titles_are_made_by_the_small_model_alone(house):
    defaults = Defaults("custom/a", ("custom/c",), small_model="custom/b")
    found = await house.presets(defaults).for_titles()
    assert (found.name, found.provider.name) == ("custom/b", "custom/b")  # and no router over fallbacks
    for off in (replace(defaults, titles=False), replace(defaults, small_model="")):
        assert await house.presets(off).for_titles() is None


async def test_titles_are_made_by_the_embedded_model_only_where_it_is_named(house):
    named = house.presets(Defaults("custom/a", small_model="little"), little=Preset("embedded"))
    assert (await named.for_titles()).name == "embedded"
    nobody = {name: AccountSection(api_base="http://127.0.0.1:9/v1") for name in LOCAL}
    resolver = ModelResolver(house._http, Keys(nobody, {}, {}, Path()), Prices(), house._embedded)
    presets = Presets(Settings(Agents(Defaults("embedded", small_model="auto"))), resolver)
    assert ((await presets.look("auto")).name, await presets.for_titles()) == ("embedded", None)
