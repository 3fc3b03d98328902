"""How much a model can read and say: the one place where that is decided, for requests and for whoever shows it.

What its host says counts, then the package's table. A setting of the owner stands above both, and is not known here.
"""

import re
from functools import lru_cache

from ..ports.provider import ModelLimits
from .choose import Choice
from .discovery import ListedModel
from .prices import find_window

UNKNOWN_WINDOW = 8192  # tokens, of a model of which nothing is known
SHARE = 4  # an answer has at most one of so many parts of the window


def limits_of(choice: Choice, listed: ListedModel | None = None) -> ModelLimits:
    """`listed` is what the host has said of this model, if it was asked."""
    host = choice.host
    assert host is not None, "the embedded model brings its own"
    window = (listed and listed.window) or find_window(host.family or host.name, choice.model)
    output = (listed and listed.output) or (None if host.port else find_output(choice.model))
    return ModelLimits(window, output)


def longest_answer(wanted: int, limits: ModelLimits) -> int:
    """The `max_tokens` of a request: what the settings want, as far as the model can say it and its window holds it."""
    window = limits.window or UNKNOWN_WINDOW
    return max(1, min(wanted, window // SHARE, limits.output or wanted))


# How long an answer can be, by the name that its maker gives a model; hosts refuse to be asked for more. Of models that
# are not here either nothing is known, or more than anybody asks for.
# https://platform.claude.com/docs/en/about-claude/models/overview, https://platform.openai.com/docs/models,
# https://ai.google.dev/gemini-api/docs/models, https://docs.cohere.com/docs/models
_OUTPUTS = (
    (r"claude-(instant|2|v2|3-(haiku|sonnet|opus))", 4096),
    (r"claude-3[.-]5-", 8192),
    (r"claude-opus-4([.-]1)?(-20|$|@)", 32_000),
    (r"claude-(3[.-]7-sonnet|sonnet-4|haiku-4|opus-4[.-]5)", 64_000),
    (r"gpt-(3\.5|4-turbo|4-1106|4-0125|4-vision|4o-2024-05-13)", 4096),
    (r"gpt-4(-0613|-0314)?$", 8192),
    (r"(chatgpt-|gpt-)4o", 16_384),
    (r"gpt-4\.1", 32_768),
    (r"gemini-(1\.|2\.0)", 8192),
    (r"gemini-2\.5", 65_536),
    (r"command-(r|light|nightly)", 4096),
    (r"command-a-", 8192),
)


@lru_cache(maxsize=256)
def find_output(model: str) -> int | None:
    """How many tokens an answer of the model can have, if that is known; gateways put its maker before its name."""
    name = model.lower().rpartition("/")[2].partition(":")[0]
    return next((limit for rule, limit in _OUTPUTS if re.search(rf"(?:^|\.){rule}", name)), None)
