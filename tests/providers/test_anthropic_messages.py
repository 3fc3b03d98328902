import re
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from everloop.core.message import Media, Message, Opaque, Text, said
from everloop.core.prompt import Prompt, Transcript, Usage
from everloop.core.tool import ToolCall, ToolSpec
from everloop.errors import (
    BadRequest,
    ContextOverflow,
    HostFailed,
    KeyRefused,
    OutOfCredit,
    RateLimited,
    StreamCut,
    UnknownModel,
)
from everloop.ports.provider import Delta, Reply
from everloop.providers.dialects.anthropic_messages import decoder as Decoder
from everloop.providers.dialects.anthropic_messages import encode, error_from, headers, path
from everloop.providers.dialects.quirks import Quirks

LOOK = ToolSpec("look", "Looks at a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
PLAIN = Quirks()
MARK = {"cache_control": {"type": "ephemeral"}}
BUDGETED = "claude-sonnet-4-5"
ADAPTIVE = "claude-opus-4-6"
BINDING = "claude-opus-5-5"


def prompt(*messages: Message, **fields) -> Prompt:
    return Prompt(**{"model": BUDGETED, "system": "", "transcript": Transcript(messages), **fields})


def user(text: str) -> Message:
    return Message("user", said(text))


def assistant(text: str) -> Message:
    return Message("assistant", said(text))


def calling(*ids: str, opaque: tuple[Opaque, ...] = ()) -> Message:
    return Message("assistant", calls=tuple(ToolCall(id, "look", "{}") for id in ids), opaque=opaque)


def result(id: str, text: str = "x") -> Message:
    return Message("tool", said(text), answers=id)


def thought(model: str, text: str = "hm") -> Opaque:
    block = {"type": "thinking", "thinking": text, "signature": "s1g=="}
    return Opaque(f"anthropic_messages host/{model}", Raw(msgspec.json.encode(block)))


def text(words: str) -> dict:
    return {"type": "text", "text": words}


def use(id: str, **input: str) -> dict:
    return {"type": "tool_use", "id": id, "name": "look", "input": input}


def body(prompt: Prompt, quirks: Quirks = PLAIN) -> dict:
    return msgspec.json.decode(encode(prompt, quirks, "host"))


def without_marks(value):
    match value:
        case dict():
            return {key: without_marks(item) for key, item in value.items() if key != "cache_control"}
        case list():
            return [without_marks(item) for item in value]
    return value


def messages_of(*talk: Message, **fields) -> list[dict]:
    return without_marks(body(prompt(*talk, **fields))["messages"])


# Reading answers


def decode(stream: bytes, cuts: tuple[int, ...] = ()) -> tuple[Reply, list[Delta]]:
    decoder = Decoder("host", "m")
    edges = [0, *sorted({cut % (len(stream) + 1) for cut in cuts}), len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(edges) if start < end]
    deltas = [decoder.feed(piece) for piece in [*pieces, b""]]
    return decoder.reply(), [delta for delta in deltas if delta]


def event(kind: str, **fields) -> bytes:
    return f"event: {kind}\ndata: {msgspec.json.encode({'type': kind, **fields}).decode()}\n\n".encode()


def block(index: int, start: dict, *deltas: dict) -> bytes:
    return b"".join(
        (
            event("content_block_start", index=index, content_block=start),
            *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
            event("content_block_stop", index=index),
        )
    )


def spoken(index: int, *pieces: str) -> bytes:
    return block(index, text(""), *({"type": "text_delta", "text": piece} for piece in pieces))


def thinking(index: int, piece: str, signature: str) -> bytes:
    return block(
        index,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": piece},
        {"type": "signature_delta", "signature": signature},
    )


def called(index: int, id: str, *pieces: str) -> bytes:
    return block(index, use(id), *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))


def stream(*blocks: bytes, stop: str = "end_turn") -> bytes:
    usage = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2}
    start = {"id": "msg_1", "model": "claude-x", "role": "assistant", "content": [], "usage": usage}
    return b"".join(
        (
            event("message_start", message=start),
            *blocks,
            event("message_delta", delta={"stop_reason": stop}, usage={"output_tokens": 9}),
            event("message_stop"),
        )
    )


USAGE = Usage(17, 9, 5, 2)
MIXED = stream(
    thinking(0, "Let me ", "ab"),
    block(1, {"type": "redacted_thinking", "data": "EmwK+x=="}),
    event("ping"),
    spoken(2, "Grü", "ße 👩‍🚀"),
    called(3, "toolu_1", "", '{"path":', ' "a"}'),
    called(4, "toolu_2", ""),
    stop="tool_use",
)
MIXED_REPLY = Reply(
    text="Grüße 👩‍🚀",
    calls=(ToolCall("toolu_1", "look", '{"path": "a"}'), ToolCall("toolu_2", "look", "{}")),
    usage=USAGE,
    finish="calls",
    model="claude-x",
    reasoning="Let me",
    opaque=(
        Opaque("anthropic_messages host/m", Raw(b'{"type":"thinking","thinking":"Let me ","signature":"ab"}')),
        Opaque("anthropic_messages host/m", Raw(b'{"type":"redacted_thinking","data":"EmwK+x=="}')),
    ),
)


@given(st.lists(st.integers(0, 5000), max_size=40))
def test_an_answer_is_the_same_however_the_network_cuts_it(cuts):
    answer, deltas = decode(MIXED, tuple(cuts))
    assert answer == MIXED_REPLY
    assert "".join(delta.text for delta in deltas) == answer.text
    assert "".join(delta.reasoning for delta in deltas) == "Let me "


def test_an_answer_can_come_byte_by_byte():
    assert decode(MIXED, tuple(range(len(MIXED))))[0] == MIXED_REPLY


def test_one_network_read_gives_one_delta():
    assert decode(MIXED)[1] == [Delta("Grüße 👩‍🚀", "Let me ")]


def test_done_tells_that_nothing_more_will_come():
    decoder = Decoder("host", "m")
    events = [piece + b"\n\n" for piece in stream(spoken(0, "a")).split(b"\n\n")[:-1]]
    states = [(decoder.feed(event), decoder.complete, decoder.done) for event in events[-3:]]
    assert states == [(None, False, False), (None, True, False), (None, True, True)]


@pytest.mark.parametrize(
    "reason, finish",
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refused"),
        ("something_new", "stop"),
    ],
)
def test_stop_reasons_have_four_meanings(reason, finish):
    assert decode(stream(spoken(0, "a"), stop=reason))[0] == Reply("a", (), USAGE, finish, "claude-x")


def test_thoughts_that_are_not_shown_are_kept_with_their_signature():
    hidden = block(0, {"type": "thinking", "thinking": ""}, {"type": "signature_delta", "signature": "ab"})
    assert decode(stream(hidden, spoken(1, "a")))[0] == Reply(
        text="a",
        usage=USAGE,
        model="claude-x",
        opaque=(Opaque("anthropic_messages host/m", Raw(b'{"type":"thinking","thinking":"","signature":"ab"}')),),
    )


def test_thoughts_between_other_blocks_are_read_but_not_kept():
    answer, _ = decode(stream(thinking(0, "One.", "a"), spoken(1, "x"), thinking(2, "Two.", "b"), spoken(3, "y")))
    assert answer == Reply("xy", (), USAGE, "stop", "claude-x", "One.\n\nTwo.")


def test_what_is_not_known_is_passed_over():
    search = block(0, {"type": "server_tool_use", "id": 7, "name": "web", "input": "?"}, {"type": "new", "text": "no"})
    odd = event("future_event", index="seven", delta=3)
    cited = block(1, text(""), {"type": "citations_delta", "citation": {}}, {"type": "text_delta", "text": "a"})
    assert decode(stream(search, odd, cited))[0] == Reply("a", (), USAGE, "stop", "claude-x")


def test_an_input_may_come_at_once():
    assert decode(stream(block(0, use("t", path="a"))))[0].calls == (ToolCall("t", "look", '{"path":"a"}'),)


def test_calls_without_ids_get_ids_that_stay_the_same():
    answer = stream(called(0, "", "{}"), called(1, "", "{}"))
    first = decode(answer)[0].calls
    assert first == decode(answer)[0].calls
    assert len({call.id for call in first} | {""}) == 3


def test_usage_counts_thoughts_where_the_host_tells_them():
    end = event(
        "message_delta",
        delta={"stop_reason": "end_turn"},
        usage={"input_tokens": 3, "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 4}},
    )
    assert decode(event("message_start", message={}) + end)[0] == Reply("", (), Usage(3, 9, reasoning=4), model="m")


def test_a_body_that_is_no_stream_is_read_as_well():
    whole = {
        "id": "msg_1",
        "type": "message",
        "model": "claude-x",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "ab"},
            text("Hi"),
            use("toolu_1", path="a"),
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 5, "output_tokens": 1},
    }
    pretty = msgspec.json.format(msgspec.json.encode(whole), indent=2)
    assert decode(pretty, (3, 40))[0] == Reply(
        text="Hi",
        calls=(ToolCall("toolu_1", "look", '{"path":"a"}'),),
        usage=Usage(5, 1),
        finish="calls",
        model="claude-x",
        reasoning="hm",
        opaque=(Opaque("anthropic_messages host/m", Raw(b'{"type":"thinking","thinking":"hm","signature":"ab"}')),),
    )


@pytest.mark.parametrize("end", [0, 2, 5, 8, 100, 400])
def test_a_stream_without_its_end_is_cut(end):
    with pytest.raises(StreamCut, match="host broke off in the middle of its answer for "):
        decode(MIXED[:end])


def test_the_last_blank_lines_may_be_missing():
    assert decode(MIXED.rstrip())[0] == MIXED_REPLY


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>Login</html>",
        b"<html>\nLogin\n</html>\n",
        b'{"hello": 1}',
        b"{",
        b"[]",
        b'{"type":"message","content":3}',
        b"data: {garbage\n\n",
        b'data: {"type":"\x80"}\n\n',
        b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n',
        b'data: {"type":"content_block_delta","delta":3}\n\n',
        b'data: {"type":"content_block_start","content_block":{"type":"text","text":3}}\n\n',
    ],
)
def test_what_is_not_of_this_dialect_is_the_hosts_failure(answer):
    with pytest.raises(HostFailed, match="not an Anthropic message"):
        decode(answer)


@pytest.mark.parametrize(
    "kind, error",
    [
        ("overloaded_error", HostFailed),
        ("api_error", HostFailed),
        ("timeout_error", HostFailed),
        ("rate_limit_error", RateLimited),
        ("invalid_request_error", BadRequest),
        ("authentication_error", KeyRefused),
        ("permission_error", KeyRefused),
        ("not_found_error", UnknownModel),
        ("billing_error", OutOfCredit),
        ("request_too_large", ContextOverflow),
        ("a_new_error", HostFailed),
    ],
)
def test_an_error_inside_the_stream_is_raised_by_its_kind(kind, error):
    decoder = Decoder("host", "m")
    decoder.feed(event("message_start", message={}) + spoken(0, "a"))
    with pytest.raises(error) as raised:
        decoder.feed(event("error", error={"type": kind, "message": "No."}))
    assert type(raised.value) is error


def test_an_error_may_be_all_that_comes():
    with pytest.raises(RateLimited):
        decode(b'{"type":"error","error":{"type":"rate_limit_error","message":"No."}}')


@pytest.mark.parametrize(
    "status, kind, message, error",
    [
        (400, "invalid_request_error", "prompt is too long: 209761 tokens > 200000 maximum", ContextOverflow),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
            ContextOverflow,
        ),
        (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.", OutOfCredit),
        (400, "invalid_request_error", "messages: roles must alternate", BadRequest),
        (401, "authentication_error", "invalid x-api-key", KeyRefused),
        (403, "permission_error", "Your API key does not have permission.", KeyRefused),
        (404, "not_found_error", "model: claude-0", UnknownModel),
        (413, "request_too_large", "Request exceeds the maximum size", ContextOverflow),
        (429, "rate_limit_error", "Number of request tokens has exceeded your rate limit", RateLimited),
        (529, "overloaded_error", "Overloaded", HostFailed),
    ],
)
def test_a_refusal_is_told_by_its_kind(status, kind, message, error):
    refusal = msgspec.json.encode({"type": "error", "error": {"type": kind, "message": message}})
    assert type(error_from("host", "m", status, {}, refusal)) is error


# Asking


def test_the_key_is_shown_in_a_header_of_its_own():
    assert path("any") == "/v1/messages"
    assert headers("k") == {"anthropic-version": "2023-06-01", "x-api-key": "k"}
    assert headers("") == {"anthropic-version": "2023-06-01"}


def test_a_request_says_all_that_the_host_needs():
    talk = (
        user("hi"),
        Message(
            "assistant",
            said("Let me look."),
            calls=(ToolCall("toolu_1", "look", ' {"path": "a"}'), ToolCall("toolu_2", "look", "")),
            reasoning="hm",
            opaque=(thought(BUDGETED),),
        ),
        result("toolu_1"),
        Message("tool", (Text("y"), Text("z")), answers="toolu_2"),
        user("and?"),
    )
    assert body(prompt(*talk, system="Be brief.", tools=(LOOK,), temperature=0.5, tail="It is noon.")) == {
        "model": BUDGETED,
        "max_tokens": 8192,
        "stream": True,
        "temperature": 0.5,
        "system": [text("Be brief.") | MARK],
        "tools": [{"name": "look", "description": "Looks at a file.", "input_schema": LOOK.schema}],
        "messages": [
            {"role": "user", "content": [text("hi") | MARK]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s1g=="},
                    text("Let me look."),
                    use("toolu_1", path="a"),
                    use("toolu_2"),
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": [text("x")]},
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": [text("y"), text("z")]},
                    text("and?") | MARK,
                    text("It is noon."),
                ],
            },
        ],
    }


def test_what_is_not_there_is_not_sent():
    assert body(prompt(user("hi"))) == {
        "model": BUDGETED,
        "max_tokens": 8192,
        "stream": True,
        "messages": [{"role": "user", "content": [text("hi") | MARK]}],
    }


def test_without_a_system_prompt_the_last_tool_is_marked():
    sent = body(prompt(user("hi"), tools=(LOOK, replace(LOOK, name="list", schema={}))))
    assert sent["tools"] == [
        {"name": "look", "description": "Looks at a file.", "input_schema": LOOK.schema},
        {"name": "list", "description": "Looks at a file.", "input_schema": {"type": "object"}} | MARK,
    ]


def test_the_marks_are_where_this_request_ends_and_where_the_one_before_did():
    ids = tuple(f"toolu_{number}" for number in range(15))
    talk = [user("a"), assistant("b"), user("c")]
    before = encode(prompt(*talk, system="s", tail="now"), PLAIN, "host")
    talk += [calling(*ids), *(result(id) for id in ids)]
    sent = body(prompt(*talk, system="s", tail="later"))
    marked = [
        (place, at)
        for place, message in enumerate(sent["messages"])
        for at, block in enumerate(message["content"])
        if "cache_control" in block
    ]
    assert marked == [(2, 0), (4, 14)]
    assert msgspec.json.decode(before)["messages"][2]["content"] == [text("c") | MARK, text("now")]


@pytest.mark.parametrize(
    "last, messages",
    [
        ((), [{"role": "user", "content": [text("now")]}]),
        ((user("hi"),), [{"role": "user", "content": [text("hi"), text("now")]}]),
        (
            (assistant("a"),),
            [
                {"role": "user", "content": [text("(The conversation begins with an answer.)")]},
                {"role": "assistant", "content": [text("a")]},
                {"role": "user", "content": [text("now")]},
            ],
        ),
    ],
)
def test_the_tail_stands_at_the_very_end(last, messages):
    assert messages_of(*last, tail="now") == messages


def test_a_request_never_ends_with_an_answer():
    assert messages_of(user("a"), assistant("b"), tail=" ")[-1] == {"role": "user", "content": [text("Go on.")]}
    assert messages_of() == [{"role": "user", "content": [text("Go on.")]}]


def test_messages_of_one_side_are_joined_and_empty_ones_are_dropped():
    talk = (user("a"), user(" \n"), user("b"), assistant(""), user("c"), assistant("d"), user(""), assistant("e"))
    assert messages_of(*talk, user("f")) == [
        {"role": "user", "content": [text("a"), text("b"), text("c")]},
        {"role": "assistant", "content": [text("d"), text("e")]},
        {"role": "user", "content": [text("f")]},
    ]


def test_results_come_first_and_an_empty_one_has_no_content():
    talk = (user("a"), calling("toolu_1", "toolu_2"), user("wait"), result("toolu_1", ""), result("toolu_2"))
    assert messages_of(*talk)[-1]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1"},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": [text("x")]},
        text("wait"),
    ]


def test_a_result_without_its_call_is_shown_as_text():
    assert messages_of(result("toolu_1"), user("a")) == [{"role": "user", "content": [text("x"), text("a")]}]


def test_results_that_come_later_than_others_of_the_same_answer_find_it():
    ask = prompt(user("a"), calling("c1", "c2"), result("c1"))
    body(ask)
    ask.transcript.messages.append(result("c2", "y"))
    assert without_marks(body(ask)["messages"][-1]["content"]) == [
        {"type": "tool_result", "tool_use_id": "c1_1", "content": [text("x")]},
        {"type": "tool_result", "tool_use_id": "c2_1", "content": [text("y")]},
    ]


def test_a_history_of_other_hosts_is_taken_over():
    foreign = Opaque("openai_chat host/m", Raw(b"[1]"))
    talk = (
        user("a"),
        replace(calling("call.1|fc", opaque=(foreign, thought("claude-opus-4-5"))), reasoning="hm"),
        result("call.1|fc"),
        Message("assistant", calls=(ToolCall("c", "functions.look", '{"path": "a'),)),
        result("c", "no"),
        Message("assistant", calls=(ToolCall("c", "look", "[1]"),)),
        result("c", "no"),
    )
    sent = messages_of(*talk)
    ids = [message["content"][0]["id"] for message in sent if message["role"] == "assistant"]
    assert re.fullmatch("[0-9a-f]{16}_1", ids[0])
    assert [message["content"] for message in sent[1:]] == [
        [use(ids[0])],
        [{"type": "tool_result", "tool_use_id": ids[0], "content": [text("x")]}],
        [{"type": "tool_use", "id": "c_3", "name": "functions_look", "input": {"_raw": '{"path": "a'}}],
        [{"type": "tool_result", "tool_use_id": "c_3", "content": [text("no")]}],
        [use("c_5", _raw="[1]")],
        [{"type": "tool_result", "tool_use_id": "c_5", "content": [text("no")]}],
    ]


def test_thoughts_do_not_stand_alone():
    assert messages_of(user("a"), Message("assistant", said(""), opaque=(thought(BUDGETED),)), user("b")) == [
        {"role": "user", "content": [text("a"), text("b")]}
    ]


def test_thoughts_that_hold_only_for_what_stood_before_them_are_not_sent_back():
    talk = (user("a"), calling("toolu_1", opaque=(thought(BINDING),)), result("toolu_1"))
    assert messages_of(*talk, model=BINDING)[1]["content"] == [use("toolu_1")]


def test_an_answer_is_sent_back_as_it_came():
    answer, _ = decode(MIXED)
    message = Message("assistant", said(answer.text), answer.calls, "", answer.reasoning, answer.opaque)
    sent = encode(prompt(user("a"), message, model="m"), PLAIN, "host")
    assert b'[{"type":"thinking","thinking":"Let me ","signature":"ab"},{"type":"redacted_thinking",' in sent
    assert without_marks(msgspec.json.decode(sent)["messages"][1]["content"]) == [
        {"type": "thinking", "thinking": "Let me ", "signature": "ab"},
        {"type": "redacted_thinking", "data": "EmwK+x=="},
        text("Grüße 👩‍🚀"),
        use("toolu_1", path="a"),
        use("toolu_2"),
    ]


def shown(*media: Media, **fields) -> Prompt:
    ask = prompt(
        Message("user", (Text("see"), *media)),
        calling("toolu_1"),
        Message("tool", (Text("done"), *media), answers="toolu_1"),
        **fields,
    )
    ask.transcript.files.update(f1=b"\x89PNG", f2=b"%PDF")
    return ask


PNG, PDF, HEIC = Media("f1", "image/png"), Media("f2", "application/pdf", "a.pdf"), Media("f1", "image/heic", "a.heic")


def test_images_and_documents_are_shown_also_in_results():
    blocks = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
            "title": "a.pdf",
        },
        text("[a.heic: not shown]"),
        text("[gone.png: not shown]"),
    ]
    sent = without_marks(body(shown(PNG, PDF, HEIC, Media("f9", "image/png", "gone.png")))["messages"])
    assert sent[0]["content"] == [text("see"), *blocks]
    assert sent[2]["content"] == [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [text("done"), *blocks]}]


def test_a_model_that_cannot_see_is_told_the_name():
    assert without_marks(body(shown(PNG, PDF, sees=False))["messages"][0]["content"]) == [
        text("see"),
        text("[image/png: not shown]"),
        text("[a.pdf: not shown]"),
    ]


def budget(tokens: int) -> dict:
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


def effort(level: str) -> dict:
    return {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": level}}


LOW = {"output_config": {"effort": "low"}}


@pytest.mark.parametrize(
    "model, level, limit, sent",
    [
        (BUDGETED, "", 8192, {"temperature": 0.5}),
        (BUDGETED, "none", 8192, {"temperature": 0.5}),
        (BUDGETED, "minimal", 8192, budget(1024)),
        (BUDGETED, "low", 8192, budget(2048)),
        (BUDGETED, "medium", 12288, budget(8192)),
        (BUDGETED, "high", 28672, budget(24576)),
        ("claude-sonnet-4-20250514", "low", 8192, budget(2048)),
        ("claude-3-7-sonnet-20250219", "low", 8192, budget(2048)),
        ("claude-haiku-4-5-20251001", "low", 8192, budget(2048)),
        ("some-other-model", "low", 8192, budget(2048)),
        (ADAPTIVE, "", 8192, {"temperature": 0.5}),
        (ADAPTIVE, "none", 8192, {"temperature": 0.5}),
        (ADAPTIVE, "minimal", 8192, effort("low")),
        ("anthropic/claude-sonnet-4.6", "medium", 12288, effort("medium")),
        ("claude-opus-4-7", "", 8192, {}),
        ("claude-opus-4-7", "none", 8192, {}),
        ("claude-opus-4-8", "high", 28672, effort("high")),
        ("claude-opus-5", "none", 8192, LOW),
        ("claude-sonnet-5-20260901", "", 8192, {}),
        ("claude-haiku-5-5", "low", 8192, effort("low")),
    ],
)
def test_effort_is_asked_for_as_the_model_takes_it(model, level, limit, sent):
    asked = body(prompt(user("a"), model=model, effort=level, temperature=0.5))
    del asked["messages"]
    assert asked == {"model": model, "max_tokens": limit, "stream": True, **sent}


def test_a_budget_leaves_room_for_the_answer_and_a_larger_limit_stays():
    limits = [body(prompt(effort="medium", max_tokens=limit))["max_tokens"] for limit in (0, 500, 8192, 64000)]
    assert limits == [12288, 8692, 12288, 64000]


def test_a_host_that_takes_no_effort_is_told_none():
    assert "thinking" not in body(prompt(user("a"), effort="high"), Quirks(effort=""))


@pytest.mark.parametrize(
    "fields, sent",
    [
        ({"temperature": 1.7, "top_p": 0.9}, {"temperature": 1.0}),
        ({"top_p": 0.9}, {"top_p": 0.9}),
        ({"top_p": 0.9, "effort": "low"}, {}),
    ],
)
def test_of_two_ways_to_sample_one_is_asked_for(fields, sent):
    asked = body(prompt(user("a"), **fields))
    assert {key: value for key, value in asked.items() if key in ("temperature", "top_p")} == sent


@pytest.mark.parametrize(
    "model, talk, thinks",
    [
        (BUDGETED, (user("a"), calling("c"), result("c")), False),
        (BUDGETED, (user("a"), calling("c", opaque=(thought(ADAPTIVE),)), result("c")), False),
        (BUDGETED, (user("a"), calling("c", opaque=(thought(BUDGETED),)), result("c")), True),
        # Without interleaving, a model with a budget thinks before the first call of a turn only.
        (
            BUDGETED,
            (user("a"), calling("c", opaque=(thought(BUDGETED),)), result("c"), calling("d"), result("d")),
            True,
        ),
        (BUDGETED, (user("a"), calling("c"), result("c"), assistant("b"), user("c")), True),
        (ADAPTIVE, (user("a"), calling("c"), result("c")), True),
    ],
)
def test_a_turn_that_began_without_thoughts_goes_on_without(model, talk, thinks):
    asked = body(prompt(*talk, model=model, effort="low", temperature=0.5))
    assert ("thinking" in asked, "temperature" in asked) == (thinks, not thinks)


texts = st.text(st.characters(codec=None), max_size=20)
messages = st.one_of(
    st.builds(user, texts),
    st.builds(assistant, texts),
    st.builds(lambda args: Message("assistant", calls=(ToolCall("c", "look", args),)), texts),
    st.builds(lambda text: result("c", text), texts),
    st.builds(lambda text: Message("assistant", said(text), opaque=(thought(BUDGETED),)), texts),
)
MARKED = b',"cache_control":{"type":"ephemeral"}'


@given(st.lists(messages, min_size=1, max_size=8), texts, st.booleans())
def test_a_request_begins_with_the_bytes_of_the_one_before(talk, tail, with_tools):
    transcript = Transcript()
    before = b""
    for message in talk:
        transcript.messages.append(message)
        ask = prompt(transcript=transcript, tools=(LOOK,) if with_tools else ())
        now = encode(ask, PLAIN, "host")
        kept = b",".join(transcript.rendered[("anthropic_messages", "host", BUDGETED, True, PLAIN)].messages)
        assert kept.startswith(before)
        assert kept.removesuffix(b"]}") in now.replace(MARKED, b"")
        with_tail = encode(replace(ask, tail=tail), PLAIN, "host")
        assert kept.removesuffix(b"]}") in with_tail.replace(MARKED, b"")
        check_rules(msgspec.json.decode(now))
        check_rules(msgspec.json.decode(with_tail))
        before = kept.removesuffix(b"]}")


def check_rules(body: dict) -> None:
    """Roles take turns and the user is first and last; no block is empty; thoughts are never last; four marks."""
    roles = [message["role"] for message in body["messages"]]
    assert roles == [("user", "assistant")[place % 2] for place in range(len(roles))]
    assert roles[-1] == "user"
    blocks = [block for message in body["messages"] for block in message["content"]]
    assert all(block["text"].strip() for block in blocks if block["type"] == "text")
    assert all(message["content"][-1]["type"] != "thinking" for message in body["messages"])
    ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert len(ids) == len(set(ids))
    assert sum("cache_control" in block for block in [*blocks, *body.get("system", ()), *body.get("tools", ())]) <= 4


def test_a_message_is_rendered_once():
    ask = prompt(user("a"), assistant("b"), user("c"))
    encode(ask, PLAIN, "host")
    kept = ask.transcript.rendered["anthropic_messages", "host", BUDGETED, True, PLAIN]
    first = list(kept.messages)
    ask.transcript.messages += [assistant("d"), user("e")]
    encode(ask, PLAIN, "host")
    assert [now is then for now, then in zip(kept.messages, first, strict=False)] == [True, True, True]
    assert len(kept.messages) == 5


def test_a_changed_prefix_is_rendered_anew():
    ask = prompt(user("a"))
    encode(ask, PLAIN, "host")
    changed = replace(ask, system="Be long.", tools=(LOOK,))
    assert encode(changed, PLAIN, "host") == encode(prompt(user("a"), system="Be long.", tools=(LOOK,)), PLAIN, "host")
