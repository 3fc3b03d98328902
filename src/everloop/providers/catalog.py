"""The hosts that answer, as rows of data. A new host is a new row; what differs inside a dialect is a field of it."""

from msgspec import Struct

from .dialects import Name
from .dialects.quirks import Quirks


class Host(Struct, frozen=True):
    """A place that answers. Without `key_variables` it needs no key; with a `port` it runs on this machine."""

    name: str
    base: str
    key_variables: tuple[str, ...] = ()
    model: str = ""  # what "auto" takes when this host's key is all there is: small or medium, with tools
    quirks: Quirks = Quirks()
    port: int = 0
    dialect: Name = "openai_chat"
    words: tuple[str, ...] = ()  # a bare model whose name holds one of these is one of this host's
    vendor: str = ""  # what gateways call it, if not by our name
    gateway: bool = False  # passes requests on to many vendors
    names_vendors: bool = False  # a gateway that wants vendor/model
    key_prefix: str = ""  # how its keys begin, if no other host's do
    login: bool = False  # is logged in to on a page, and has no key
    family: str = ""  # the row that it was made from, if the owner calls it by another name
    batch: int = 64  # texts that it turns into vectors at a time

    @property
    def key_variable(self) -> str:
        return next(iter(self.key_variables), "")


_NEW_LIMIT = Quirks(token_limit_field="max_completion_tokens")
# A local server fills what is left of its window by itself, and some refuse a limit that is larger than that.
_NO_LIMIT = Quirks(token_limit_field="", effort="")
_PLAIN = Quirks(effort="")
_THINKS = Quirks(reasoning_field="reasoning_content", effort="thinking")

_ROWS = (
    # Gateways, which stand before the vendors whose models they pass on.
    Host(
        "openrouter",
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        model="openrouter/auto",
        quirks=Quirks(reasoning_field="reasoning", effort="reasoning", cache_marks="anthropic/"),
        gateway=True,
        names_vendors=True,
        key_prefix="sk-or-",
    ),
    Host("aihubmix", "https://aihubmix.com/v1", ("AIHUBMIX_API_KEY",), "gpt-5.4-mini", gateway=True),
    Host(
        "siliconflow",
        "https://api.siliconflow.cn/v1",
        ("SILICONFLOW_API_KEY",),
        model="zai-org/GLM-5.3-Flash",
        quirks=Quirks(reasoning_field="reasoning_content", effort="enable_thinking"),
        gateway=True,
    ),
    # Vendors.
    Host(
        "anthropic",
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        model="claude-haiku-5-5",
        dialect="anthropic_messages",
        words=("claude",),
        key_prefix="sk-ant-",
    ),
    Host(
        "openai",
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        model="gpt-5.4-mini",
        quirks=Quirks(token_limit_field="max_completion_tokens", conversation_field="prompt_cache_key"),
        dialect="openai_responses",
        words=("gpt-", "chatgpt", "o1", "o3", "o4-", "codex", "text-embedding-3"),
    ),
    Host(
        "gemini",
        "https://generativelanguage.googleapis.com",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        model="gemini-3.8-flash",
        quirks=Quirks(token_limit_field=""),  # thoughts count there, so that a limit cuts answers off
        dialect="gemini",
        words=("gemini", "gemma"),
        vendor="google",
        key_prefix="AIza",
    ),
    Host(
        "deepseek",
        "https://api.deepseek.com/v1",
        ("DEEPSEEK_API_KEY",),
        model="deepseek-v4-flash",
        quirks=_THINKS,
        words=("deepseek",),
    ),
    Host(
        "zhipu",
        "https://open.bigmodel.cn/api/paas/v4",
        ("ZHIPU_API_KEY", "ZHIPUAI_API_KEY", "ZAI_API_KEY"),
        model="glm-5.3-flash",
        quirks=_THINKS,
        words=("glm", "zhipu"),
        vendor="z-ai",
    ),
    Host(
        "dashscope",
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        ("DASHSCOPE_API_KEY",),
        model="qwen-plus",
        quirks=Quirks(reasoning_field="reasoning_content", effort="enable_thinking"),
        words=("qwen", "qwq"),
        vendor="qwen",
        batch=10,
    ),
    Host(
        "moonshot",
        "https://api.moonshot.ai/v1",
        ("MOONSHOT_API_KEY",),
        model="kimi-k3",
        quirks=Quirks(reasoning_field="reasoning_content", effort=""),
        words=("kimi", "moonshot"),
        vendor="moonshotai",
    ),
    Host("minimax", "https://api.minimax.io/v1", ("MINIMAX_API_KEY",), "MiniMax-M2.7", _PLAIN, words=("minimax",)),
    Host(
        "mistral",
        "https://api.mistral.ai/v1",
        ("MISTRAL_API_KEY",),
        model="mistral-medium-latest",
        quirks=Quirks(streams_usage=False, short_call_ids=True, effort=""),
        words=("mistral", "magistral", "ministral", "codestral", "devstral", "pixtral"),
        vendor="mistralai",
    ),
    Host(
        "xai",
        "https://api.x.ai/v1",
        ("XAI_API_KEY",),
        model="grok-4.6",
        quirks=_NEW_LIMIT,
        words=("grok",),
        vendor="x-ai",
        key_prefix="xai-",
    ),
    Host(
        "groq",
        "https://api.groq.com/openai/v1",
        ("GROQ_API_KEY",),
        model="openai/gpt-oss-120b",
        quirks=_NEW_LIMIT,
        key_prefix="gsk_",
    ),
    Host(
        "cerebras",
        "https://api.cerebras.ai/v1",
        ("CEREBRAS_API_KEY",),
        model="gpt-oss-120b",
        quirks=_NEW_LIMIT,
        key_prefix="csk-",
    ),
    Host("together", "https://api.together.xyz/v1", ("TOGETHER_API_KEY",), "openai/gpt-oss-120b"),
    Host(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        ("FIREWORKS_API_KEY",),
        model="accounts/fireworks/models/gpt-oss-120b",
        key_prefix="fw_",
    ),
    Host(
        "nvidia",
        "https://integrate.api.nvidia.com/v1",
        ("NVIDIA_API_KEY",),
        model="openai/gpt-oss-120b",
        key_prefix="nvapi-",
    ),
    Host(
        "perplexity",
        "https://api.perplexity.ai",
        ("PERPLEXITY_API_KEY",),
        model="sonar",
        quirks=_PLAIN,
        words=("sonar",),
        key_prefix="pplx-",
    ),
    Host(
        "cohere",
        "https://api.cohere.ai/compatibility/v1",
        ("COHERE_API_KEY", "CO_API_KEY"),
        model="command-a-03-2025",
        words=("command-", "c4ai"),
    ),
    Host("deepinfra", "https://api.deepinfra.com/v1/openai", ("DEEPINFRA_API_KEY",), "openai/gpt-oss-120b"),
    Host("sambanova", "https://api.sambanova.ai/v1", ("SAMBANOVA_API_KEY",), "gpt-oss-120b"),
    Host(
        "volcengine",
        "https://ark.cn-beijing.volces.com/api/v3",
        ("ARK_API_KEY", "VOLCENGINE_API_KEY"),
        model="",
        quirks=_THINKS,
        words=("doubao",),
    ),
    Host("qianfan", "https://qianfan.baidubce.com/v2", ("QIANFAN_API_KEY",), "", _PLAIN, words=("ernie",)),
    Host("stepfun", "https://api.stepfun.com/v1", ("STEPFUN_API_KEY", "STEP_API_KEY"), "", _PLAIN, words=("step-",)),
    # Tokens that many machines have for other reasons: never taken by "auto".
    Host("huggingface", "https://router.huggingface.co/v1", ("HF_TOKEN",), key_prefix="hf_"),
    Host("github", "https://models.github.ai/inference", ("GITHUB_MODELS_TOKEN", "GITHUB_TOKEN")),
    # Addresses that are each customer's own.
    Host("azure", "", ("AZURE_OPENAI_API_KEY",), "", _NEW_LIMIT),
    Host(
        "bedrock",
        "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1",
        ("AWS_BEARER_TOKEN_BEDROCK",),
        model="",
        quirks=_NEW_LIMIT,
    ),
    Host("custom", "", ("CUSTOM_API_KEY",)),
    # Logins.
    Host(
        "openai-codex",
        "https://chatgpt.com/backend-api/codex",
        quirks=Quirks(token_limit_field="", conversation_field="prompt_cache_key"),
        dialect="openai_responses",
        login=True,
    ),
    Host("github-copilot", "https://api.githubcopilot.com", login=True),
    # This machine.
    Host("ollama", "http://127.0.0.1:11434/v1", quirks=_NO_LIMIT, port=11434),
    Host("lmstudio", "http://127.0.0.1:1234/v1", quirks=_NO_LIMIT, port=1234),
    Host("llamacpp", "http://127.0.0.1:8080/v1", quirks=_NO_LIMIT, port=8080),
    Host("vllm", "http://127.0.0.1:8000/v1", quirks=_NO_LIMIT, port=8000),
)

HOSTS: dict[str, Host] = {host.name: host for host in _ROWS}
