"""The providers as somebody is offered them who connects a model: the well-known first, servers of one's own apart."""

from typing import Literal

from msgspec import Struct

from .catalog import HOSTS, Host
from .choose import host_of
from .keys import Keys

OWN = "custom"  # another address, of a server that speaks OpenAI's language
Group = Literal["hosted", "local", "own"]

# What they are known by, in the order in which they are offered; those without a row here follow by their names.
_TITLES = {
    "openai": "OpenAI (GPT)",
    "anthropic": "Anthropic (Claude)",
    "gemini": "Google (Gemini)",
    "openrouter": "OpenRouter",
    "mistral": "Mistral",
    "deepseek": "DeepSeek",
    "xai": "xAI (Grok)",
    "groq": "Groq",
    "azure": "Azure OpenAI",
    "bedrock": "Amazon Bedrock",
    "aihubmix": "AiHubMix",
    "cerebras": "Cerebras",
    "cohere": "Cohere",
    "dashscope": "Alibaba (Qwen)",
    "deepinfra": "DeepInfra",
    "fireworks": "Fireworks",
    "github": "GitHub Models",
    "github-copilot": "GitHub Copilot",
    "huggingface": "Hugging Face",
    "minimax": "MiniMax",
    "moonshot": "Moonshot (Kimi)",
    "nvidia": "NVIDIA",
    "openai-codex": "ChatGPT (Codex)",
    "perplexity": "Perplexity",
    "qianfan": "Baidu (Ernie)",
    "sambanova": "SambaNova",
    "siliconflow": "SiliconFlow",
    "stepfun": "StepFun",
    "together": "Together",
    "volcengine": "Volcengine (Doubao)",
    "zhipu": "Zhipu (GLM)",
    "ollama": "Ollama",
    "lmstudio": "LM Studio",
    "llamacpp": "llama.cpp",
    "vllm": "vLLM",
}
_GROUPS: tuple[Group, ...] = ("hosted", "local", "own")


class OfferedProvider(Struct, frozen=True):
    """One to connect to. `address` is where it is asked now ("": it has to be told); `login`: it has no key, and is
    logged in to at a terminal; `ready`: nothing has to be given, for its key or login is there or it needs none."""

    name: str
    title: str
    group: Group
    address: str
    needs_key: bool
    login: bool
    ready: bool


def offered(keys: Keys, logins: frozenset[str] = frozenset()) -> list[OfferedProvider]:
    """Every provider of the catalogue and of the owner's naming. `logins` are those that somebody is logged in to."""
    names = sorted(dict.fromkeys((*HOSTS, *keys.accounts)), key=rank)
    rows = [_offer(name, keys, logins) for name in names]
    return sorted(rows, key=lambda row: _GROUPS.index(row.group))


def rank(name: str) -> tuple[int, str]:
    """Where a provider stands among the others."""
    known = [*_TITLES]
    return (known.index(name) if name in known else len(known), name)


def takes_key(name: str) -> bool:
    """Whether a key may be given for it: the servers of this machine need none, and a login is no key."""
    host = HOSTS.get(name)
    return host is None or not (host.port or host.login)


def _offer(name: str, keys: Keys, logins: frozenset[str]) -> OfferedProvider:
    host = host_of(name, keys) or HOSTS.get(name) or Host(name, "")
    account = keys.accounts.get(name)
    address = (account.api_base if account else "") or host.base
    wanted = takes_key(name) and name in HOSTS and name != OWN
    there = keys.has(host)
    return OfferedProvider(
        name=name,
        title=_TITLES.get(name, name),
        group="own" if name == OWN or name not in HOSTS else "local" if host.port else "hosted",
        address=address,
        needs_key=wanted,
        login=host.login,
        ready=bool(address) and (name in logins if host.login else there or not wanted),
    )
