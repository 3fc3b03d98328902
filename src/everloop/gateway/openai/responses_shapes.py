"""The request of /v1/responses, read. https://platform.openai.com/docs/api-reference/responses/create"""

from typing import Annotated, Any

from msgspec import Meta, Struct

from ...core.prompt import Brought
from ...core.tool import ToolCall
from ..http.blobs import NO_CONTENT, blob_of, data_of, kept
from ..http.bodies import shaped
from ..http.errors import Refused
from .request import (
    DEFAULT,
    MOST_MESSAGES,
    MOST_TOKENS,
    ClientMessage,
    ClientRequest,
    TextOrFile,
    chosen_tools,
    effort_of,
    offered,
    told_of_format,
    wants_json,
)


class InputText(Struct, tag_field="type", tag="input_text"):
    text: str


class OutputText(Struct, tag_field="type", tag="output_text"):
    text: str


class RefusalText(Struct, tag_field="type", tag="refusal"):
    refusal: str


class InputImage(Struct, tag_field="type", tag="input_image"):
    image_url: str | None = None


class InputFile(Struct, tag_field="type", tag="input_file"):
    file_data: str | None = None
    file_url: str | None = None
    filename: str | None = None
    file_id: str | None = None


Content = InputText | OutputText | RefusalText | InputImage | InputFile


class MessageItem(Struct, tag_field="type", tag="message"):
    role: str
    content: str | list[Content]


class CallItem(Struct, tag_field="type", tag="function_call"):
    call_id: str
    name: str
    arguments: str


class ResultItem(Struct, tag_field="type", tag="function_call_output"):
    call_id: str
    output: str | list[InputText]


class ReasoningItem(Struct, tag_field="type", tag="reasoning"):
    """What a model thought in an earlier answer. It is its host's to read, and not shown to another."""


Item = MessageItem | CallItem | ResultItem | ReasoningItem


class ResponsesTool(Struct, tag_field="type", tag="function"):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class Reasoning(Struct):
    effort: str | None = None


class TextForm(Struct):
    format: dict[str, Any] | None = None


class ResponsesRequest(Struct):
    input: str | Annotated[list[Item], Meta(min_length=1, max_length=MOST_MESSAGES)]
    model: str = DEFAULT
    instructions: str | None = None
    previous_response_id: str | None = None
    stream: bool | None = None
    tools: list[ResponsesTool] | None = None
    tool_choice: str | dict[str, Any] | None = None
    text: TextForm | None = None
    reasoning: Reasoning | None = None
    max_output_tokens: Annotated[int, Meta(ge=1, le=MOST_TOKENS)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    metadata: dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    truncation: str | None = None
    user: str | None = None
    store: bool | None = None
    background: bool | None = None
    conversation: Any = None
    prompt: Any = None


# What a response says of its request where that has said nothing.
_SILENT: dict[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
}
_FURTHER = ("max_tool_calls", "prompt_cache_key", "safety_identifier", "service_tier", "store", "top_logprobs", "user")


def echo(plain: object) -> dict[str, Any]:
    """What a request that has been read says of itself, to the letter."""
    assert isinstance(plain, dict)
    given = {name: plain[name] for name in (*_SILENT, *_FURTHER) if plain.get(name) is not None}
    return {**_SILENT, **given}


def read(plain: object) -> tuple[ClientRequest, str]:
    """What is asked, and the response that it goes on from. Raises Refused, with the name of the field."""
    request = shaped(_with_types(plain), ResponsesRequest)
    for name, wanted in {
        "background": bool(request.background),
        "conversation": request.conversation is not None,
        "prompt": request.prompt is not None,
    }.items():
        if wanted:
            raise Refused(400, "unsupported_parameter", f"everloop does not support {name}.", param=name)
    items = [MessageItem("user", request.input)] if isinstance(request.input, str) else request.input
    system = [item for item in items if isinstance(item, MessageItem) and item.role in ("system", "developer")]
    tools = [offered(tool.name, tool.description, tool.parameters) for tool in request.tools or ()]
    kept, must = chosen_tools(tools, request.tool_choice)
    told = [request.instructions or "", *(_words(item.content) for item in system), must]
    told.append(told_of_format(request.text.format if request.text else None))
    brought = Brought(
        request.model,
        "\n\n".join(filter(None, told)),
        kept,
        request.max_output_tokens or 0,
        request.temperature,
        request.top_p,
        effort_of(request.reasoning.effort if request.reasoning else None),
    )
    turns = _turns([item for item in items if item not in system])
    json = wants_json(request.text.format if request.text else None)
    asking = ClientRequest(turns, brought, stream=bool(request.stream), named=True, json=json)
    return asking, request.previous_response_id or ""


def _with_types(plain: object) -> object:
    """A message may come without its type; it is the only item that has a role."""
    if not isinstance(plain, dict) or not isinstance(plain.get("input"), list):
        return plain
    items = [
        {"type": "message", **item} if isinstance(item, dict) and "role" in item and "type" not in item else item
        for item in plain["input"]
    ]
    return {**plain, "input": items}


def _turns(items: list[Item]) -> tuple[ClientMessage, ...]:
    """Calls are items of their own here: those that follow each other are one answer's."""
    turns: list[ClientMessage] = []
    for item in items:
        match item:
            case MessageItem(role="user", content=content):
                turns.append(ClientMessage("user", _pieces(content)))
            case MessageItem(role="assistant", content=content):
                turns.append(ClientMessage("assistant", _pieces(content)))
            case MessageItem(role=role):
                raise Refused(
                    400,
                    "invalid_request",
                    f"A message is of the user, the assistant or the system, not of {role!r}.",
                    param="input",
                )
            case CallItem(call_id=id, name=name, arguments=arguments):
                call = ToolCall(id, name, arguments)
                if turns and turns[-1].role == "assistant":
                    turns[-1] = ClientMessage("assistant", turns[-1].pieces, (*turns[-1].calls, call))
                else:
                    turns.append(ClientMessage("assistant", (), (call,)))
            case ResultItem(call_id=id, output=output):
                turns.append(ClientMessage("tool", (_words(output),), answers=id))
            case ReasoningItem():
                pass
    return tuple(turns)


def _pieces(content: str | list[Content]) -> tuple[TextOrFile, ...]:
    return (content,) if isinstance(content, str) else tuple(_piece(part) for part in content)


def _piece(part: Content) -> TextOrFile:
    match part:
        case InputText(text=text) | OutputText(text=text) | RefusalText(refusal=text):
            return text
        case InputImage(image_url=str(url)):
            return blob_of(url, "")
        case InputFile(file_data=str(data), filename=name):
            return data_of(data, name or "")
        case InputFile(file_url=str(url), filename=name):
            return blob_of(url, name or "")
        case InputFile(file_id=str(ref), filename=name):
            return kept(ref, name or "")
    raise Refused(400, "file_not_found", NO_CONTENT)


def _words(content: str | list[Content] | list[InputText]) -> str:
    pieces = _pieces(content) if isinstance(content, str) else tuple(_piece(part) for part in content)
    return "\n".join(piece for piece in pieces if isinstance(piece, str))
