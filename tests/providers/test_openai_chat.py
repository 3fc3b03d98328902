from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everloop.core.message import Message, Opaque, Text, said
from everloop.core.prompt import Prompt, Transcript, Usage
from everloop.core.tool import ToolCall, ToolSpec
from everloop.errors import (
    BadRequest,
    ContextOverflow,
    HostFailed,
    KeyRefused,
    OutOfCredit,
    ProviderError,
    RateLimited,
    StreamCut,
    UnknownModel,
)
from everloop.ports.provider import Delta, Reply
from everloop.providers.dialects.openai_chat import decoder as Decoder
from everloop.providers.dialects.openai_chat import encode, error_from
from everloop.providers.dialects.quirks import Quirks

LOOK = ToolSpec("look", "Looks at a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
PLAIN = Quirks()


def prompt(*messages: Message, **fields) -> Prompt:
    return Prompt(**{"model": "m", "system": "Be brief.", "transcript": Transcript(messages), **fields})


def user(text: str) -> Message:
    return Message("user", said(text))


def body(prompt: Prompt, quirks: Quirks = PLAIN):
    return msgspec.json.decode(encode(prompt, quirks, "host"))


def decode(stream: bytes, cuts: tuple[int, ...] = ()) -> tuple[Reply, list[Delta]]:
    decoder = Decoder("host", "m")
    edges = [0, *sorted({cut % (len(stream) + 1) for cut in cuts}), len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(edges) if start < end]
    deltas = [decoder.feed(piece) for piece in [*pieces, b""]]
    return decoder.reply(), [delta for delta in deltas if delta]


def reply(stream: bytes) -> Reply:
    return decode(stream)[0]


def events(*deltas: str, finish: str = "stop") -> bytes:
    lines = [f'data: {{"id":"a1","model":"m","choices":[{{"index":0,"delta":{delta}}}]}}\n\n' for delta in deltas]
    end = f'data: {{"choices":[{{"delta":{{}},"finish_reason":"{finish}"}}]}}\n\ndata: [DONE]\n\n'
    return ("".join(lines) + end).encode()


def chunk(id: str, model: str, rest: str, end: str = "\n\n") -> bytes:
    head = f'{{"id":"{id}","object":"chat.completion.chunk","created":1,"model":"{model}","system_fingerprint":null'
    return f"data: {head},{rest}}}{end}".encode()


def openai(choices: str, usage: str = "null") -> bytes:
    return chunk("chatcmpl-B1", "gpt-5-mini-2025-08-07", f'"choices":[{choices}],"usage":{usage}')


def deepseek(choice: str, usage: str = "null") -> bytes:
    return chunk("d1", "deepseek-reasoner", f'"choices":[{{"index":0,{choice}}}],"usage":{usage}', "\r\n\r\n")


OPENAI = b"".join(
    (
        openai('{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}'),
        openai('{"index":0,"delta":{"content":"Grüße 👋🏽"},"logprobs":null,"finish_reason":null}'),
        openai('{"index":0,"delta":{"content":", 世界!"},"logprobs":null,"finish_reason":null}'),
        openai('{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}'),
        openai("", '{"prompt_tokens":2006,"completion_tokens":30,"prompt_tokens_details":{"cached_tokens":1920}}'),
        b"data: [DONE]\n\n",
    )
)
OPENAI_REPLY = Reply("Grüße 👋🏽, 世界!", (), Usage(2006, 30, 1920), "stop", "gpt-5-mini-2025-08-07")

DEEPSEEK = b"".join(
    (
        b": keep-alive\r\n\r\n",
        deepseek('"delta":{"role":"assistant","content":null,"reasoning_content":"Let me"},"finish_reason":null'),
        b": keep-alive\r\n\r\n",
        deepseek('"delta":{"content":null,"reasoning_content":" look."},"finish_reason":null'),
        deepseek('"delta":{"tool_calls":[{"index":0,"id":"c0","function":{"name":"look","arguments":""}}]}'),
        deepseek('"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":"}}]}'),
        deepseek(
            '"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\"a\\"}"}},'
            '{"index":1,"id":"c1","function":{"name":"look","arguments":"{}"}}]}'
        ),
        deepseek(
            '"delta":{"content":""},"finish_reason":"tool_calls"',
            '{"prompt_tokens":90,"completion_tokens":7,"prompt_cache_hit_tokens":64}',
        ),
        b"data: [DONE]\r\n\r\n",
    )
)
DEEPSEEK_REPLY = Reply(
    text="",
    calls=(ToolCall("c0", "look", '{"path":"a"}'), ToolCall("c1", "look", "{}")),
    usage=Usage(90, 7, 64),
    finish="calls",
    model="deepseek-reasoner",
    reasoning="Let me look.",
)

THINKER = events(
    '{"content":"\\n<thi"}',
    '{"content":"nk>a < b"}',
    '{"content":"</thi"}',
    '{"content":"nk>\\n\\n"}',
    '{"content":"So: <think>"}',
)
THINKER_REPLY = Reply("So: <think>", (), Usage(), "stop", "m", "a < b")

WHOLE = (
    b'{"id":"w1","object":"chat.completion","model":"local","choices":[{"index":0,"message":{"role":"assistant","content":'
    b'"Hi","reasoning":"easy"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1}}\n'
)
WHOLE_REPLY = Reply("Hi", (), Usage(5, 1), "stop", "local", "easy")

RECORDED = [(OPENAI, OPENAI_REPLY), (DEEPSEEK, DEEPSEEK_REPLY), (THINKER, THINKER_REPLY), (WHOLE, WHOLE_REPLY)]


@given(st.sampled_from(RECORDED), st.lists(st.integers(0, 5000), max_size=40))
def test_an_answer_is_the_same_however_the_network_cuts_it(recorded, cuts):
    stream, expected = recorded
    answer, deltas = decode(stream, tuple(cuts))
    assert answer == expected
    assert "".join(delta.text for delta in deltas) == expected.text
    assert "".join(delta.reasoning for delta in deltas).strip() == expected.reasoning


@pytest.mark.parametrize("stream, expected", RECORDED, ids=["openai", "deepseek", "thinker", "whole"])
def test_an_answer_can_come_byte_by_byte(stream, expected):
    assert decode(stream, tuple(range(len(stream))))[0] == expected


def test_one_network_read_gives_one_delta():
    assert decode(OPENAI)[1] == [Delta("Grüße 👋🏽, 世界!")]


def test_data_may_follow_the_colon_at_once():
    assert reply(b'data:{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\ndata:[DONE]\n\n').text == "a"


def test_an_event_may_stand_on_several_lines():
    assert (
        reply(
            b'event: x\ndata: {"choices":[{"delta":\ndata: {"content":"a"},\ndata: "finish_reason":"stop"}]}\n\n'
        ).text
        == "a"
    )


def test_the_last_line_need_not_end():
    assert reply(b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}').text == "a"


def test_done_tells_that_nothing_more_will_come():
    decoder = Decoder("host", "m")
    states = [(decoder.feed(line + b"\n\n"), decoder.complete, decoder.done) for line in OPENAI.split(b"\n\n")[-4:]]
    assert states == [(None, True, False), (None, True, False), (None, True, True), (None, True, True)]


def test_halves_of_a_character_are_joined():
    halves = events('{"content":"a\\ud83d"}', '{"content":"\\ude00b"}', '{"content":"\\ud83d"}')
    assert reply(halves).text == "a😀b�"


@pytest.mark.parametrize(
    "deltas",
    [
        ['{"reasoning_content":"ab"}'],
        ['{"reasoning":"a"}', '{"reasoning":"b"}'],
        ['{"thinking":{"content":"ab"}}'],
        ['{"model_thoughts":["a","b"]}'],
        ['{"reasoning":"ab","reasoning_details":[{"type":"reasoning.text","text":"ab"}]}'],
        [
            '{"reasoning_details":[{"type":"reasoning.summary","summary":"ab"},{"type":"reasoning.encrypted","data":"x"}]}'
        ],
        ['{"content":[{"type":"thinking","thinking":[{"type":"text","text":"ab"}]}]}'],
        ['{"content":"<think>ab</think>"}'],
        ['{"content":"<think>a</think> "}', '{"content":"<think>b"}'],
        ['{"thought_signature":"xyz","thought":true,"reasoning":"ab"}'],
    ],
)
def test_reasoning_is_found_in_whatever_form_it_comes(deltas):
    assert reply(events(*deltas, '{"content":""}')) == Reply("", model="m", reasoning="ab")


def test_text_in_parts_is_text():
    assert reply(events('{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}')).text == "ab"


def test_a_tag_that_never_became_one_is_text():
    assert reply(events('{"content":" <thin"}')).text == " <thin"


def calls(*pieces: str, finish: str = "tool_calls") -> tuple[ToolCall, ...]:
    answer = reply(events(*(f'{{"tool_calls":[{piece}]}}' for piece in pieces), finish=finish))
    assert answer.finish == "calls"
    return answer.calls


def test_calls_without_index_are_told_apart_by_their_ids():
    assert calls(
        '{"id":"a","function":{"name":"look","arguments":"{"}}',
        '{"id":"a","function":{"name":"look","arguments":"}"}}',
        '{"id":"b","function":{"name":"list","arguments":"{}"}}',
    ) == (ToolCall("a", "look", "{}"), ToolCall("b", "list", "{}"))


def test_a_repeated_index_with_a_new_id_is_a_new_call():
    assert calls(
        '{"index":0,"id":"a","function":{"name":"look","arguments":"{}"}}',
        '{"index":0,"id":"b","function":{"name":"look","arguments":"{}"}}',
    ) == (ToolCall("a", "look", "{}"), ToolCall("b", "look", "{}"))


def test_a_repeated_index_without_ids_is_a_new_call_once_the_last_is_whole():
    made_up = calls(
        '{"index":0,"function":{"name":"look","arguments":"{\\"path\\":"}}',
        '{"index":0,"function":{"name":"look","arguments":"\\"x\\"}"}}',
        '{"index":0,"function":{"name":"look","arguments":""}}',
        '{"index":0,"function":{"name":"look","arguments":"{\\"path\\":\\"y\\"}"}}',
    )
    assert [call.args for call in made_up] == ['{"path":"x"}', '{"path":"y"}']


def test_calls_with_neither_index_nor_id_get_ids_that_stay_the_same():
    pieces = ['{"function":{"name":"look"}}', '{"function":{"arguments":"{}"}}', '{"function":{"name":"list"}}']
    first = calls(*pieces)
    assert first == calls(*pieces)
    assert [(call.name, call.args) for call in first] == [("look", "{}"), ("list", "{}")]
    assert len({call.id for call in first} | {""}) == 3


@pytest.mark.parametrize(
    "function", ['{"name":"look"}', '{"name":"look","arguments":""}', '{"name":"look","arguments":null}']
)
def test_a_call_without_arguments_has_an_empty_object(function):
    assert calls(f'{{"index":0,"id":"a","function":{function}}}') == (ToolCall("a", "look", "{}"),)


def test_arguments_may_come_as_an_object():
    assert calls('{"id":"a","function":{"name":"look","arguments":{"path":"x"}}}') == (
        ToolCall("a", "look", '{"path":"x"}'),
    )


def test_calls_are_the_finish_even_when_the_host_says_stop():
    assert calls('{"index":0,"id":"a","function":{"name":"look","arguments":"{}"}}', finish="stop")


@pytest.mark.parametrize(
    "reason, finish",
    [("stop", "stop"), ("length", "length"), ("content_filter", "refused"), ("SAFETY", "refused"), ("eos", "stop")],
)
def test_finish_reasons_have_four_meanings(reason, finish):
    assert reply(events('{"content":"a"}', finish=reason)) == Reply("a", finish=finish, model="m")


def test_a_refusal_is_shown_and_marked():
    assert reply(events('{"refusal":"I will not."}')) == Reply("I will not.", finish="refused", model="m")


def test_usage_may_stand_in_the_choice():
    usage = b'{"prompt_tokens":9,"completion_tokens":1,"cached_tokens":4}'
    stream = b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop","usage":' + usage + b"}]}\n\n"
    assert reply(stream).usage == Usage(9, 1, 4)


@pytest.mark.parametrize("end", [0, 100, 400, 500])
def test_a_stream_without_its_end_is_cut(end):
    with pytest.raises(StreamCut, match="host broke off in the middle of its answer for "):
        reply(OPENAI[:end])


@pytest.mark.parametrize(
    "stream",
    [b"data: {garbage\n\ndata: [DONE]\n\n", b"<html>Login</html>", b'{"hello": 1}', b"{", b'data: {"choices":3}\n\n'],
)
def test_what_is_not_a_chat_completion_is_the_hosts_failure(stream):
    with pytest.raises(HostFailed, match="not a chat completion"):
        reply(stream)


@pytest.mark.parametrize(
    "error, kind",
    [
        ('{"message":"Rate limit reached","code":"rate_limit_exceeded"}', RateLimited),
        ('{"message":"Provider returned error","code":502}', HostFailed),
        ('{"message":"too long","code":"context_length_exceeded"}', ContextOverflow),
        ('{"message":"bad","type":"invalid_request_error"}', BadRequest),
        ('"overloaded"', HostFailed),
    ],
)
def test_an_error_inside_the_stream_is_raised_by_its_kind(error, kind):
    decoder = Decoder("host", "m")
    decoder.feed(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n')
    with pytest.raises(kind):
        decoder.feed(f'data: {{"error":{error}}}\n\n'.encode())


def test_an_answer_that_the_host_gives_up_is_its_failure():
    with pytest.raises(HostFailed, match="insufficient_system_resource"):
        reply(events('{"content":"a"}', finish="insufficient_system_resource"))


def said_by(status: int, text: str = "", headers: dict[str, str] | None = None) -> ProviderError:
    return error_from("host", "m", status, headers or {}, text.encode())


@pytest.mark.parametrize(
    "status, text, kind",
    [
        (401, "", KeyRefused),
        (403, '{"error":{"message":"Region not supported"}}', KeyRefused),
        (400, '[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key."}}]', KeyRefused),
        (404, '{"error":"model \'m\' not found, try pulling it first"}', UnknownModel),
        (400, '{"error":{"message":"m is not a valid model ID"}}', UnknownModel),
        (400, '{"error":{"message":"Model Not Exist","type":"invalid_request_error"}}', UnknownModel),
        (429, "", RateLimited),
        (400, '{"error":{"message":"…","code":"context_length_exceeded"}}', ContextOverflow),
        (400, '{"message":"the request exceeds the available context size (4096)"}', ContextOverflow),
        (400, '{"error":{"code":400,"message":"x","metadata":{"raw":"prompt is too long: 9 > 8"}}}', ContextOverflow),
        (413, "", ContextOverflow),
        (500, '{"error":"maximum context length is 10"}', ContextOverflow),
        (402, "", OutOfCredit),
        (429, '{"error":{"code":"insufficient_quota","message":"You exceeded your quota"}}', OutOfCredit),
        (422, '{"detail":[{"msg":"field required"}]}', BadRequest),
        (308, "", BadRequest),
        (500, "<html>", HostFailed),
        (529, '{"error":{"type":"overloaded_error"}}', HostFailed),
    ],
)
def test_a_refusal_is_told_by_its_kind(status, text, kind):
    error = said_by(status, text)
    assert type(error) is kind
    assert "host" in str(error)


@pytest.mark.parametrize(
    "headers, wait",
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({}, None),
    ],
)
def test_the_time_to_wait_is_read_from_the_headers(headers, wait):
    error = said_by(429, "", headers)
    assert isinstance(error, RateLimited)
    assert error.retry_after == wait


def test_the_hosts_own_words_are_quoted_without_what_looks_like_a_key():
    assert str(said_by(422, '{"error":{"message":"No.  Not with sk-ab***yz."}}')) == (
        "host refuses the request for m (422): No. Not with …."
    )
    assert "sk-ab" not in str(said_by(401, '{"error":{"message":"Incorrect API key provided: sk-ab***yz."}}'))


def test_a_request_says_all_that_the_host_needs():
    talk = (
        user("hi"),
        Message("assistant", calls=(ToolCall("c1", "look", '{"path":"a"}'), ToolCall("c2", "look", ""))),
        Message("tool", said("x"), answers="c1"),
        Message("tool", (Text("y"), Text("z")), answers="c2"),
        Message("assistant", said("done"), reasoning="hm"),
        user("and?"),
    )
    assert body(prompt(*talk, tools=(LOOK,), temperature=0.5)) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 8192,
        "temperature": 0.5,
        "tools": [
            {
                "type": "function",
                "function": {"name": "look", "description": "Looks at a file.", "parameters": LOOK.schema},
            }
        ],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"path":"a"}'}},
                    {"id": "c2", "type": "function", "function": {"name": "look", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "x"},
            {"role": "tool", "tool_call_id": "c2", "content": "y\nz"},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": "and?"},
        ],
    }


def test_what_is_not_there_is_not_sent():
    quirks = Quirks(token_limit_field="", streams_usage=False)
    assert body(prompt(user("hi"), system=""), quirks) == {
        "model": "m",
        "stream": True,
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_a_hosts_quirks_are_met():
    quirks = Quirks(
        token_limit_field="max_completion_tokens",
        reasoning_field="reasoning_content",
        conversation_field="prompt_cache_key",
        short_call_ids=True,
    )
    talk = (
        Message("assistant", calls=(ToolCall("call_long_id", "look", "{}"),), reasoning="hm"),
        Message("tool", said("x"), answers="call_long_id"),
    )
    sent = body(prompt(*talk, system="", conversation="t1"), quirks)
    answer, result = sent.pop("messages")
    assert sent == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 8192,
        "prompt_cache_key": "t1",
    }
    assert answer["reasoning_content"] == "hm"
    assert answer["tool_calls"][0]["id"] == result["tool_call_id"]
    assert len(result["tool_call_id"]) == 9
    assert result["tool_call_id"].isalnum()


def test_a_signature_travels_back_with_its_call_to_the_host_that_wants_it():
    answer = reply(
        events(
            '{"tool_calls":[{"id":"c1","function":{"name":"look","arguments":"{}"},"extra_content":{"google":{"s":"x"}}}]}'
        )
    )
    assert [(opaque.dialect, bytes(opaque.block)) for opaque in answer.opaque] == [
        ("openai_chat host/m", b'[{"google":{"s":"x"}}]')
    ]
    foreign = Opaque("anthropic", msgspec.Raw(b"{}"))
    message = Message("assistant", calls=answer.calls, opaque=(foreign, *answer.opaque))
    signed = body(prompt(message, system=""), Quirks(extra_content=True))["messages"][0]["tool_calls"][0]
    assert signed["extra_content"] == {"google": {"s": "x"}}
    assert "extra_content" not in body(prompt(message, system=""))["messages"][0]["tool_calls"][0]


@pytest.mark.parametrize(
    "last, messages",
    [
        ((), [{"role": "user", "content": "It is noon."}]),
        ((user('say "hi"'),), [{"role": "user", "content": 'say "hi"\n\nIt is noon.'}]),
        (
            (Message("tool", said(""), answers="c"),),
            [{"role": "tool", "tool_call_id": "c", "content": "\n\nIt is noon."}],
        ),
        (
            (Message("assistant", said("a")),),
            [{"role": "assistant", "content": "a"}, {"role": "user", "content": "It is noon."}],
        ),
    ],
)
def test_the_tail_stands_at_the_very_end(last, messages):
    assert body(prompt(*last, system="", tail="It is noon."))["messages"] == messages


texts = st.text(st.characters(codec=None), max_size=20)
messages = st.one_of(
    st.builds(user, texts),
    st.builds(lambda text: Message("assistant", said(text)), texts),
    st.builds(lambda args: Message("assistant", calls=(ToolCall("c", "look", args),)), texts),
    st.builds(lambda text: Message("tool", said(text), answers="c"), texts),
)


@given(st.lists(messages, min_size=1, max_size=8), texts, st.booleans())
def test_a_request_begins_with_the_bytes_of_the_one_before(talk, tail, with_tools):
    transcript = Transcript()
    before = b""
    for message in talk:
        transcript.messages.append(message)
        ask = prompt(transcript=transcript, tools=(LOOK,) if with_tools else ())
        now = encode(ask, PLAIN, "host")
        assert now.startswith(before.removesuffix(b"]}"))
        assert msgspec.json.decode(now)["messages"][1:] != []
        with_tail = encode(msgspec.structs.replace(ask, tail=tail), PLAIN, "host")
        assert with_tail.startswith(now.removesuffix(b'"}]}').removesuffix(b"]}"))
        msgspec.json.decode(with_tail)
        before = now


def test_a_message_is_rendered_once():
    ask = prompt(user("a"), user("b"))
    encode(ask, PLAIN, "host")
    kept = ask.transcript.rendered["openai_chat", "host", "m", True, PLAIN]
    first = list(kept.messages)
    ask.transcript.messages.append(user("c"))
    encode(ask, PLAIN, "host")
    assert [now is then for now, then in zip(kept.messages, first, strict=False)] == [True, True]
    assert len(kept.messages) == 3


def test_a_changed_prefix_is_rendered_anew():
    ask = prompt(user("a"))
    encode(ask, PLAIN, "host")
    changed = msgspec.structs.replace(ask, system="Be long.", tools=(LOOK,))
    assert encode(changed, PLAIN, "host") == encode(prompt(user("a"), system="Be long.", tools=(LOOK,)), PLAIN, "host")
