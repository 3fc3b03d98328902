from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from everloop.core.message import Media, Message, Opaque, Text, said
from everloop.core.prompt import Prompt, Transcript, Usage
from everloop.core.tool import ToolCall, ToolSpec
from everloop.errors import BadRequest, ContextOverflow, HostFailed, KeyRefused, ProviderError, RateLimited, StreamCut
from everloop.ports.provider import Delta, Reply
from everloop.providers.dialects.call_pieces import short_id
from everloop.providers.dialects.openai_responses import decoder as Decoder
from everloop.providers.dialects.openai_responses import encode, error_from, headers, path
from everloop.providers.dialects.quirks import Quirks

RECORDINGS = Path(__file__).parent / "recordings" / "openai_responses"
COMPLETED = sorted(
    file.stem for file in RECORDINGS.glob("*.sse") if b'"response.completed"' in file.read_bytes().splitlines()[-2]
)
LOOK = ToolSpec("look", "Looks at a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
PLAIN = Quirks()
CAT = Media("f1", "image/png", "cat.png")
PAPER = Media("f2", "application/pdf", "paper.pdf")
FILES = {"f1": b"meow", "f2": b"%PDF"}
CAT_ITEM = {"type": "input_image", "image_url": "data:image/png;base64,bWVvdw==", "detail": "auto"}
PAPER_ITEM = {"type": "input_file", "filename": "paper.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}


def recording(case: str) -> bytes:
    return (RECORDINGS / f"{case}.sse").read_bytes()


def prompt(*messages: Message, **fields) -> Prompt:
    transcript = Transcript(messages)
    transcript.files |= FILES
    return Prompt(**{"model": "m", "system": "Be brief.", "transcript": transcript, **fields})


def user(*parts: str | Media) -> Message:
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def body(prompt: Prompt, quirks: Quirks = PLAIN, host: str = "host"):
    return msgspec.json.decode(encode(prompt, quirks, host))


def items(*messages: Message, **fields) -> list:
    return body(prompt(*messages, **fields))["input"]


def read(text: str) -> dict:
    return {"type": "input_text", "text": text}


def decode(stream: bytes, cuts: tuple[int, ...] = ()) -> tuple[Reply, list[Delta]]:
    decoder = Decoder("host", "m")
    edges = [0, *sorted({cut % (len(stream) + 1) for cut in cuts}), len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(edges) if start < end]
    deltas = [decoder.feed(piece) for piece in [*pieces, b""]]
    return decoder.reply(), [delta for delta in deltas if delta]


def reply(stream: bytes) -> Reply:
    return decode(stream)[0]


def events(*data: dict) -> bytes:
    return b"".join(b"event: %s\ndata: %s\n\n" % (one["type"].encode(), msgspec.json.encode(one)) for one in data)


def event(type: str, **fields) -> dict:
    return {"type": f"response.{type}", **fields}


def item_done(index: int, **item) -> dict:
    return event("output_item.done", output_index=index, item=item)


def message_done(index: int, text: str, **more) -> dict:
    return item_done(index, type="message", content=[{"type": "output_text", "text": text}], **more)


END = event("completed", response={"status": "completed", "output": []})


def data_of(stream: bytes) -> list[dict]:
    return [msgspec.json.decode(line[6:]) for line in stream.splitlines() if line.startswith(b"data: ")]


def test_the_host_is_asked_at_its_own_path_with_the_key():
    assert path("m") == "/responses"
    assert headers("k") == {"Authorization": "Bearer k"}
    assert headers("") == {}


def test_a_request_says_all_that_the_host_needs():
    talk = (
        user("hi"),
        Message("assistant", said("I look."), (ToolCall("c1", "look", '{"path":"a"}'), ToolCall("c2", "look", ""))),
        Message("tool", said("x"), answers="c1"),
        Message("tool", (Text("y"), Text("z")), answers="c2"),
        Message("assistant", said("done"), reasoning="hm"),
        user("and?"),
    )
    assert body(prompt(*talk, tools=(LOOK,), temperature=0.5, top_p=0.9, effort="low")) == {
        "model": "m",
        "stream": True,
        "store": False,
        "max_output_tokens": 8192,
        "temperature": 0.5,
        "top_p": 0.9,
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "tools": [
            {
                "type": "function",
                "name": "look",
                "description": "Looks at a file.",
                "parameters": LOOK.schema,
                "strict": False,
            }
        ],
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [read("hi")]},
            {"role": "assistant", "content": "I look."},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"path":"a"}'},
            {"type": "function_call", "call_id": "c2", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "x"},
            {"type": "function_call_output", "call_id": "c2", "output": "y\nz"},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": [read("and?")]},
        ],
    }


def test_what_is_not_there_is_not_sent():
    assert body(prompt(user("hi"), system=""), Quirks(token_limit_field="")) == {
        "model": "m",
        "stream": True,
        "store": False,
        "input": [{"role": "user", "content": [read("hi")]}],
    }


def test_encrypted_thoughts_are_asked_for_only_along_with_an_effort():
    without = body(prompt(user("hi")))
    assert body(prompt(user("hi"), effort="none")) == {**without, "reasoning": {"effort": "none"}}
    assert body(prompt(user("hi"), effort="high"), Quirks(effort="")) == without


@pytest.mark.parametrize("conversation, key", [("t1", "t1"), ("t" * 64, "t" * 64), ("t" * 65, short_id("t" * 65))])
def test_the_cache_is_named_after_the_conversation_within_the_hosts_limit(conversation, key):
    quirks = Quirks(conversation_field="prompt_cache_key")
    assert body(prompt(user("hi"), conversation=conversation), quirks)["prompt_cache_key"] == key


def test_a_calls_id_is_kept_within_the_hosts_limit():
    call = ToolCall("c" * 65, "look", "{}")
    asked, answered = items(Message("assistant", calls=(call,)), Message("tool", said("x"), answers=call.id))
    assert asked["call_id"] == answered["call_id"]
    assert len(asked["call_id"]) == 9


def test_images_and_documents_are_shown():
    assert items(user("Look:", CAT, PAPER)) == [{"role": "user", "content": [read("Look:"), CAT_ITEM, PAPER_ITEM]}]


def test_a_tools_result_may_hold_images_and_documents():
    result = Message("tool", (Text("Here:"), CAT, PAPER), answers="c")
    assert items(result) == [
        {"type": "function_call_output", "call_id": "c", "output": [read("Here:"), CAT_ITEM, PAPER_ITEM]}
    ]


def test_what_a_model_cannot_see_is_named():
    talk = (user("Look:", CAT), Message("tool", (Text("Here:"), PAPER), answers="c"))
    assert items(*talk, sees=False) == [
        {"role": "user", "content": [read("Look:"), read("[cat.png: not shown]")]},
        {"type": "function_call_output", "call_id": "c", "output": "Here:\n[paper.pdf: not shown]"},
    ]


def test_a_file_that_is_gone_is_named():
    assert items(user(Media("f9", "image/png"))) == [{"role": "user", "content": [read("[image/png: not shown]")]}]


def answer(reply: Reply) -> Message:
    return Message("assistant", said(reply.text), reply.calls, "", reply.reasoning, reply.opaque)


def test_thoughts_go_back_to_the_byte_at_the_places_where_they_stood():
    stream = recording("many_thoughts")
    heard = reply(stream)
    sent = encode(prompt(answer(heard)), PLAIN, "host")
    done = [line for line in stream.splitlines() if b'"response.output_item.done"' in line]
    thoughts = [line.partition(b'"item":')[2][:-1] for line in done if b'"type":"reasoning"' in line]
    assert [thought in sent for thought in thoughts] == [True, True]
    first, words, look_a, second, look_b = (msgspec.json.decode(line[6:])["item"] for line in done)
    assert msgspec.json.decode(sent)["input"] == [
        first,
        {
            "type": "message",
            "id": words["id"],
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
        },
        {key: value for key, value in look_a.items() if key != "status"},
        second,
        {key: value for key, value in look_b.items() if key != "status"},
    ]


@pytest.mark.parametrize("fields, host", [({"model": "other"}, "host"), ({}, "elsewhere")])
def test_thoughts_go_to_no_other_model_and_no_other_host(fields, host):
    heard = reply(recording("many_thoughts"))
    a, b = ({"type": "function_call", "call_id": c.id, "name": c.name, "arguments": c.args} for c in heard.calls)
    assert body(prompt(answer(heard), **fields), host=host)["input"] == [
        {"role": "assistant", "content": "Let me look."},
        a,
        b,
    ]


def test_thoughts_that_the_host_does_not_show_are_not_sent_and_neither_are_ids():
    shown = item_done(0, type="reasoning", id="rs_1", encrypted_content="x", summary=[])
    hidden = item_done(1, type="reasoning", id="rs_2", encrypted_content=None, summary=[])
    call = item_done(2, type="function_call", id="fc_1", call_id="c", name="look", arguments="{}")
    heard = reply(events(shown, hidden, call, END))
    assert heard == Reply("", (ToolCall("c", "look", "{}"),), finish="calls", model="m")
    assert items(answer(heard)) == [{"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}]


def test_a_thought_that_nothing_follows_is_not_sent():
    heard = reply(recording("many_thoughts"))
    without_calls = items(replace(answer(heard), calls=()))
    assert [one["type"] for one in without_calls] == ["reasoning", "message"]
    alone = reply(events(item_done(0, type="reasoning", id="rs_1", encrypted_content="x", summary=[]), END))
    assert items(answer(alone)) == []


def test_an_answer_that_was_changed_is_no_longer_the_models_own():
    heard = reply(recording("many_thoughts"))
    assert items(replace(answer(heard), parts=said("No."), calls=())) == [{"role": "assistant", "content": "No."}]


def test_several_messages_stay_several_and_keep_their_phases():
    stream = events(
        message_done(0, "I look.", id="msg_1", phase="commentary"),
        message_done(1, "", id="msg_2"),
        message_done(2, "Done.", id="msg_3", phase="final_answer"),
        END,
    )
    heard = reply(stream)
    assert heard.text == "I look.\n\nDone."
    assert [(one["id"], one["phase"], one["content"][0]["text"]) for one in items(answer(heard))] == [
        ("msg_1", "commentary", "I look."),
        ("msg_3", "final_answer", "Done."),
    ]


def test_what_another_dialect_has_kept_is_left_alone():
    foreign = Opaque("anthropic_messages host/m", msgspec.Raw(b'{"type":"thinking"}'))
    message = Message("assistant", said("a"), opaque=(foreign,))
    assert items(message) == [{"role": "assistant", "content": "a"}]


NOON = read("It is noon.")


@pytest.mark.parametrize(
    "last, sent",
    [
        ((), [{"role": "user", "content": [NOON]}]),
        ((user('say "hi"'),), [{"role": "user", "content": [read('say "hi"'), NOON]}]),
        ((user(),), [{"role": "user", "content": [read(""), NOON]}]),
        ((user(CAT),), [{"role": "user", "content": [CAT_ITEM, NOON]}]),
        (
            (Message("tool", said("x"), answers="c"),),
            [{"type": "function_call_output", "call_id": "c", "output": "x\n\nIt is noon."}],
        ),
        (
            (Message("tool", (CAT,), answers="c"),),
            [{"type": "function_call_output", "call_id": "c", "output": [CAT_ITEM, NOON]}],
        ),
        (
            (Message("assistant", said("a")),),
            [{"role": "assistant", "content": "a"}, {"role": "user", "content": [NOON]}],
        ),
    ],
)
def test_the_tail_stands_at_the_very_end(last, sent):
    assert items(*last, tail="It is noon.") == sent


THOUGHTFUL = answer(reply(recording("many_thoughts")))
texts = st.text(st.characters(codec=None), max_size=20)
messages = st.one_of(
    st.builds(user, texts),
    st.builds(lambda text: user(text, CAT), texts),
    st.builds(lambda text: Message("assistant", said(text)), texts),
    st.builds(lambda args: Message("assistant", calls=(ToolCall("c", "look", args),)), texts),
    st.builds(lambda text: Message("tool", said(text), answers="c"), texts),
    st.builds(lambda text: Message("tool", (Text(text), CAT), answers="c"), texts),
    st.just(THOUGHTFUL),
)


@given(st.lists(messages, min_size=1, max_size=8), texts, st.booleans())
def test_a_request_begins_with_the_bytes_of_the_one_before(talk, tail, with_tools):
    ask = prompt(tools=(LOOK,) if with_tools else ())
    before = encode(ask, PLAIN, "host")
    for message in talk:
        ask.transcript.messages.append(message)
        now = encode(ask, PLAIN, "host")
        assert now.startswith(before.removesuffix(b"]}"))
        with_tail = encode(replace(ask, tail=tail), PLAIN, "host")
        assert with_tail.startswith(now.removesuffix(b"]}").removesuffix(b'"}').removesuffix(b"]}"))
        msgspec.json.decode(with_tail)
        before = now


def test_a_message_is_rendered_once():
    ask = prompt(user("a"), THOUGHTFUL)
    encode(ask, PLAIN, "host")
    kept = ask.transcript.rendered["openai_responses", "host", "m", True, PLAIN]
    first = list(kept.messages)
    ask.transcript.messages.append(user("c"))
    encode(ask, PLAIN, "host")
    assert [now is then for now, then in zip(kept.messages, first, strict=False)] == [True] * 6
    assert len(kept.messages) == 7


def test_a_changed_prefix_is_rendered_anew():
    ask = prompt(user("a"))
    encode(ask, PLAIN, "host")
    changed = replace(ask, system="Be long.", tools=(LOOK,))
    assert encode(changed, PLAIN, "host") == encode(prompt(user("a"), system="Be long.", tools=(LOOK,)), PLAIN, "host")


def test_several_thoughts_are_parted_by_a_blank_line():
    heard = reply(recording("many_thoughts"))
    calls = heard.calls
    assert replace(heard, opaque=()) == Reply(
        text="Let me look.",
        calls=(ToolCall(calls[0].id, "look", '{"path":"a.txt"}'), ToolCall(calls[1].id, "look", '{"path":"b.txt"}')),
        usage=Usage(58, 190, reasoning=128),
        finish="calls",
        model="gpt-5-mini-2025-08-07",
        reasoning="**Looking first**\n\nTwo files.\n\nAnd b.",
    )
    assert [opaque.dialect for opaque in heard.opaque] == ["openai_responses host/m"]


@pytest.mark.parametrize("case", COMPLETED)
def test_an_answer_can_come_byte_by_byte(case):
    stream = recording(case)
    assert decode(stream, tuple(range(len(stream))))[0] == reply(stream)


def test_one_network_read_gives_one_delta():
    assert decode(recording("reasoning"))[1] == [Delta("Four.", "Two and two.")]


@pytest.mark.parametrize("case", COMPLETED)
def test_an_answer_that_is_not_streamed_is_the_same(case):
    whole = data_of(recording(case))[-1]["response"]
    assert reply(b"\n" + msgspec.json.encode(whole) + b"\n") == reply(recording(case))


@pytest.mark.parametrize("case", COMPLETED)
def test_an_answer_whose_items_come_only_at_its_end_is_the_same(case):
    first, *_, last = data_of(recording(case))
    assert reply(events(first, last)) == reply(recording(case))


@pytest.mark.parametrize("case", COMPLETED)
def test_an_answer_whose_items_are_not_repeated_at_its_end_is_the_same(case):
    *others, last = data_of(recording(case))
    assert reply(events(*others, {**last, "response": {**last["response"], "output": []}})) == reply(recording(case))


PIECES = [event("function_call_arguments.delta", output_index=1, delta=piece) for piece in ('{"a":', "1}")]
ARGS_DONE = event("function_call_arguments.done", output_index=1, arguments='{"a":1}')


@pytest.mark.parametrize("sent", [PIECES, [ARGS_DONE], [*PIECES, ARGS_DONE]], ids=["pieces", "whole", "both"])
def test_a_call_that_is_never_told_to_be_done_is_put_together(sent):
    begun = event("output_item.added", output_index=1, item={"type": "function_call", "call_id": "c", "name": "look"})
    assert reply(events(begun, *sent, END)).calls == (ToolCall("c", "look", '{"a":1}'),)


def test_what_we_do_not_know_is_passed_over():
    stream = events(
        event("queued", response={"id": "r"}),
        event("reasoning.delta", delta={"text": "?"}),
        event("output_item.added", output_index=0, item={"type": "web_search_call", "content": "?"}),
        event("output_item.done", output_index=0, item={"type": "web_search_call", "content": "?"}),
        event("output_text.delta", output_index=1, delta="a"),
        message_done(1, "a"),
        END,
    )
    assert reply(b": hello\n\n" + stream + b"data: [DONE]\n\n") == Reply("a", model="m")


def test_reasoning_may_come_as_it_is_thought():
    stream = events(*(event("reasoning_text.delta", output_index=0, delta=piece) for piece in ("a", "b")), END)
    assert reply(stream) == Reply("", model="m", reasoning="ab")


def test_done_tells_that_nothing_more_will_come():
    decoder = Decoder("host", "m")
    *begin, end, _ = recording("text").split(b"\n\n")
    states = [(decoder.feed(data + b"\n\n"), decoder.complete, decoder.done) for data in (b"\n\n".join(begin), end)]
    assert states == [(Delta("Hello there."), False, False), (None, True, True)]


@pytest.mark.parametrize(
    "reason, finish", [("max_output_tokens", "length"), ("content_filter", "refused"), (None, "length")]
)
def test_an_answer_that_the_host_ends_early_says_why(reason, finish):
    response = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    stream = events(message_done(0, "a"), event("incomplete", response=response))
    assert reply(stream) == Reply("a", finish=finish, model="m")


@pytest.mark.parametrize("end", [0, 100, 3000, 4200])
def test_a_stream_without_its_end_is_cut(end):
    with pytest.raises(StreamCut, match="host broke off in the middle of its answer for "):
        reply(recording("text")[:end])


@pytest.mark.parametrize(
    "stream",
    [
        b"data: {garbage\n\n",
        b"<html>Login</html>",
        b'{"hello": 1}',
        b"{",
        b'data: {"type":"response.created","response":3}\n\n',
        b'data: {"type":"response.output_item.done","item":{"type":"message","content":3}}\n\n',
    ],
)
def test_what_is_not_a_response_is_the_hosts_failure(stream):
    with pytest.raises(HostFailed, match="not a response"):
        reply(stream)


@pytest.mark.parametrize(
    "error, kind",
    [
        ({"message": "Rate limit reached", "code": "rate_limit_exceeded"}, RateLimited),
        ({"message": "Too Many Requests", "code": "too_many_requests"}, RateLimited),
        ({"message": "The server had an error", "code": "server_error"}, HostFailed),
        ({"message": "Our servers are currently overloaded.", "code": "server_is_overloaded"}, HostFailed),
        ({"message": "Your input exceeds the context window", "code": "context_length_exceeded"}, ContextOverflow),
        ({"message": "flagged as potentially violating our policy", "code": "invalid_prompt"}, BadRequest),
        ({"message": "too small", "code": "image_too_small"}, BadRequest),
        ({"message": "no", "code": "bio_policy"}, BadRequest),
        ({"message": "?", "code": None}, HostFailed),
    ],
)
@pytest.mark.parametrize("shape", ["flat", "nested", "bare", "failed"])
def test_an_error_inside_the_stream_is_raised_by_its_kind(error, kind, shape):
    events_of = {
        "flat": {"type": "error", **error, "param": None, "sequence_number": 2},
        "nested": {"type": "error", "error": error, "sequence_number": 2},
        "bare": {"error": error},
        "failed": event("failed", response={"status": "failed", "error": error}),
    }
    decoder = Decoder("host", "m")
    decoder.feed(events(event("output_text.delta", delta="a")))
    with pytest.raises(ProviderError) as raised:
        decoder.feed(b"data: " + msgspec.json.encode(events_of[shape]) + b"\n\n")
    assert type(raised.value) is kind


def test_a_response_that_failed_without_a_reason_is_the_hosts_failure():
    with pytest.raises(HostFailed, match="it gives no reason"):
        reply(events(event("failed", response={"status": "failed", "error": None})))


def test_an_error_may_come_as_the_whole_body():
    with pytest.raises(RateLimited):
        reply(b'{"error":{"code":"rate_limit_exceeded","message":"slow"}}')


def test_a_refusal_of_the_host_is_told_by_its_kind():
    assert type(error_from("host", "m", 401, {}, b"")) is KeyRefused
