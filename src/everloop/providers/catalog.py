"""The hosts that speak chat completions, as rows of data. A new host is a new row."""

from msgspec import Struct

from .dialects import Name
from .dialects.quirks import Quirks


class Host(Struct, frozen=True):
    """A place that answers. Without `key_variable` it needs no key; with a `port` it runs on this machine."""

    name: str
    base: str
    key_variable: str = ""
    model: str = ""  # what "auto" takes when this host's key is all there is: small or medium, with tools
    quirks: Quirks = Quirks()
    port: int = 0
    dialect: Name = "openai_chat"


_NEW_LIMIT = Quirks(token_limit_field="max_completion_tokens")
# A local server fills what is left of its window by itself, and some refuse a limit that is larger than that.
_NO_LIMIT = Quirks(token_limit_field="")

_ROWS = (
    Host(
        "openai",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        "gpt-5-mini",
        Quirks(token_limit_field="max_completion_tokens", conversation_field="prompt_cache_key"),
    ),
    Host(
        "openrouter",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        "openrouter/auto",
        Quirks(reasoning_field="reasoning"),
    ),
    Host(
        "deepseek",
        "https://api.deepseek.com/v1",
        "DEEPSEEK_API_KEY",
        "deepseek-chat",
        Quirks(reasoning_field="reasoning_content"),
    ),
    Host("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", "openai/gpt-oss-120b", _NEW_LIMIT),
    Host(
        "mistral",
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        "mistral-medium-latest",
        Quirks(streams_usage=False, short_call_ids=True),
    ),
    Host("xai", "https://api.x.ai/v1", "XAI_API_KEY", "grok-4-fast", _NEW_LIMIT),
    Host("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", "openai/gpt-oss-120b"),
    Host(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        "FIREWORKS_API_KEY",
        "accounts/fireworks/models/gpt-oss-120b",
    ),
    Host("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", "gpt-oss-120b", _NEW_LIMIT),
    Host(
        "moonshot",
        "https://api.moonshot.ai/v1",
        "MOONSHOT_API_KEY",
        "kimi-k2-turbo-preview",
        Quirks(reasoning_field="reasoning_content"),
    ),
    Host(
        "zhipu",
        "https://open.bigmodel.cn/api/paas/v4",
        "ZHIPU_API_KEY",
        "glm-4.6",
        Quirks(reasoning_field="reasoning_content"),
    ),
    Host("dashscope", "https://dashscope.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY", "qwen-plus"),
    Host("siliconflow", "https://api.siliconflow.cn/v1", "SILICONFLOW_API_KEY", "deepseek-ai/DeepSeek-V3.2"),
    Host("aihubmix", "https://aihubmix.com/v1", "AIHUBMIX_API_KEY", "gpt-5-mini"),
    Host("minimax", "https://api.minimax.io/v1", "MINIMAX_API_KEY", "MiniMax-M2"),
    Host("nvidia", "https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY", "openai/gpt-oss-120b"),
    Host("perplexity", "https://api.perplexity.ai", "PERPLEXITY_API_KEY", "sonar"),
    Host(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        "gemini-flash-latest",
        Quirks(extra_content=True),
    ),
    Host("huggingface", "https://router.huggingface.co/v1", "HF_TOKEN", "openai/gpt-oss-120b"),
    Host("custom", "", "CUSTOM_API_KEY"),
    Host("ollama", "http://127.0.0.1:11434/v1", port=11434, quirks=_NO_LIMIT),
    Host("lmstudio", "http://127.0.0.1:1234/v1", port=1234, quirks=_NO_LIMIT),
    Host("llamacpp", "http://127.0.0.1:8080/v1", port=8080, quirks=_NO_LIMIT),
    Host("vllm", "http://127.0.0.1:8000/v1", port=8000, quirks=_NO_LIMIT),
)

HOSTS: dict[str, Host] = {host.name: host for host in _ROWS}
