"""What a chat-completions host means when it says no, by kind.

Hosts agree on little but the status: the same fault comes as a code, as a sentence, or wrapped in another host's
error. So the kind is found by status first where it is clear, and by the words of the whole body where it is not.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ...errors import (
    BadRequest,
    ContextOverflow,
    HostFailed,
    KeyRefused,
    NoVision,
    OutOfCredit,
    ProviderError,
    RateLimited,
    UnknownModel,
)

_OVERFLOW = (
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "maximum prompt length",
    "context window",
    "context length",
    "context size",
    "context limit",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input too long",
    "too many tokens",
    "too many input tokens",
    "input token count",
    "tokens exceed",
    "token limit exceeded",
    "range of input length",
    "reduce the length",
    "request too large",
    "tokens to keep from the initial prompt",
)
_BAD_KEY = (
    "invalid_api_key",
    "invalid api key",
    "incorrect api key",
    "api key not valid",
    "authentication_error",
    "api_key_invalid",
)
_NO_MODEL = (
    "model_not_found",
    "model not found",
    "model not exist",
    "model does not exist",
    "not a valid model",
    "unknown model",
    "invalid model:",
    "模型不存在",
)
_BLIND = (
    "image_url is only supported by certain models",  # OpenAI, Azure
    "not support image",  # LM Studio, MiniMax, Ollama's cloud: does not support images, image input
    "n't support image",
    "n't support the image",  # Bedrock: … field for user messages
    "not support file content",  # Azure, of a PDF
    "not support vision",
    "not support multimodal",
    "that support image input",  # OpenRouter, Xiaomi: 404, No endpoints found …
    "image input is not supported",
    "image inputs are not supported",  # xAI
    "image input is not enabled",  # Mistral
    "image input modality is not enabled",  # Gemini
    "image content is not supported",
    "image_url is not supported",
    "'image_url' is not supported",  # Infini
    "not a multimodal model",  # vLLM
    "at most 0 image",  # vLLM without its eyes
    "not a vlm",  # SiliconFlow
    "only 'text' content type is supported",  # mlx-lm
    "unexpected item type in content",  # DashScope
    "unknown variant `image_url`",  # DeepSeek
    "unknown variant `file`",
    "invalid type: sequence, expected a string",  # DeepSeek, of old
    "untagged enum chatcompletionrequestcontent",  # DeepSeek in between
    "content must be a string",  # Groq
    "content' : value must be a string",  # Groq
    "messages.content of type string",  # Ollama, of old: cannot unmarshal array into …
    "invalid value: file.",  # DashScope, of a PDF
    "unsupported content[].type",  # llama.cpp, of a PDF
    "unsupported mime type: application/pdf",  # Gemini
)
_BLIND_AND_BROKEN = ("you may need to provide the mmproj", "missing data required for image input")
_NO_CREDIT = ("insufficient_quota", "insufficient balance", "insufficient credits", "credit balance is too low")
_LIMITS = ("rate_limit", "rate limit", "too many requests")
_REFUSED_REQUEST = ("invalid_request", "invalid request", "bad_request", "invalid_argument")


def error_from(host: str, model: str, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """The error for an answer that is not a 200. Its sentence names host and model and what to do."""
    text = body[:20_000].decode("utf-8", "replace").lower()
    said = _quote(_message(body))
    if status == 401 or _has(text, _BAD_KEY):
        return KeyRefused(f"{host} refuses the key ({status}). Check the key that is set for {host}.")
    if status == 402 or _has(text, _NO_CREDIT):
        return OutOfCredit(f"The account at {host} has no credit left for {model}. Add credit, or choose another host.")
    if status == 403:
        return KeyRefused(f"{host} does not let this key use {model} (403){said}. Check the key and what it may do.")
    if status == 429:
        return _rate_limited(host, model, _wait_of(headers))
    if status == 413 or _has(text, _OVERFLOW):
        return ContextOverflow(
            f"The conversation is longer than {model} at {host} can read. Shorten it with /compact, begin a new one "
            f"with /new, or choose a model with a larger window."
        )
    # llama.cpp and Ollama answer 500 where they mean 400.
    if _has(text, _BLIND_AND_BROKEN) or (status < 500 and _has(text, _BLIND)):
        return NoVision(
            f"{model} at {host} cannot see images or read documents ({status}){said}. Choose a model that can with "
            "/model, or say it in words."
        )
    if status == 404 or _has(text, _NO_MODEL):
        return UnknownModel(
            f"{host} does not know the model {model}{said}. Check the model's name and the host's address."
        )
    if status < 500 or status == 501:  # not implemented, which it will not be in a minute either
        return BadRequest(f"{host} refuses the request for {model} ({status}){said}.")
    later = "" if "try again" in said.lower() else " Try again later."
    return HostFailed(f"{host} failed to answer for {model} ({status}){said}.{later}")


def error_in_stream(host: str, model: str, error: Any) -> ProviderError:
    """The error for an `error` object that came inside an answer that had begun well."""
    body = msgspec.json.encode({"error": error})
    return error_from(host, model, _status_of(error, body.decode().lower()), {}, body)


def _has(text: str, phrases: tuple[str, ...]) -> bool:
    return any(phrase in text for phrase in phrases)


def _status_of(error: Any, text: str) -> int:
    fields = error if isinstance(error, dict) else {}
    for code in (str(fields.get(key)) for key in ("status", "code", "status_code")):
        if code.isdigit() and 400 <= int(code) < 600:
            return int(code)
    if _has(text, _LIMITS):
        return 429
    return 400 if _has(text, _REFUSED_REQUEST) else 500


def _rate_limited(host: str, model: str, wait: float | None) -> RateLimited:
    when = "Try again later." if wait is None else f"It asks to wait {wait:g} s."
    return RateLimited(f"{host} accepts no more requests for {model} at the moment (429). {when}", wait)


def _wait_of(headers: Mapping[str, str]) -> float | None:
    lower = {name.lower(): value for name, value in headers.items()}
    milliseconds = _number(lower.get("retry-after-ms", ""))
    return _number(lower.get("retry-after", "")) if milliseconds is None else milliseconds / 1000


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*\d{1,9}(\.\d+)?\s*", text) else None


def _message(body: bytes) -> str:
    try:
        return _words(msgspec.json.decode(body))
    except msgspec.DecodeError:
        text = body[:2000].decode("utf-8", "replace").strip()
        return "" if text.startswith("<") else text


def _words(value: Any) -> str:
    """The sentence in an error, in whichever of the many shapes it has."""
    match value:
        case str():
            return value
        case [first, *_]:
            return _words(first)
        case {"metadata": {"raw": str(raw)}}:
            return raw
        case dict():
            keys = ("error", "message", "detail", "errors", "msg")
            return next((words for key in keys if (words := _words(value.get(key)))), "")
    return ""


def _quote(words: str) -> str:
    """Some hosts repeat the key with stars in its middle; even that is nobody's business."""
    words = " ".join(re.sub(r"\S*\*{3,}\S*", "…", words).split()).rstrip(".")
    return f": {words[:300]}" if words else ""
