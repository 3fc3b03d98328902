"""The request of /v1/chat/completions, read. https://platform.openai.com/docs/api-reference/chat/create"""

from typing import Annotated, Any

from msgspec import Meta, Struct

from ...core.prompt import Brought
from ...core.tool import ToolCall
from ..http.blobs import NO_CONTENT, Blob, blob_of, data_of, kept
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
    stops_of,
    told_of_format,
    wants_json,
)


class TextPart(Struct, tag_field="type", tag="text"):
    text: str


class ImageAddress(Struct):
    url: str


class ImagePart(Struct, tag_field="type", tag="image_url"):
    image_url: ImageAddress


class FileContent(Struct):
    file_data: str | None = None
    filename: str | None = None
    file_id: str | None = None


class FilePart(Struct, tag_field="type", tag="file"):
    file: FileContent


class RefusalPart(Struct, tag_field="type", tag="refusal"):
    refusal: str


class SystemMessage(Struct, tag_field="role", tag="system"):
    content: str | list[TextPart]


class DeveloperMessage(Struct, tag_field="role", tag="developer"):
    content: str | list[TextPart]


class UserMessage(Struct, tag_field="role", tag="user"):
    content: str | list[TextPart | ImagePart | FilePart]


class CalledFunction(Struct):
    name: str
    arguments: str = ""


class ChatToolCall(Struct):
    id: str
    function: CalledFunction


class AssistantMessage(Struct, tag_field="role", tag="assistant"):
    content: str | list[TextPart | RefusalPart] | None = None
    refusal: str | None = None
    tool_calls: list[ChatToolCall] | None = None


class ToolMessage(Struct, tag_field="role", tag="tool"):
    tool_call_id: str
    content: str | list[TextPart]


ChatMessage = SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage
AnyPart = TextPart | ImagePart | FilePart | RefusalPart


class FunctionTool(Struct):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ChatTool(Struct, tag_field="type", tag="function"):
    function: FunctionTool


class StreamOptions(Struct):
    include_usage: bool | None = None


class ChatCompletionRequest(Struct):
    messages: Annotated[list[ChatMessage], Meta(min_length=1, max_length=MOST_MESSAGES)]
    model: str = DEFAULT
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: list[ChatTool] | None = None
    tool_choice: str | dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=MOST_TOKENS)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1, le=MOST_TOKENS)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    reasoning_effort: str | None = None
    n: int | None = None
    stop: str | list[str] | None = None
    logprobs: bool | None = None
    audio: Any = None
    functions: Any = None


def read(plain: object) -> ClientRequest:
    """Raises Refused, with the name of the field."""
    request = shaped(plain, ChatCompletionRequest)
    _refuse_what_we_have_not(request)
    told = [_text(message.content) for message in request.messages if isinstance(message, _SYSTEM)]
    tools = [offered(t.function.name, t.function.description, t.function.parameters) for t in request.tools or ()]
    kept, must = chosen_tools(tools, request.tool_choice)
    told += [must, told_of_format(request.response_format)]
    return ClientRequest(
        tuple(_turn(message) for message in request.messages if not isinstance(message, _SYSTEM)),
        Brought(
            request.model,
            "\n\n".join(filter(None, told)),
            kept,
            request.max_completion_tokens or request.max_tokens or 0,
            request.temperature,
            request.top_p,
            effort_of(request.reasoning_effort),
        ),
        stream=bool(request.stream),
        usage=bool(request.stream_options and request.stream_options.include_usage),
        json=wants_json(request.response_format),
        stops=stops_of(request.stop),
    )


_SYSTEM = (SystemMessage, DeveloperMessage)


def _refuse_what_we_have_not(request: ChatCompletionRequest) -> None:
    """Better said than passed over: whoever asks for these counts on them."""
    asked = {
        "n": request.n not in (None, 1),
        "logprobs": bool(request.logprobs),
        "audio": request.audio is not None,
        "functions": bool(request.functions),
    }
    for name, wanted in asked.items():
        if wanted:
            raise Refused(400, "unsupported_parameter", f"everloop does not support {name}.", param=name)


def _turn(message: UserMessage | AssistantMessage | ToolMessage) -> ClientMessage:
    match message:
        case UserMessage(content=content):
            return ClientMessage("user", _pieces(content))
        case ToolMessage(tool_call_id=id, content=content):
            return ClientMessage("tool", (_text(content),), answers=id)
        case AssistantMessage(content=content, tool_calls=calls, refusal=refusal):
            asked = tuple(ToolCall(call.id, call.function.name, call.function.arguments) for call in calls or ())
            return ClientMessage("assistant", _pieces(content or refusal or ""), asked)


def _pieces(content: str | list[Any]) -> tuple[TextOrFile, ...]:
    return (content,) if isinstance(content, str) else tuple(_piece(part) for part in content)


def _piece(part: AnyPart) -> TextOrFile:
    match part:
        case TextPart(text=text) | RefusalPart(refusal=text):
            return text
        case ImagePart(image_url=image):
            return blob_of(image.url, "")
        case FilePart(file=file):
            return _file(file)


def _file(file: FileContent) -> Blob:
    if file.file_id and not file.file_data:
        return kept(file.file_id, file.filename or "")
    if not file.file_data:
        raise Refused(400, "file_not_found", NO_CONTENT)
    return data_of(file.file_data, file.filename or "")


def _text(content: str | list[TextPart]) -> str:
    return content if isinstance(content, str) else "\n".join(part.text for part in content)
