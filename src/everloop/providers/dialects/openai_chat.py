"""The chat-completions dialect: a prompt to the bytes of a request, the bytes of an answer to a reply.

Everything here is pure. Media in a tool's result have no place there in this dialect, so they follow the results of
one answer as a message of the user's.
"""

from typing import Any

from ...core.message import Media, Message, Part, Text, text_of
from ...core.prompt import Prompt
from ...core.tool import ToolCall, ToolSpec
from . import signer
from .call_pieces import NAME, extras_in, short_id
from .chat_answer import ChatDecoder as decoder
from .quirks import Quirks
from .refusals import error_from
from .rendered import RenderedPrompt, content_of, note_of, rendered_for, to_json

__all__ = ["LISTING", "NAME", "decoder", "encode", "error_from", "headers", "path"]


LISTING = "/models"


def path(model: str) -> str:
    return "/chat/completions"


def headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def encode(prompt: Prompt, quirks: Quirks, host: str) -> bytes:
    """The body of a streaming request."""
    kept = _bring_up_to_date(prompt, quirks, host)
    messages = kept.messages.copy()
    if messages and quirks.cache_marks and _is_marked(prompt, quirks):
        messages[-1] = _marked(messages[-1])
    if prompt.tail:
        _add_tail(messages, prompt)
    return kept.head + b",".join(messages) + b"]}"


def _bring_up_to_date(prompt: Prompt, quirks: Quirks, host: str) -> RenderedPrompt:
    kept = rendered_for(prompt.transcript, (NAME, host, prompt.model, prompt.sees, quirks))
    messages = prompt.transcript.messages
    if kept.count < len(messages):
        _render_news(messages[kept.count :], kept, prompt, quirks, host)
    how = (prompt.conversation, prompt.max_tokens, prompt.temperature, prompt.top_p, prompt.effort)
    if kept.made_of != (made_of := (prompt.system, prompt.tools, how)):
        kept.made_of, kept.head = made_of, _render_head(prompt, quirks)
    return kept


def _render_head(prompt: Prompt, quirks: Quirks) -> bytes:
    head: dict[str, Any] = {"model": prompt.model, "stream": True}
    if quirks.streams_usage:
        head["stream_options"] = {"include_usage": True}
    if quirks.token_limit_field and prompt.max_tokens:
        head[quirks.token_limit_field] = prompt.max_tokens
    if prompt.temperature is not None:
        head["temperature"] = prompt.temperature
    if prompt.top_p is not None:
        head["top_p"] = prompt.top_p
    if prompt.effort and quirks.effort:
        head[quirks.effort] = _effort(prompt.effort, quirks)
    if quirks.conversation_field and prompt.conversation:
        head[quirks.conversation_field] = prompt.conversation
    if prompt.tools:
        head["tools"] = [_describe(tool) for tool in prompt.tools]
    system = to_json({"role": "system", "content": prompt.system}) if prompt.system else b""
    if system and _is_marked(prompt, quirks):
        system = _marked(system)
    return to_json(head)[:-1] + b',"messages":[' + system + (b"," if system else b"")


def _effort(effort: str, quirks: Quirks) -> Any:
    match quirks.effort:
        case "reasoning":
            return {"effort": effort}
        case "thinking":
            return {"type": "disabled" if effort == "none" else "enabled"}
        case "enable_thinking":
            return effort != "none"
    return effort


def _describe(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}


def _render_news(messages: list[Message], kept: RenderedPrompt, prompt: Prompt, quirks: Quirks, host: str) -> None:
    """A model is only asked when all calls of an answer have their results, so that the media of the last ones are
    due when the messages end."""
    shown: list[Part] = []
    for message in messages:
        if shown and message.role != "tool":
            kept.messages.append(_render_user(shown, prompt))
            shown = []
        match message.role:
            case "user":
                kept.messages.append(_render_user(message.parts, prompt))
            case "tool":
                kept.messages.append(_result(message, prompt, quirks))
                shown += [part for part in message.parts if isinstance(part, Media) and content_of(part, prompt)]
            case "assistant":
                kept.messages.append(to_json(_answer(message, quirks, host, prompt.model)))
    if shown:
        kept.messages.append(_render_user(shown, prompt))
    kept.count += len(messages)


def _render_user(parts: tuple[Part, ...] | list[Part], prompt: Prompt) -> bytes:
    if len(parts) == 1 and isinstance(parts[0], Text):
        return to_json({"role": "user", "content": parts[0].text})
    content = [_part(part, prompt) for part in parts]
    if all(part["type"] == "text" for part in content):  # some hosts and templates take nothing but a string
        return to_json({"role": "user", "content": "\n".join(part["text"] for part in content)})
    return to_json({"role": "user", "content": content})


def _part(part: Part, prompt: Prompt) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    data = content_of(part, prompt)
    if data is None:
        return {"type": "text", "text": note_of(part)}
    url = f"data:{part.mime};base64,{data}"
    if part.mime.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": part.name or "document", "file_data": url}}


def _result(message: Message, prompt: Prompt, quirks: Quirks) -> bytes:
    text = "\n".join(_told(part, prompt) for part in message.parts)
    return to_json({"role": "tool", "tool_call_id": _call_id(message.answers, quirks), "content": text})


def _told(part: Part, prompt: Prompt) -> str:
    if isinstance(part, Media) and content_of(part, prompt) is None:
        return note_of(part)
    return text_of((part,))


def _answer(message: Message, quirks: Quirks, host: str, model: str) -> dict[str, Any]:
    if not message.calls:
        return {"role": "assistant", "content": message.text}
    answer: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if quirks.reasoning_field and message.reasoning:
        answer[quirks.reasoning_field] = message.reasoning
    answer["tool_calls"] = [_call(call, quirks) for call in message.calls]
    if quirks.extra_content:
        extras = extras_in(message, signer(NAME, host, model))
        for call, extra in zip(answer["tool_calls"], extras, strict=False):
            call["extra_content"] = extra
    return answer


def _call(call: ToolCall, quirks: Quirks) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.args or "{}"}
    return {"id": _call_id(call.id, quirks), "type": "function", "function": function}


def _call_id(id: str, quirks: Quirks) -> str:
    if quirks.short_call_ids and not (len(id) == 9 and id.isascii() and id.isalnum()):
        return short_id(id)
    return id


def _add_tail(messages: list[bytes], prompt: Prompt) -> None:
    # The tail is written into the end of the last message. A message of its own would have to follow tool results,
    # where Mistral and strict templates refuse a user and most hosts a system message, and where templates that drop
    # the thoughts of earlier turns would take it for a new turn. What stands before the tail stays the same bytes.
    last = messages[-1] if prompt.transcript.messages and prompt.transcript.messages[-1].role != "assistant" else b""
    if last.endswith(b'"}'):
        messages[-1] = last[:-2] + to_json("\n\n" + prompt.tail)[1:] + b"}"
    elif last.endswith(b"]}"):
        messages[-1] = last[:-2] + b"," + to_json({"type": "text", "text": prompt.tail}) + b"]}"
    else:
        messages.append(to_json({"role": "user", "content": prompt.tail}))


def _is_marked(prompt: Prompt, quirks: Quirks) -> bool:
    return bool(quirks.cache_marks) and prompt.model.startswith(quirks.cache_marks)


def _marked(message: bytes) -> bytes:
    """A message whose content is a text, as one part that says that the prefix up to here is to be cached."""
    start, content, text = message.rpartition(b'"content":"')
    if not content or not message.endswith(b'"}') or text == b'"}':  # an empty text cannot be marked
        return message
    part = b'"content":[{"type":"text","text":"' + text[:-2] + b'","cache_control":{"type":"ephemeral"}}]}'
    return start + part
