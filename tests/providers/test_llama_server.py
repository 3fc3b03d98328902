"""Our chat dialect with a server that we did not write: llama.cpp's, with the small model's real weights.

Its `tools` work when the chat template writes tools: from such a template the server learns how a call looks, and so
reads calls out of the answer. SmolLM2's own template drops tools without a word, and even `tool_choice: "required"`
only keeps the model from ending before it has called, so that a model that does not call by itself talks on.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from everloop.core.message import Media, Message, Text, said
from everloop.core.prompt import Prompt, Transcript, Usage
from everloop.core.tool import ToolCall, ToolSpec, problems_of
from everloop.errors import BadRequest, ContextOverflow, KeyRefused, NoVision
from everloop.net.trusted import TrustedHttp
from everloop.ports.provider import Delta, Reply
from everloop.providers import dialects
from everloop.providers.catalog import HOSTS
from everloop.providers.choose import Choice
from everloop.providers.dialects.quirks import Quirks
from everloop.providers.discovery import Discovery, ListedModel
from everloop.providers.embedded import WEIGHTS, fetch
from everloop.providers.embeddings import HostEmbedder
from everloop.providers.host import HostProvider
from everloop.providers.local import find_local

ROW = HOSTS["llamacpp"]
LIMITED = Quirks(token_limit_field="max_tokens")
KEY = "sk-canary-of-the-house"
WINDOW = 1024
LONG_WINDOW = 4096
SYSTEM = [{"role": "system", "content": "Be brief."}]

TEMPLATE_WITH_TOOLS = """
{%- if tools %}
    {{- '<|im_start|>system\\nAnswer with <tool_call>\\n{"name": ..., "arguments": ...}\\n</tool_call>. The tools:' }}
    {%- for tool in tools %}
        {{- '\\n' + (tool | tojson) }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.content %}
        {{- message.content }}
    {%- endif %}
    {%- for call in message.tool_calls or [] %}
        {{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
        {{- (call.function.arguments | tojson) + '}\\n</tool_call>' }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


def tool(name: str, does: str) -> ToolSpec:
    return ToolSpec(name, does, {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})


LIST, READ = tool("list_dir", "List a folder"), tool("read_file", "Read a file")


@contextmanager
def serving(gguf: Path, **options: Any) -> Iterator[str]:
    """The address of a server that lives as long as this block."""
    script = Path(__file__).with_name("llama_server.py")
    command = [sys.executable, str(script), str(gguf), json.dumps(options)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            assert address, "the server did not start"
            yield f"{address}/v1"
        finally:
            process.kill()  # at once, whatever it still writes


@pytest.fixture(scope="module")
def gguf() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "everloop-tests"
    return asyncio.run(fetch(WEIGHTS["embedded/smollm2"], cache))


@pytest.fixture(scope="module")
def base(gguf: Path) -> Iterator[str]:
    with serving(gguf, n_ctx=WINDOW) as address:
        yield address


@pytest.fixture(scope="module")
def guarded(gguf: Path) -> Iterator[str]:
    """Asks for a key, and knows how to write tools."""
    with serving(gguf, n_ctx=WINDOW, api_keys=[KEY], chat_template=TEMPLATE_WITH_TOOLS) as address:
        yield address


@pytest.fixture(scope="module")
def endless(gguf: Path) -> Iterator[str]:
    """Never ends an answer by itself before its window is full."""
    with serving(gguf, n_ctx=LONG_WINDOW, ignore_eos=True, endpoint_metrics=True) as address:
        yield address


def prompt(*texts: str, max_tokens: int = 8192) -> Prompt:
    roles = ("user", "assistant")
    return of(*(Message(roles[place % 2], said(text)) for place, text in enumerate(texts)), max_tokens=max_tokens)


def of(*messages: Message, max_tokens: int, tools: tuple[ToolSpec, ...] = ()) -> Prompt:
    return Prompt("smollm2", SYSTEM[0]["content"], Transcript(messages), tools, max_tokens=max_tokens, temperature=0.0)


def provider(http: TrustedHttp, base: str, key: str = "", quirks: Quirks = ROW.quirks) -> HostProvider:
    return HostProvider(ROW.name, http, base, key, dialects.load(ROW.dialect), quirks, sleep=at_once)


async def at_once(seconds: float) -> None:
    """Instead of a wait."""


async def ask(asked: HostProvider, prompt: Prompt) -> tuple[Reply, list[Delta]]:
    shown: list[Delta] = []
    return await asked.reply(prompt, shown.append), shown


async def plainly(http: TrustedHttp, base: str, **body: Any) -> dict[str, Any]:
    """The server's answer to a request that is none of ours."""
    headers = {"Content-Type": "application/json"}
    data = msgspec.json.encode({"temperature": 0, **body})
    async with http.request("POST", f"{base}/chat/completions", body=data, headers=headers) as answer:
        return msgspec.json.decode(await answer.read(), type=dict[str, Any])


async def test_its_vectors_are_read(http: TrustedHttp, gguf: Path):
    texts = ["The cat sat on the mat.", "A cat was sitting on a mat.", "Interest rates rose again."]
    with serving(gguf, n_ctx=WINDOW, embedding=True, pooling_type=1) as address:
        made = await HostEmbedder(Choice(ROW, "smollm2", address), http).embed(texts)
    assert (made.model, len(made.vectors), {len(vector) for vector in made.vectors}) == ("llamacpp/smollm2", 3, {576})
    assert made.usage.input > 15
    one, alike, other = made.vectors
    assert product(one, one) == pytest.approx(1.0, abs=1e-3)
    assert product(one, alike) > product(one, other)


def product(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_it_says_when_it_makes_no_vectors(http: TrustedHttp, base: str):
    embedder = HostEmbedder(Choice(ROW, "smollm2", base), http, sleep=at_once)
    with pytest.raises(BadRequest, match="This server does not support embeddings"):
        await embedder.embed(["hi"])


async def test_an_answer_streams_and_counts_what_the_server_counts(http: TrustedHttp, base: str):
    question = "What is the capital of France?"
    plain = await plainly(http, base, messages=[*SYSTEM, {"role": "user", "content": question}])
    reply, shown = await ask(provider(http, base), prompt(question))
    counts = plain["usage"]
    assert reply == Reply(
        plain["choices"][0]["message"]["content"],
        usage=Usage(counts["prompt_tokens"], counts["completion_tokens"], cache_read=reply.usage.cache_read),
        model=plain["model"],
    )
    assert "Paris" in reply.text
    assert [delta for delta in shown if not delta.text] == []
    assert "".join(delta.text for delta in shown) == reply.text
    assert len(shown) > 3
    assert min(reply.usage.input, reply.usage.output) > 5


async def test_what_the_server_has_read_before_is_counted_as_cached(http: TrustedHttp, base: str):
    asked = provider(http, base, quirks=LIMITED)
    first, _ = await ask(asked, prompt("Say hello.", max_tokens=30))
    again, _ = await ask(asked, prompt("Say hello.", first.text, "And now?", max_tokens=1))
    assert first.usage.input <= again.usage.cache_read < again.usage.input


async def test_an_answer_is_cut_at_the_limit_and_says_so(http: TrustedHttp, base: str):
    reply, _ = await ask(provider(http, base, quirks=LIMITED), prompt("Say something about the sea.", max_tokens=3))
    assert (reply.finish, reply.usage.output) == ("length", 3)


async def test_a_server_that_hangs_up_after_every_stream_is_asked_again(http: TrustedHttp, base: str):
    """It promises to keep the connection, so that the next request may already be on its way into a closed one."""
    asked = provider(http, base, quirks=LIMITED)
    replies = [(await ask(asked, prompt("Say hello.", max_tokens=2)))[0].usage.output for _ in range(5)]
    assert replies == [2] * 5


async def test_a_conversation_longer_than_the_window_overflows(http: TrustedHttp, base: str):
    with pytest.raises(ContextOverflow, match="longer than smollm2 at llamacpp can read"):
        await ask(provider(http, base), prompt("word " * 2 * WINDOW))


async def test_a_request_that_the_server_cannot_read_is_bad(http: TrustedHttp, guarded: str):
    nonsense = ToolSpec("f", "", {"type": "nonsense"})
    with pytest.raises(BadRequest, match=r"\(400\): .* unrecognized type nonsense"):
        await ask(provider(http, guarded, KEY), of(Message("user", said("hi")), max_tokens=1, tools=(nonsense,)))


@pytest.mark.parametrize("mime", ["image/png", "application/pdf"])
async def test_a_model_without_eyes_says_so(http: TrustedHttp, base: str, mime: str):
    looking = of(Message("user", (Text("What is this?"), Media("f1", mime))), max_tokens=1)
    looking.transcript.files["f1"] = b"\x89PNG"
    with pytest.raises(NoVision):
        await ask(provider(http, base), looking)


@pytest.mark.parametrize("key", ["", "sk-of-another-house"])
async def test_the_servers_own_key_is_asked_for(http: TrustedHttp, guarded: str, key: str):
    with pytest.raises(KeyRefused):
        await ask(provider(http, guarded, key), prompt("hi"))
    with pytest.raises(KeyRefused):
        await Discovery(http).models(Choice(ROW, "smollm2", guarded, key))
    assert (await ask(provider(http, guarded, KEY, LIMITED), prompt("hi", max_tokens=2)))[0].usage.output == 2


async def test_cancelling_ends_the_work_at_the_server(http: TrustedHttp, endless: str):
    speaking = asyncio.Event()
    asked = provider(http, endless)
    answering = asyncio.create_task(asked.reply(prompt("Tell me a story."), lambda delta: speaking.set()))
    await speaking.wait()
    answering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answering
    # It does one thing at a time: had it gone on, this would be answered when the window was full.
    await ask(provider(http, endless, quirks=LIMITED), prompt("Say hello.", max_tokens=1))
    assert await rounds_of(http, endless) < LONG_WINDOW / 4


async def rounds_of(http: TrustedHttp, base: str) -> int:
    """How many times the server has run its model, about once for each token."""
    async with http.request("GET", f"{base.removesuffix('/v1')}/metrics") as answer:
        found = re.search(rb"^llamacpp:n_decode_total (\d+)$", await answer.read(), re.MULTILINE)
    assert found
    return int(found[1])


async def test_the_server_is_found_with_its_model_and_the_window_it_was_loaded_with(
    http: TrustedHttp, base: str, gguf: Path
):
    choice = await find_local(http, hosts=[replace(ROW, base=base)])
    assert choice == Choice(replace(ROW, base=base), str(gguf), base)
    assert await Discovery(http).models(choice) == [ListedModel(str(gguf), WINDOW, sees=False)]
    assert await Discovery(http).find(choice) == ListedModel(str(gguf), WINDOW, sees=False)


async def test_the_window_is_found_whatever_the_model_is_called_here(http: TrustedHttp, guarded: str):
    """The server has one model, which answers to every name."""
    assert await Discovery(http).find(Choice(ROW, "smollm2", guarded, KEY)) == ListedModel("smollm2", WINDOW)


async def test_an_answer_held_to_a_schema_is_a_call(http: TrustedHttp, base: str):
    example = [
        {"role": "user", "content": "What is in the folder docs?"},
        {"role": "assistant", "content": '{"tool": "list_dir", "args": {"path": "docs"}}'},
        {"role": "user", "content": "What is in the folder src?"},
    ]
    schema = {"anyOf": [schema_of_call(LIST), schema_of_call(READ)]}
    form = {"type": "json_schema", "json_schema": {"name": "call", "schema": schema}}
    answer = await plainly(http, base, messages=[*SYSTEM, *example], response_format=form, max_tokens=60)
    found = json.loads(answer["choices"][0]["message"]["content"])
    assert found == {"tool": "list_dir", "args": {"path": "src"}}
    assert problems_of(ToolCall("c", found["tool"], json.dumps(found["args"])), LIST) == []


def schema_of_call(tool: ToolSpec) -> dict[str, Any]:
    fields = {"tool": {"const": tool.name}, "args": {**tool.schema, "additionalProperties": False}}
    return {"type": "object", "properties": fields, "required": ["tool", "args"], "additionalProperties": False}


def looked_into(folder: str, file: str) -> Iterator[Message]:
    """How it went when the model was asked about a folder before."""
    yield Message("user", said(f"What is in the folder {folder}?"))
    yield Message("assistant", (), (ToolCall(f"call_{folder}", LIST.name, json.dumps({"path": folder})),))
    yield Message("tool", said(file), answers=f"call_{folder}")
    yield Message("assistant", said(f"There is {file}."))


BEFORE = (*looked_into("docs", "a.txt"), *looked_into("music", "b.ogg"), *looked_into("mail", "c.eml"))


async def test_a_call_comes_back_as_a_call_and_its_result_is_understood(http: TrustedHttp, guarded: str):
    asked = provider(http, guarded, KEY, LIMITED)
    turn = of(*BEFORE, Message("user", said("What is in the folder src?")), max_tokens=40, tools=(LIST, READ))
    reply, _ = await ask(asked, turn)
    (call,) = reply.calls
    assert (call.name, json.loads(call.args), reply.text, reply.finish) == (LIST.name, {"path": "src"}, "", "calls")
    turn.transcript.add(Message("assistant", (), reply.calls))
    turn.transcript.add(Message("tool", said("d.py"), answers=call.id))
    last, _ = await ask(asked, turn)
    assert (last.text, last.calls, last.finish) == ("There is d.py.", (), "stop")


async def test_a_template_without_tools_knows_of_none(http: TrustedHttp, base: str):
    asked = provider(http, base, quirks=LIMITED)
    question = Message("user", said("What is in the folder src?"))
    without, _ = await ask(asked, of(question, max_tokens=20))
    reply, _ = await ask(asked, of(question, max_tokens=20, tools=(LIST, READ)))
    assert (reply.usage.input, reply.calls) == (without.usage.input, ())
