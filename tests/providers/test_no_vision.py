"""A host that says that a model takes no images is understood; the words are those of real hosts."""

from typing import get_args

import pytest

from everloop.core.message import Media, Message, Text, said
from everloop.core.prompt import Prompt, Transcript
from everloop.errors import BadRequest, ContextOverflow, HostFailed, KeyRefused, NoVision, RateLimited, UnknownModel
from everloop.ports.provider import Delta, Reply
from everloop.providers import dialects
from everloop.providers.dialects.refusals import error_from, error_in_stream
from everloop.providers.router import Candidate

HOSTS = {
    "OpenAI": (400, '{"error":{"message":"Invalid content type. image_url is only supported by certain models.",'
               '"type":"invalid_request_error","param":"messages.[1].content.[1].type","code":null}}'),
    "Azure": (400, '{"error":{"message":"Invalid Value: \'file\'. This model does not support file content types.",'
              '"type":"invalid_request_error"}}'),
    "OpenRouter": (404, '{"error":{"message":"No endpoints found that support image input","code":404}}'),
    "OpenRouter, of another": (400, '{"error":{"message":"Provider returned error","code":400,"metadata":'
                               '{"raw":"This model does not support image inputs","provider_name":"x"}}}'),
    "Xiaomi": (404, '{"error":{"code":"404","message":"No endpoints found that support image input","param":""}}'),
    "Ollama": (400, '{"error":"this model is missing data required for image input"}'),
    "Ollama before": (500, '{"error":{"message":"this model is missing data required for image input",'
                      '"type":"api_error","param":null,"code":null}}'),
    "Ollama long before": (400, '{"error":{"message":"json: cannot unmarshal array into Go struct field '
                           'Message.messages.content of type string"}}'),
    "Ollama's cloud": (400, '{"error":"this model does not support image input (ref: b8bd630e)"}'),
    "llama.cpp": (500, '{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, '
                  'you may need to provide the mmproj","type":"server_error"}}'),
    "llama.cpp, a PDF": (400, '{"error":{"code":400,"message":"unsupported content[].type"}}'),
    "LM Studio": (400, '{"error":"Model does not support images. Please use a model that does."}'),
    "vLLM": (400, '{"object":"error","message":"m is not a multimodal model","type":"BadRequestError","code":400}'),
    "vLLM, told so": (400, '{"error":{"type":"BadRequestError","message":"At most 0 image(s) may be provided in one '
                      'prompt. Set `--limit-mm-per-prompt` to increase this limit."}}'),
    "mlx-lm": (404, "Only 'text' content type is supported."),
    "Mistral": (400, '{"object":"Error","message":"Image input is not enabled for this model",'
                '"type":"invalid_request_error","code":3051}'),
    "xAI": (400, '{"code":"invalid-argument","error":"Image inputs are not supported by this model."}'),
    "DeepSeek": (400, '{"error":{"message":"Failed to deserialize the JSON body into the target type: messages[7]: '
                 'unknown variant `image_url`, expected `text` at line 1 column 114708",'
                 '"type":"invalid_request_error","param":null,"code":"invalid_request_error"}}'),
    "DeepSeek before": (422, "Failed to deserialize the JSON body into the target type: messages[2]: data did not "
                        "match any variant of untagged enum ChatCompletionRequestContent at line 1 column 15700"),
    "DeepSeek long before": (422, "Failed to deserialize the JSON body into the target type: messages[2]: invalid "
                             "type: sequence, expected a string at line 1 column 2901"),
    "Groq": (400, '{"error":{"message":"\'messages.0\' : for \'role:user\' the following must be satisfied'
             '[(\'messages.0.content\' : value must be a string)]","type":"invalid_request_error"}}'),
    "Groq before": (400, '{"error":{"message":"messages[0].content must be a string"}}'),
    "SiliconFlow": (400, '{"code":20041,"message":"The model is not a VLM (Vision Language Model). Please use '
                    'text-only prompts.","data":null}'),
    "DashScope, a PDF": (400, '{"error":{"message":"Invalid value: file. Supported values are: '
                         '\'text\',\'image_url\',\'video_url\' and \'video\'."}}'),
    "Infini": (400, '{"error":{"message":"message type \'image_url\' is not supported for model \'glm-5\'"}}'),
    "Gemini": (400, '[{"error":{"code":400,"message":"Image input modality is not enabled for models/gemma",'
               '"status":"INVALID_ARGUMENT"}}]'),
    "Bedrock": (400, '{"message":"This model doesn\'t support the image field for user messages. Remove image and try '
                'again."}'),
}  # fmt: skip


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_says_that_a_model_cannot_see(host: str):
    status, body = HOSTS[host]
    error = error_from("host", "m", status, {}, body.encode())
    assert type(error) is NoVision
    assert str(error).startswith(f"m at host cannot see images or read documents ({status}): ")
    assert str(error).endswith(". Choose a model that can with /model, or say it in words.")


def test_the_sentence_names_model_and_host_and_what_to_do():
    assert str(error_from("openrouter", "z/glm", *_with_headers("OpenRouter"))) == (
        "z/glm at openrouter cannot see images or read documents (404): No endpoints found that support image input. "
        "Choose a model that can with /model, or say it in words."
    )


def _with_headers(host: str) -> tuple[int, dict[str, str], bytes]:
    status, body = HOSTS[host]
    return status, {}, body.encode()


@pytest.mark.parametrize("dialect", get_args(dialects.Name))
def test_every_dialect_understands_it(dialect: str):
    body = b'{"type":"error","error":{"code":400,"type":"invalid_request_error","message":"does not support images"}}'
    assert type(dialects.load(dialect).error_from("host", "m", 400, {}, body)) is NoVision


def test_it_is_understood_inside_of_a_stream_too():
    error = {"code": 404, "message": "No endpoints found that support image input"}
    assert type(error_in_stream("host", "m", error)) is NoVision


@pytest.mark.parametrize(
    "status, text, kind",
    [
        (401, "does not support images", KeyRefused),
        (403, "does not support images", KeyRefused),
        (429, "does not support images", RateLimited),
        (413, "does not support images", ContextOverflow),
        (500, "does not support images", HostFailed),
        (400, "prompt is too long, and the model does not support images", ContextOverflow),
        (404, "No endpoints found for z/glm", UnknownModel),
        (404, "No endpoints found that support tool use", UnknownModel),
        (400, "Invalid type for 'temperature': expected a string, but got null", BadRequest),
        (400, "Could not process image", BadRequest),
    ],
)
def test_other_faults_keep_their_kind(status: int, text: str, kind: type[Exception]):
    assert type(error_from("host", "m", status, {}, text.encode())) is kind


CAT = Media("file:1", "image/png", "cat.png")
LOOK = Message("user", (Text("what is this?"), CAT))


class Blind:
    """Refuses what it is shown, as a host does, and notes whether it was shown something."""

    name = "host/m"

    def __init__(self) -> None:
        self.shown: list[bool] = []

    async def reply(self, prompt: Prompt, show: object) -> Reply:
        self.shown.append(prompt.sees)
        if prompt.sees:
            raise NoVision("m at host cannot see.")
        return Reply("hello")

    async def close(self) -> None:
        pass


async def ask(candidate: Candidate, *messages: Message) -> Reply:
    def show(delta: Delta) -> None: ...

    return await candidate.reply(Prompt("m", "", Transcript(messages)), show)


async def test_what_a_person_shows_is_refused():
    blind = Blind()
    with pytest.raises(NoVision, match="m at host cannot see"):
        await ask(Candidate("host/m", "m", blind), LOOK)
    assert blind.shown == [True]


async def test_what_a_tool_shows_is_named_instead_and_the_turn_goes_on():
    blind = Blind()
    seen = Message("tool", (Text("cat.png: image/png"), CAT), answers="c1")
    assert (await ask(Candidate("host/m", "m", blind), Message("user", said("look")), seen)).text == "hello"
    assert blind.shown == [True, False]


async def test_after_a_restart_what_was_shown_before_is_named_instead():
    blind = Blind()
    talk = (LOOK, Message("assistant", said("I cannot.")), Message("user", said("never mind")))
    assert (await ask(Candidate("host/m", "m", blind), *talk)).text == "hello"
    assert blind.shown == [True, False]


async def test_a_model_that_was_shown_nothing_is_not_taken_for_blind():
    blind = Blind()
    candidate = Candidate("host/m", "m", blind)
    for _ in range(2):
        with pytest.raises(NoVision):
            await ask(candidate, Message("user", said("hi")))
    assert blind.shown == [True, True]
