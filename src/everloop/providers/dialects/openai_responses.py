"""OpenAI's Responses dialect: a prompt to the bytes of a request, the bytes of an answer to a reply.

Everything here is pure. Nothing is stored at the host: each request holds the whole conversation, and the model's
thoughts travel with it, encrypted, at the places where they stood.
"""

from typing import Any

from ...core.message import Media, Message, Part, Text
from ...core.prompt import Prompt
from ...core.tool import ToolCall, ToolSpec
from . import signer
from .call_pieces import short_id
from .quirks import Quirks
from .refusals import error_from
from .rendered import RenderedPrompt, content_of, note_of, rendered_for, to_json
from .responses_answer import BETWEEN, NAME, OutputItem, places_in
from .responses_answer import ResponsesDecoder as decoder

__all__ = ["LISTING", "NAME", "decoder", "encode", "error_from", "headers", "path"]

LISTING = "/models"
_LONGEST_ID = 64  # OpenAI refuses a longer call_id or prompt_cache_key


def path(model: str) -> str:
    return "/responses"


def headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def encode(prompt: Prompt, quirks: Quirks, host: str) -> bytes:
    """The body of a streaming request."""
    kept = _bring_up_to_date(prompt, quirks, host)
    items = kept.messages.copy()
    if prompt.tail:
        _add_tail(items, prompt)
    return kept.head + b",".join(items) + b"]}"


def _bring_up_to_date(prompt: Prompt, quirks: Quirks, host: str) -> RenderedPrompt:
    kept = rendered_for(prompt.transcript, (NAME, host, prompt.model, prompt.sees, quirks))
    reader = signer(NAME, host, prompt.model)
    for message in prompt.transcript.messages[kept.count :]:
        kept.messages += _render(message, prompt, reader)
        kept.count += 1
    made_of = (
        *(prompt.system, prompt.tools, prompt.conversation),
        *(prompt.max_tokens, prompt.temperature, prompt.top_p, prompt.effort),
    )
    if kept.made_of != made_of:
        kept.made_of = made_of
        kept.head = _render_head(prompt, quirks)
    return kept


def _render_head(prompt: Prompt, quirks: Quirks) -> bytes:
    head: dict[str, Any] = {"model": prompt.model, "stream": True, "store": False}
    if quirks.token_limit_field and prompt.max_tokens:
        head["max_output_tokens"] = prompt.max_tokens
    if prompt.temperature is not None:
        head["temperature"] = prompt.temperature
    if prompt.top_p is not None:
        head["top_p"] = prompt.top_p
    if prompt.effort and quirks.effort:
        head |= _effort(prompt.effort)
    if quirks.conversation_field and prompt.conversation:
        head["prompt_cache_key"] = _within_limit(prompt.conversation)
    if prompt.tools:
        head["tools"] = [_describe(tool) for tool in prompt.tools]
    if prompt.system:
        head["instructions"] = prompt.system
    return to_json(head)[:-1] + b',"input":['


def _effort(effort: str) -> dict[str, Any]:
    if effort == "none":
        return {"reasoning": {"effort": effort}}
    # A model that does not think refuses the whole request when it is asked for encrypted thoughts, so they are asked
    # for only along with an effort. Without one, OpenAI's own reasoning models send them unasked; what another host
    # does not send is not sent back.
    return {"reasoning": {"effort": effort, "summary": "auto"}, "include": ["reasoning.encrypted_content"]}


def _describe(tool: ToolSpec) -> dict[str, Any]:
    # Strict schemas must require every property, which ours need not; left out, `strict` would be true.
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema,
        "strict": False,
    }


def _render(message: Message, prompt: Prompt, reader: str) -> list[bytes]:
    match message.role:
        case "user":
            content = [_part(part, prompt) for part in message.parts]
            return [to_json({"role": "user", "content": content or [_text("")]})]
        case "tool":
            return [to_json(_result(message, prompt))]
        case "assistant":
            return _answer(message, reader)


def _text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def _part(part: Part, prompt: Prompt) -> dict[str, Any]:
    if isinstance(part, Text):
        return _text(part.text)
    data = content_of(part, prompt)
    if data is None:
        return _text(note_of(part))
    url = f"data:{part.mime};base64,{data}"
    if part.mime.startswith("image/"):
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    return {"type": "input_file", "filename": part.name or "document", "file_data": url}


def _result(message: Message, prompt: Prompt) -> dict[str, Any]:
    output: Any = message.text
    if any(isinstance(part, Media) for part in message.parts):
        output = [_part(part, prompt) for part in message.parts]
        if all(part["type"] == "input_text" for part in output):
            output = "\n".join(part["text"] for part in output)
    return {"type": "function_call_output", "call_id": _within_limit(message.answers), "output": output}


def _answer(message: Message, reader: str) -> list[bytes]:
    """The items of an answer in their order. A thought that nothing follows is left out: hosts refuse it."""
    items: list[bytes] = []
    thoughts: list[bytes] = []
    rest, calls = message.text, iter(message.calls)
    for place in _order_of(message, reader):
        item: dict[str, Any] | None = None
        match place.kind:
            case "thought":
                thoughts.append(bytes(place.item))
            case "text" if place.chars:
                item = _said(rest[: place.chars], place)
                rest = rest[place.chars :].removeprefix(BETWEEN)
            case "call" if call := next(calls, None):
                item = _call(call, place)
        if item is not None:
            items += [*thoughts, to_json(item)]
            thoughts = []
    return items


def _order_of(message: Message, reader: str) -> list[OutputItem]:
    """As the model gave it, if the answer is the model's own and still the same; or else text before calls."""
    places = places_in(message, reader)
    sizes = [place.chars for place in places if place.chars]
    size = sum(sizes) + len(BETWEEN) * max(0, len(sizes) - 1)
    slots = sum(place.kind == "call" for place in places)
    if places and size == len(message.text) and len(message.calls) <= slots:
        return places
    return [OutputItem("text", chars=len(message.text)), *(OutputItem("call") for _ in message.calls)]


def _said(text: str, place: OutputItem) -> dict[str, Any]:
    phase = {"phase": place.phase} if place.phase else {}
    if not place.id:
        return {"role": "assistant", "content": text} | phase
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": place.id, "role": "assistant", "status": "completed"}
    return message | phase | {"content": content}


def _call(call: ToolCall, place: OutputItem) -> dict[str, Any]:
    call_id = _within_limit(call.id)
    item = {"type": "function_call", "call_id": call_id, "name": call.name, "arguments": call.args or "{}"}
    return {"id": place.id} | item if place.id else item


def _within_limit(id: str) -> str:
    return id if len(id) <= _LONGEST_ID else short_id(id)


def _add_tail(items: list[bytes], prompt: Prompt) -> None:
    # The tail is written into the end of the last item. A user's message after tool results would begin a new turn,
    # and with it the host would put aside the thoughts of this one. What stands before the tail stays the same bytes.
    last = items[-1] if prompt.transcript.messages and prompt.transcript.messages[-1].role != "assistant" else b""
    if last.endswith(b'"}'):
        items[-1] = last[:-2] + to_json("\n\n" + prompt.tail)[1:] + b"}"
    elif last:
        items[-1] = last[:-2] + b"," + to_json(_text(prompt.tail)) + b"]}"
    else:
        items.append(to_json({"role": "user", "content": [_text(prompt.tail)]}))
