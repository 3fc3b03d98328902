"""Which model a name stands for: as it is named, through a gateway, by a word in it, or at a server of this machine."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from aiohttp import web
from msgspec.structs import replace

from everloop.errors import ModelMissing, VaultLocked
from everloop.providers import local
from everloop.providers.catalog import HOSTS, Host
from everloop.providers.choose import Choice, LookNeeded, choose, explain_missing, host_of
from everloop.providers.keys import Keys
from everloop.settings import AccountSection

HERE = "http://127.0.0.1:9/v1"


def keys(
    environ: Mapping[str, str] = {}, vault: Mapping[str, str | VaultLocked] = {}, **accounts: AccountSection
) -> Keys:
    return Keys({name.replace("_", "-"): account for name, account in accounts.items()}, environ, vault, Path())


OPENROUTER = {"OPENROUTER_API_KEY": "sk-or-1"}
AIHUBMIX = {"AIHUBMIX_API_KEY": "hub"}


def test_a_model_that_is_named_is_taken_from_its_host():
    choice = choose("openai/gpt-5-mini", keys(openai=AccountSection("k1")))
    assert choice == Choice(HOSTS["openai"], "gpt-5-mini", HOSTS["openai"].base, "k1")
    assert choice.name == "openai/gpt-5-mini"


def test_a_model_name_may_hold_slashes():
    choice = choose("openrouter/meta/llama-4", keys(OPENROUTER))
    assert (choice.name, choice.model, choice.key) == ("openrouter/meta/llama-4", "meta/llama-4", "sk-or-1")


def test_the_settings_win_over_the_environment():
    choice = choose("openai/x", keys({"OPENAI_API_KEY": "other"}, openai=AccountSection("mine", api_base=HERE)))
    assert (choice.base, choice.key) == (HERE, "mine")


def test_headers_of_the_settings_go_along():
    assert choose("groq/x", keys(groq=AccountSection("k", headers={"X-Team": "a"}))).headers == {"X-Team": "a"}


def test_the_key_is_not_in_the_repr():
    assert (
        repr(choose("openai/x", keys(openai=AccountSection("secret"))))
        == "Choice('openai/x', 'https://api.openai.com/v1')"
    )


@pytest.mark.parametrize("name", HOSTS)
def test_every_host_can_be_moved_to_another_address(name):
    choice = choose(f"{name}/m", keys(**{name.replace("-", "_"): AccountSection("k", api_base=HERE)}))
    assert (choice.name, choice.base, choice.key) == (f"{name}/m", HERE, "k")


def test_a_host_of_ones_own_needs_no_key():
    assert choose("custom/x", keys(custom=AccountSection(api_base=HERE))) == Choice(HOSTS["custom"], "x", HERE)


def test_the_embedded_models_have_no_host():
    assert choose("embedded", keys()) == Choice(None, "")
    assert choose("embedded/smollm2", keys()) == Choice(None, "smollm2")
    assert (choose("embedded", keys()).name, Choice(None, "smollm2").name) == ("embedded", "embedded/smollm2")


# Gateways


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("anthropic/claude-x", "anthropic/claude-x"),
        ("gemini/gemini-x", "google/gemini-x"),
        ("zhipu/glm-x", "z-ai/glm-x"),
        ("dashscope/qwen-x", "qwen/qwen-x"),
        ("moonshot/kimi-x", "moonshotai/kimi-x"),
        ("mistral/mistral-x", "mistralai/mistral-x"),
        ("xai/grok-x", "x-ai/grok-x"),
        ("openai/gpt-x", "openai/gpt-x"),
    ],
)
def test_a_host_without_a_key_is_reached_through_the_gateway_by_the_vendors_name(name, there):
    assert choose(name, keys(OPENROUTER)) == Choice(HOSTS["openrouter"], there, HOSTS["openrouter"].base, "sk-or-1")


def test_a_gateway_that_does_not_ask_for_the_vendor_is_given_the_models_own_name():
    assert choose("anthropic/claude-x", keys(AIHUBMIX)).name == "aihubmix/claude-x"


def test_a_host_that_has_a_key_is_asked_itself():
    environ = OPENROUTER | {"ANTHROPIC_API_KEY": "a"}
    assert choose("anthropic/claude-x", keys(environ)).name == "anthropic/claude-x"
    assert choose("ollama/qwen3", keys(environ)).name == "ollama/qwen3"


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("claude-x", "anthropic/claude-x"),
        ("gemini-x", "google/gemini-x"),
        ("meta-llama/llama-4", "meta-llama/llama-4"),
        ("google/gemini-x", "google/gemini-x"),
        ("anything", "anything"),
    ],
)
def test_bare_names_go_through_the_gateway_even_when_the_vendor_has_a_key(name, there):
    vendors = {"ANTHROPIC_API_KEY": "a", "GEMINI_API_KEY": "g"}
    assert choose(name, keys(OPENROUTER | vendors)).name == f"openrouter/{there}"


def test_of_two_gateways_the_first_of_the_catalogue_is_taken():
    assert choose("claude-x", keys(AIHUBMIX | OPENROUTER)).name == "openrouter/anthropic/claude-x"
    assert choose("claude-x", keys(AIHUBMIX | {"SILICONFLOW_API_KEY": "s"})).name == "aihubmix/claude-x"


def test_a_gateway_that_is_named_is_not_reached_through_another():
    with pytest.raises(ModelMissing, match="openrouter/meta/llama-4 needs a key"):
        choose("openrouter/meta/llama-4", keys(AIHUBMIX))


def test_a_gateway_that_has_only_an_address_is_one_too():
    choice = choose("claude-x", keys(openrouter=AccountSection(api_base=HERE)))
    assert (choice.name, choice.base) == ("openrouter/anthropic/claude-x", HERE)


def test_a_gateway_is_known_by_its_key_under_any_name():
    choice = choose("claude-x", keys(custom=AccountSection("sk-or-v1-abc")))
    assert (choice.name, choice.base) == ("custom/anthropic/claude-x", HOSTS["openrouter"].base)


# Bare names


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("claude-sonnet-4-20250514", "anthropic"),
        ("gpt-5.4-mini", "openai"),
        ("o3", "openai"),
        ("deepseek-chat", "deepseek"),
        ("gemini-3.8-flash", "gemini"),
        ("glm-5.3", "zhipu"),
        ("Qwen-Plus", "dashscope"),
        ("kimi-k3", "moonshot"),
        ("MiniMax-M2.7", "minimax"),
        ("codestral-latest", "mistral"),
        ("grok-4.6", "xai"),
        ("sonar-pro", "perplexity"),
        ("command-a-03-2025", "cohere"),
        ("doubao-seed", "volcengine"),
        ("ernie-5", "qianfan"),
        ("step-3", "stepfun"),
    ],
)
def test_a_bare_name_tells_its_vendor(name, host):
    row = HOSTS[host]
    assert choose(name, keys({row.key_variable: "k"})) == Choice(row, name, row.base, "k")


def test_of_two_vendors_whose_words_it_holds_the_one_with_a_key_is_taken():
    assert choose("deepseek-r1-distill-qwen-32b", keys({"DASHSCOPE_API_KEY": "k"})).host == HOSTS["dashscope"]


def test_the_settings_of_a_vendor_hold_for_bare_names_too():
    moved = choose("gpt-5", keys(openai=AccountSection(api_base=HERE)))
    assert (moved.host.dialect, moved.base) == ("openai_chat", HERE)
    told = choose("gpt-5", keys(openai=AccountSection("k", dialect="openai_chat")))
    assert (told.host.dialect, told.base) == ("openai_chat", HOSTS["openai"].base)


@pytest.mark.parametrize("name", ["my-own-model", "claude-x", "Qwen/Qwen3-8B"])
def test_what_no_key_answers_for_is_looked_for_on_this_machine(name):
    assert choose(name, keys()) == LookNeeded(name)


def test_a_name_with_an_owner_is_no_bare_name():
    assert choose("Qwen/Qwen3-8B", keys({"DASHSCOPE_API_KEY": "k"})) == LookNeeded("Qwen/Qwen3-8B")


# Providers of the owner's own


def test_a_key_tells_whose_it_is():
    choice = choose("custom/claude-x", keys(custom=AccountSection("sk-ant-1")))
    anthropic = HOSTS["anthropic"]
    assert choice == Choice(
        replace(anthropic, name="custom", family="anthropic"), "claude-x", anthropic.base, "sk-ant-1"
    )


@pytest.mark.parametrize("host", [host for host in HOSTS.values() if host.key_prefix], ids=lambda host: host.name)
def test_every_way_in_which_keys_begin_is_known(host):
    assert choose("mine/m", keys(mine=AccountSection(f"{host.key_prefix}abc"))).base == host.base


@pytest.mark.parametrize(
    "host",
    [host for host in HOSTS.values() if host.base and not host.port and not host.login],
    ids=lambda host: host.name,
)
def test_an_address_of_a_known_host_is_spoken_to_as_that_host(host):
    found = host_of("work", keys(work=AccountSection("k", api_base=host.base)))
    spoken = "openai_chat" if host.name == "openai" else host.dialect
    assert found == replace(host, name="work", dialect=spoken, family=host.name)


def test_an_address_says_more_than_a_key():
    choice = choose("work/m", keys(work=AccountSection("sk-ant-1", api_base=HERE)))
    assert choice == Choice(Host("work", ""), "m", HERE, "sk-ant-1")


def test_an_endpoint_of_ones_own_speaks_the_dialect_that_it_is_told():
    plain = choose("work/m", keys(work=AccountSection(api_base=HERE)))
    told = choose("work/m", keys(work=AccountSection(api_base=HERE, dialect="anthropic_messages")))
    assert (plain.host.dialect, told.host.dialect) == ("openai_chat", "anthropic_messages")


def test_an_endpoint_of_ones_own_is_not_given_the_key_of_another():
    assert choose("work/m", keys({"CUSTOM_API_KEY": "c"}, work=AccountSection(api_base=HERE))).key == ""


def test_an_endpoint_of_ones_own_may_have_its_key_in_the_vault():
    assert choose("work/m", keys({}, {"work": "v"}, work=AccountSection(api_base=HERE))).key == "v"


@pytest.mark.parametrize("dialect", [None, "openai_responses"])
def test_openai_at_another_address_speaks_chat_completions_unless_it_is_told_otherwise(dialect):
    choice = choose("openai/m", keys(openai=AccountSection("k", api_base=HERE, dialect=dialect)))
    assert choice.host.dialect == (dialect or "openai_chat")
    assert choose("openai/m", keys(openai=AccountSection("k"))).host.dialect == "openai_responses"


# What is missing


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "openai/gpt-5",
            "openai/gpt-5 needs a key: set OPENAI_API_KEY or providers.openai.api_key, "
            "or keep it in the vault with: everloop models key set openai",
        ),
        (
            "groq/x",
            "groq/x needs a key: set GROQ_API_KEY or providers.groq.api_key, "
            "or keep it in the vault with: everloop models key set groq",
        ),
    ],
)
def test_without_a_key_a_sentence_says_what_to_do(name, says):
    with pytest.raises(ModelMissing) as raised:
        choose(name, keys())
    assert str(raised.value) == says


@pytest.mark.parametrize(
    ("name", "account"),
    [
        ("azure", AccountSection("k")),
        ("azure", AccountSection()),
        ("custom", AccountSection("k")),
        ("custom", AccountSection()),
        ("my-work", AccountSection("k")),
    ],
)
def test_without_an_address_a_sentence_says_what_to_do(name, account):
    says = f"{name}/m has no address: set providers.{name}.api_base in the settings"
    with pytest.raises(ModelMissing) as raised:
        choose(f"{name}/m", keys(**{name.replace("-", "_"): account}))
    assert str(raised.value) == says
    if name in HOSTS:
        with pytest.raises(ModelMissing) as raised:
            choose(f"{name}/m", keys())
        assert str(raised.value) == says


LOCKED = VaultLocked("key:groq in the vault cannot be read: it was locked with a passphrase. Set it in …")


def test_a_key_that_the_vault_does_not_give_away_is_missed_with_the_vaults_own_words():
    with pytest.raises(ModelMissing) as raised:
        choose("groq/x", keys({}, {"groq": LOCKED}))
    assert str(raised.value) == f"groq/x needs its key. {LOCKED}"
    assert choose("groq/x", keys({"GROQ_API_KEY": "k"}, {"groq": LOCKED})).key == "k"
    assert choose("auto", keys({}, {"groq": LOCKED, "deepseek": "v"})).name == f"deepseek/{HOSTS['deepseek'].model}"


UNKNOWN = "the model {!r} is not known: write provider/model, for example openai/gpt-5.4-mini."
ALL = " All providers are listed by: everloop models --all"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "claude-x",
            "claude-x needs a key: set ANTHROPIC_API_KEY or providers.anthropic.api_key, "
            "or keep it in the vault with: everloop models key set anthropic",
        ),
        (
            "openai",
            "openai needs a key: set OPENAI_API_KEY or providers.openai.api_key, "
            "or keep it in the vault with: everloop models key set openai",
        ),
        ("azure", "azure is a provider: write azure/MODEL, and see its models with: everloop models azure"),
        ("ollama", "ollama is a provider: write ollama/MODEL, and see its models with: everloop models ollama"),
        ("my-own-model", UNKNOWN.format("my-own-model") + ALL),
        ("nosuch/gpt-5", UNKNOWN.format("nosuch/gpt-5") + ALL),
        ("opnai/gpt-5", UNKNOWN.format("opnai/gpt-5") + " Did you mean openai?" + ALL),
        ("embeded/smollm2", UNKNOWN.format("embeded/smollm2") + " Did you mean embedded?" + ALL),
        ("at-wrk/m", UNKNOWN.format("at-wrk/m") + " Did you mean at-work?" + ALL),
    ],
)
def test_a_name_that_nobody_has_is_explained_by_its_vendor_or_by_how_to_write_it(name, says):
    assert str(explain_missing(name, keys(at_work=AccountSection(api_base=HERE)))) == says


# A provider alone


@pytest.mark.parametrize("name", [name for name, host in HOSTS.items() if host.model])
def test_a_provider_alone_is_its_usual_model(name):
    assert choose(name, keys({HOSTS[name].key_variable: "k"})).name == f"{name}/{HOSTS[name].model}"


def test_a_provider_alone_is_the_model_that_the_settings_name_for_it():
    own = keys(groq=AccountSection("g", model="mine"), at_work=AccountSection(api_base=HERE, model="ours"))
    assert [choose(name, own).name for name in ("groq", "at-work")] == ["groq/mine", "at-work/ours"]


def test_a_provider_alone_without_a_key_is_asked_for_through_a_gateway_or_looked_for_on_this_machine():
    through = choose("deepseek", keys({"OPENROUTER_API_KEY": "k"}))
    assert through.name == f"openrouter/deepseek/{HOSTS['deepseek'].model}"
    assert choose("mistral", keys()) == LookNeeded("mistral")


# Auto


def test_auto_takes_what_is_configured_before_a_key_in_the_environment():
    mine = AccountSection(api_base=HERE, model="mine")
    assert choose("auto", keys({"OPENAI_API_KEY": "k"}, custom=mine)).name == "custom/mine"
    assert choose("auto", keys({"OPENAI_API_KEY": "k"}, groq=AccountSection("g"))).name == f"groq/{HOSTS['groq'].model}"


@pytest.mark.parametrize("name", ["custom", "my-work"])
def test_auto_does_not_pass_by_an_address_for_which_no_model_is_named_unless_there_is_a_key(name):
    here = {name.replace("-", "_"): AccountSection(api_base=HERE)}
    with pytest.raises(ModelMissing) as raised:
        choose("auto", keys({}, **here))
    assert str(raised.value) == (
        f"{name} has an address and no model: set providers.{name}.model, or name it as "
        f'agents.defaults.model = "{name}/MODEL"'
    )
    assert choose("auto", keys({"OPENAI_API_KEY": "k"}, **here)).name == f"openai/{HOSTS['openai'].model}"


def test_auto_takes_what_is_configured_with_a_model_before_it_misses_one():
    assert (
        choose("auto", keys(my_work=AccountSection(api_base=HERE), groq=AccountSection("g"))).name
        == f"groq/{HOSTS['groq'].model}"
    )


@pytest.mark.parametrize("name", [name for name, host in HOSTS.items() if host.port])
def test_auto_asks_a_local_server_that_was_moved_what_it_has(name):
    moved = {name: AccountSection(api_base=HERE)}
    assert choose("auto", keys(**moved)) == LookNeeded("")
    assert choose("auto", keys({"GROQ_API_KEY": "k"}, **moved)).name == f"groq/{HOSTS['groq'].model}"


@pytest.mark.parametrize("host", [host for host in HOSTS.values() if host.model], ids=lambda host: host.name)
def test_auto_takes_the_host_whose_key_is_there(host):
    choice = choose("auto", keys({host.key_variables[-1]: "k"}))
    assert choice == Choice(host, host.model, host.base, "k")


def test_auto_takes_a_key_of_the_vault_and_a_vendor_before_a_gateway():
    assert choose("auto", keys(OPENROUTER, {"deepseek": "v"})).name == f"deepseek/{HOSTS['deepseek'].model}"


def test_auto_looks_on_this_machine_when_there_is_no_key_or_only_one_for_other_reasons():
    assert choose("auto", keys({"GITHUB_TOKEN": "t", "HF_TOKEN": "t"})) == LookNeeded("")


# Servers of this machine


@pytest.fixture
def ollama(serve):
    """A server at another port that stands in for Ollama."""

    async def start(answer: str, status: int = 200, name: str = "ollama") -> Host:
        async def handler(request: web.BaseRequest) -> web.Response:
            return web.Response(text=answer, status=status if request.path == "/v1/models" else 404)

        base = await serve(handler) + "/v1"
        return replace(HOSTS[name], base=base)

    return start


LISTED = '{"object":"list","data":[{"id":"nomic-embed-text"},{"id":"qwen3:8b"},{"id":"my-own-model"}]}'


async def test_a_local_server_is_found_by_asking_for_its_models(ollama, http):
    here = await ollama(LISTED)
    assert await local.find_local(http, "", [here]) == Choice(here, "qwen3:8b", here.base)


async def test_a_bare_name_is_found_at_the_first_server_that_has_it(ollama, http):
    first, second = await ollama('{"data":[{"id":"qwen3:8b"}]}'), await ollama(LISTED, name="lmstudio")
    found = await local.find_local(http, "my-own-model", [first, second])
    assert (found, found.name) == (Choice(second, "my-own-model", second.base), "lmstudio/my-own-model")
    assert await local.find_local(http, "nomic-embed-text", [first, second]) is not None
    assert await local.find_local(http, "another", [first, second]) is None


@pytest.mark.parametrize(
    ("body", "status"), [('{"models": []}', 200), ("<html>", 200), ('{"data":[]}', 200), (LISTED, 500)]
)
async def test_someone_else_on_that_port_is_passed_by(ollama, http, body, status):
    assert await local.find_local(http, "", [await ollama(body, status)]) is None


async def test_where_nobody_listens_nothing_is_found(http):
    assert await local.find_local(http, "", [Host("ollama", "http://127.0.0.1:9/v1", port=9)]) is None
