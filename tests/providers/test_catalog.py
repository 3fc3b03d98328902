from urllib.parse import urlsplit

from everloop.providers.catalog import HOSTS, Host
from everloop.providers.dialects.quirks import Quirks


def test_the_hosts_that_speak_chat_completions_are_known():
    assert " ".join(HOSTS) == (
        "openai openrouter deepseek groq mistral xai together fireworks cerebras moonshot zhipu dashscope siliconflow "
        "aihubmix minimax nvidia perplexity gemini huggingface custom ollama lmstudio llamacpp vllm"
    )


def test_a_host_is_a_row():
    assert HOSTS["openai"] == Host(
        name="openai",
        base="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        model=HOSTS["openai"].model,
        quirks=Quirks(token_limit_field="max_completion_tokens", conversation_field="prompt_cache_key"),
    )


def test_local_hosts_have_a_port_and_need_no_key():
    local = {name: host.port for name, host in HOSTS.items() if host.port}
    assert local == {"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000}
    assert [HOSTS[name].base for name in local] == [f"http://127.0.0.1:{port}/v1" for port in local.values()]
    assert [HOSTS[name].key_variable for name in local] == ["", "", "", ""]


def test_every_other_host_has_a_safe_address_a_key_of_its_own_and_a_model():
    others = [host for host in HOSTS.values() if not host.port and host.name != "custom"]
    assert {urlsplit(host.base).scheme for host in others} == {"https"}
    assert [host.name for host in others if host.base.endswith("/") or not host.model] == []
    assert len({host.key_variable for host in others} - {""}) == len(others)
