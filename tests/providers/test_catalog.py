from urllib.parse import urlsplit

import pytest

from everloop.providers.catalog import HOSTS, Host
from everloop.providers.dialects import load
from everloop.providers.dialects.quirks import Quirks
from everloop.providers.prices import find_price, find_window

ASKED_FOR = (
    "openrouter aihubmix siliconflow anthropic openai deepseek gemini zhipu dashscope moonshot minimax vllm groq "
    "custom ollama lmstudio llamacpp mistral xai together fireworks cerebras nvidia perplexity cohere huggingface "
    "azure bedrock github volcengine qianfan stepfun openai-codex github-copilot"
)
LOCAL = {name: host.port for name, host in HOSTS.items() if host.port}
LOGINS = [host.name for host in HOSTS.values() if host.login]
KEYED = [host for host in HOSTS.values() if host.key_variables]


def test_the_hosts_that_people_ask_for_are_known():
    assert [name for name in ASKED_FOR.split() if name not in HOSTS] == []


def test_a_host_is_a_row():
    assert HOSTS["openai"] == Host(
        name="openai",
        base="https://api.openai.com/v1",
        key_variables=("OPENAI_API_KEY",),
        model=HOSTS["openai"].model,
        quirks=Quirks(token_limit_field="max_completion_tokens", conversation_field="prompt_cache_key"),
        dialect="openai_responses",
        words=("gpt-", "chatgpt", "o1", "o3", "o4-", "codex", "text-embedding-3"),
    )


def test_local_hosts_have_a_port_and_need_no_key():
    assert LOCAL == {"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000}
    assert [HOSTS[name].base for name in LOCAL] == [f"http://127.0.0.1:{port}/v1" for port in LOCAL.values()]
    assert [HOSTS[name].key_variable for name in LOCAL] == ["", "", "", ""]


def test_whoever_is_not_local_is_spoken_to_in_safety():
    bases = {host.name: host.base for host in HOSTS.values() if host.name not in LOCAL}
    assert {name for name, base in bases.items() if not base} == {"azure", "custom"}  # each customer's own
    assert {urlsplit(base).scheme for base in bases.values() if base} == {"https"}
    assert [name for name, base in bases.items() if base.endswith("/")] == []


def test_a_host_wants_a_key_or_a_login_or_runs_here_and_no_two_want_the_same_key():
    assert {*HOSTS} == {host.name for host in KEYED} | {*LOGINS} | {*LOCAL}
    variables = [variable for host in KEYED for variable in host.key_variables]
    assert len(variables) == len(set(variables))


def test_gateways_stand_before_the_vendors_whose_models_they_pass_on():
    assert [host.name for host in list(HOSTS.values())[:3]] == ["openrouter", "aihubmix", "siliconflow"]
    assert [host.name for host in HOSTS.values() if host.gateway] == ["openrouter", "aihubmix", "siliconflow"]


def test_a_key_that_begins_in_a_known_way_belongs_to_one_host():
    prefixes = [host.key_prefix for host in HOSTS.values() if host.key_prefix]
    assert [(a, b) for a in prefixes for b in prefixes if a is not b and a.startswith(b)] == []


def test_tokens_that_machines_have_for_other_reasons_are_never_taken_by_auto():
    assert (HOSTS["huggingface"].model, HOSTS["github"].model) == ("", "")


# Hosts of the price table that sell their default model at a price that nobody publishes in one number.
UNPRICED = {
    "openrouter": "openrouter/auto leaves the choice to the gateway",
    "sambanova": "the table has other models of it",
}


def test_what_auto_takes_has_a_price_where_the_hosts_prices_are_known():
    known = {"anthropic", "cerebras", "cohere", "deepseek", "fireworks", "gemini", "groq", "minimax", "mistral"}
    known |= {"moonshot", "openai", "openrouter", "perplexity", "sambanova", "together", "xai", "zhipu"}
    defaults = [HOSTS[name] for name in sorted(known)]
    assert {host.name for host in defaults if not find_price(host.name, host.model)} == set(UNPRICED)


def test_what_auto_takes_is_known_to_read_much_or_is_named_here():
    chosen = [host for host in HOSTS.values() if host.model]
    windows = {host.name: find_window(host.name, host.model) for host in chosen}
    assert {name for name, window in windows.items() if window is None} == {"openrouter", "mistral", "sambanova"}
    assert min(window for window in windows.values() if window) >= 100_000


@pytest.mark.parametrize("name", sorted({host.dialect for host in HOSTS.values()}))
def test_every_dialect_that_a_host_speaks_can_be_loaded_and_lists_its_models(name):
    dialect = load(name)
    assert dialect.NAME
    assert urlsplit(dialect.LISTING).path.endswith("/models")
