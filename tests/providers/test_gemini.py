from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from everloop.core.message import Media, Message, Text, said
from everloop.core.prompt import Prompt, Transcript, Usage
from everloop.core.tool import ToolCall, ToolSpec
from everloop.errors import BadRequest, ContextOverflow, HostFailed, KeyRefused, RateLimited, StreamCut, UnknownModel
from everloop.ports.provider import Delta, Reply
from everloop.providers import dialects
from everloop.providers.dialects.gemini import decoder as Decoder
from everloop.providers.dialects.gemini import encode, error_from, headers, path
from everloop.providers.dialects.quirks import Quirks

RECORDINGS = Path(__file__).parent / "recordings" / "gemini"
LOOK = ToolSpec("look", "Looks at a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
PLAIN = Quirks()
OLD = "gemini-2.5-flash"
NEW = "gemini-3.8-flash"
PNG = Media("f1", "image/png", "a.png")
PDF = Media("f2", "application/pdf", "b.pdf")
GIF = Media("f3", "image/gif", "c.gif")
FILES = {"f1": b"png", "f2": b"pdf", "f3": b"gif"}
SHOWN_PNG = {"inlineData": {"mimeType": "image/png", "data": "cG5n"}}
SHOWN_PDF = {"inlineData": {"mimeType": "application/pdf", "data": "cGRm"}}


def prompt(*messages: Message, **fields) -> Prompt:
    transcript = Transcript(messages)
    transcript.files.update(FILES)
    return Prompt(**{"model": OLD, "system": "", "transcript": transcript, **fields})


def user(text: str) -> Message:
    return Message("user", said(text))


def result(text: str, id: str) -> Message:
    return Message("tool", said(text), answers=id)


def body(prompt: Prompt, quirks: Quirks = PLAIN):
    return msgspec.json.decode(encode(prompt, quirks, "host"))


def contents(*messages: Message, **fields):
    return body(prompt(*messages, **fields))["contents"]


def recording(case: str) -> bytes:
    return next(RECORDINGS.glob(f"{case}.*")).read_bytes()


def reply(stream: bytes, host: str = "host", model: str = NEW) -> Reply:
    decoder = Decoder(host, model)
    decoder.feed(stream)
    return decoder.reply()


def event(parts: str = "", finish: str = "", more: str = "") -> bytes:
    ending = f',"finishReason": "{finish}"' if finish else ""
    candidate = f'{{"content": {{"parts": [{parts}],"role": "model"}}{ending},"index": 0}}'
    return f'data: {{"candidates": [{candidate}],"responseId": "r1"{more}}}\r\n\r\n'.encode()


def test_a_model_has_its_own_path():
    assert path("gemini-2.5-pro") == "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    assert path("models/gemini-2.5-pro") == path("gemini-2.5-pro")
    assert path("../a?b#c") == "/v1beta/models/..%2Fa%3Fb%23c:streamGenerateContent?alt=sse"
    for base in ("https://generativelanguage.googleapis.com", "https://generativelanguage.googleapis.com/v1beta/"):
        assert dialects.address(base, path("m")) == (
            "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse"
        )


def test_the_key_is_shown_in_googles_own_header():
    assert headers("k") == {"x-goog-api-key": "k"}
    assert headers("") == {}


def test_a_request_says_all_that_the_host_needs():
    talk = (
        user("hi"),
        Message("assistant", said("Let me see."), (ToolCall("c1", "look", '{"path":"a"}'), ToolCall("c2", "now", ""))),
        result("x", "c1"),
        result("y", "c2"),
        user("and?"),
        Message("assistant", said("done"), reasoning="hm"),
        user("thanks"),
    )
    fields = {"system": "Be brief.", "tools": (LOOK,), "temperature": 0.5, "top_p": 0.9, "max_tokens": 99}
    assert body(prompt(*talk, **fields)) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "look", "description": "Looks at a file.", "parametersJsonSchema": LOOK.schema}
                ]
            }
        ],
        "generationConfig": {
            "maxOutputTokens": 99,
            "temperature": 0.5,
            "topP": 0.9,
            "thinkingConfig": {"includeThoughts": True},
        },
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "Let me see."},
                    {"functionCall": {"name": "look", "args": {"path": "a"}}},
                    {"functionCall": {"name": "now", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "look", "response": {"result": "x"}}},
                    {"functionResponse": {"name": "now", "response": {"result": "y"}}},
                    {"text": "and?"},
                ],
            },
            {"role": "model", "parts": [{"text": "done"}]},
            {"role": "user", "parts": [{"text": "thanks"}]},
        ],
    }


def test_what_is_not_there_is_not_sent():
    assert body(prompt(user("hi"), model="gemma-4-31b-it"), Quirks(token_limit_field="")) == {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}]
    }


def test_calls_that_gemini_3_never_made_carry_ids_and_its_word_for_that():
    talk = (
        Message("assistant", calls=(ToolCall("c1", "look", "{}"), ToolCall("c2", "look", "no JSON"))),
        result("x", "c1"),
        result("y", "c2"),
    )
    calls, results = contents(*talk, model=NEW)
    assert calls["parts"] == [
        {
            "functionCall": {"id": "c1", "name": "look", "args": {}},
            "thoughtSignature": "skip_thought_signature_validator",
        },
        {"functionCall": {"id": "c2", "name": "look", "args": {}}},
    ]
    assert results["parts"] == [
        {"functionResponse": {"id": "c1", "name": "look", "response": {"result": "x"}}},
        {"functionResponse": {"id": "c2", "name": "look", "response": {"result": "y"}}},
    ]


def test_results_stand_in_the_order_of_their_calls_and_go_to_the_latest_of_an_id():
    talk = (
        Message("assistant", calls=(ToolCall("c1", "old", "{}"),)),
        result("x", "c1"),
        Message("assistant", calls=(ToolCall("c1", "a", "{}"), ToolCall("c2", "b", "{}"))),
        result("2", "c2"),
        result("1", "c1"),
        result("?", "lost"),
    )
    assert contents(*talk)[-1]["parts"] == [
        {"functionResponse": {"name": "a", "response": {"result": "1"}}},
        {"functionResponse": {"name": "b", "response": {"result": "2"}}},
        {"functionResponse": {"name": "unknown", "response": {"result": "?"}}},
    ]


def test_images_and_pdfs_are_shown_and_the_rest_is_named():
    message = Message("user", (Text("see"), PNG, PDF, GIF, Media("f9", "image/png", "gone.png")))
    assert contents(message)[0]["parts"] == [
        {"text": "see"},
        SHOWN_PNG,
        SHOWN_PDF,
        {"text": "[c.gif: not shown]"},
        {"text": "[gone.png: not shown]"},
    ]
    assert contents(message, sees=False)[0]["parts"][1] == {"text": "[a.png: not shown]"}


def test_media_of_a_result_stand_where_the_model_takes_them():
    talk = (
        Message("assistant", calls=(ToolCall("c1", "shoot", "{}"), ToolCall("c2", "look", "{}"))),
        Message("tool", (Text("done"), PNG), answers="c1"),
        result("x", "c2"),
    )
    shot, looked = {"result": "done\n[a.png]"}, {"result": "x"}
    assert contents(*talk, model=OLD)[-1]["parts"] == [
        {"functionResponse": {"name": "shoot", "response": shot}},
        {"functionResponse": {"name": "look", "response": looked}},
        SHOWN_PNG,
    ]
    assert contents(*talk, model=NEW)[-1]["parts"] == [
        {"functionResponse": {"id": "c1", "name": "shoot", "parts": [SHOWN_PNG], "response": shot}},
        {"functionResponse": {"id": "c2", "name": "look", "response": looked}},
    ]


@pytest.mark.parametrize(
    "model, effort, thinking",
    [
        ("gemini-2.0-flash", "high", None),
        ("gemma-4-31b-it", "high", None),
        ("gemini-2.5-flash-image", "high", None),
        (OLD, "", {"includeThoughts": True}),
        (OLD, "none", {"thinkingBudget": 0}),
        (OLD, "low", {"thinkingBudget": 1024, "includeThoughts": True}),
        ("gemini-2.5-pro", "none", {"thinkingBudget": 128, "includeThoughts": True}),
        ("gemini-2.5-pro", "high", {"thinkingBudget": 24576, "includeThoughts": True}),
        ("gemini-2.5-flash-lite", "", None),
        ("gemini-2.5-flash-lite", "medium", {"thinkingBudget": 8192, "includeThoughts": True}),
        (NEW, "", {"includeThoughts": True}),
        (NEW, "none", {"thinkingLevel": "LOW"}),
        (NEW, "minimal", {"thinkingLevel": "LOW", "includeThoughts": True}),
        (NEW, "high", {"thinkingLevel": "HIGH", "includeThoughts": True}),
        ("gemini-3.1-flash-lite", "minimal", {"thinkingLevel": "MINIMAL", "includeThoughts": True}),
        ("gemini-3.1-pro-preview", "minimal", {"thinkingLevel": "LOW", "includeThoughts": True}),
        ("gemini-flash-latest", "medium", {"thinkingLevel": "MEDIUM", "includeThoughts": True}),
        ("models/gemini-4-argon", "medium", {"thinkingLevel": "MEDIUM", "includeThoughts": True}),
    ],
)
def test_each_model_is_told_how_hard_to_think_in_its_own_way(model, effort, thinking):
    sent = body(prompt(user("hi"), model=model, effort=effort), Quirks(token_limit_field=""))
    assert sent.get("generationConfig", {}).get("thinkingConfig") == thinking


def test_a_schema_loses_what_gemini_refuses():
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"A": {"type": "string"}},
        "properties": {
            "$ref": {"type": "string"},
            "a": {"$ref": "#/$defs/A", "title": "A", "description": "an a"},
            "b": {"anyOf": [{"$ref": "#/$defs/A", "type": "string"}, {"type": ["integer", "null"]}]},
        },
        "additionalProperties": False,
    }
    sent = body(prompt(user("hi"), tools=(replace(LOOK, schema=schema),)))
    assert sent["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] == {
        "type": "object",
        "$defs": {"A": {"type": "string"}},
        "properties": {
            "$ref": {"type": "string"},
            "a": {"$ref": "#/$defs/A", "description": "an a"},
            "b": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": ["integer", "null"]}]},
        },
        "additionalProperties": False,
    }


def answered(answer: Reply) -> Message:
    return Message("assistant", said(answer.text), answer.calls, reasoning=answer.reasoning, opaque=answer.opaque)


def parts_in(case: str) -> list[bytes]:
    chunks = [msgspec.json.decode(line[6:], type=Chunk) for line in recording(case).splitlines() if line]
    return [bytes(part) for chunk in chunks for part in chunk.candidates[0].content.parts]


class Content(msgspec.Struct):
    parts: list[msgspec.Raw]


class Candidate(msgspec.Struct):
    content: Content


class Chunk(msgspec.Struct):
    candidates: list[Candidate]


@pytest.mark.parametrize(
    "case, text",
    [
        ("text", b'{"text":"Hello there."},'),
        ("one_call", b""),
        ("text_and_call", b'{"text":"Let me look."},'),
        ("parallel_calls", b""),
        ("reasoning", b'{"text":"Four."},'),
        ("reasoning_and_call", b""),
    ],
)
def test_signed_parts_and_calls_go_back_byte_for_byte_where_they_stood(case, text):
    as_they_came = [part for part in parts_in(case) if b"thoughtSignature" in part or b"functionCall" in part]
    sent = encode(prompt(answered(reply(recording(case))), model=NEW), PLAIN, "host")
    assert sent.endswith(b'"contents":[{"role":"model","parts":[' + text + b",".join(as_they_came) + b"]}]}")


def test_a_signed_text_and_a_signed_thought_keep_their_places():
    parts = [
        '{"text":"I see. ","thought":true,"thoughtSignature":"c0"}',
        '{"text":"One, "}',
        '{"text":"two, ","thoughtSignature":"c2"}',
        '{"text":"three."}',
    ]
    answer = reply(event(",".join(parts), "STOP"))
    assert (answer.text, answer.reasoning) == ("One, two, three.", "I see.")
    sent = encode(prompt(answered(answer), model=NEW), PLAIN, "host")
    assert sent.endswith(b'{"role":"model","parts":[' + ",".join(parts).encode() + b"]}]}")


def test_a_signature_goes_to_nobody_but_its_signer():
    message = answered(reply(recording("one_call")))
    unsigned = {
        "functionCall": {"id": "q1w2e3r4", "name": "look", "args": {"path": "a.txt"}},
        "thoughtSignature": "skip_thought_signature_validator",
    }
    assert contents(message, model="gemini-4-argon")[0]["parts"] == [unsigned]
    other_host = msgspec.json.decode(encode(prompt(message, model=NEW), PLAIN, "other"))
    assert other_host["contents"][0]["parts"] == [unsigned]
    assert contents(message, model=OLD)[0]["parts"] == [{"functionCall": {"name": "look", "args": {"path": "a.txt"}}}]


def test_calls_that_were_dropped_are_not_brought_back_by_their_signatures():
    message = replace(answered(reply(recording("text_and_call"))), calls=())
    assert contents(message, model=NEW) == [{"role": "model", "parts": [{"text": "Let me look."}]}]


def test_a_result_says_the_id_of_its_call_only_if_the_host_gave_one():
    given_one = answered(reply(recording("one_call")))
    assert contents(given_one, result("x", given_one.calls[0].id), model=NEW)[1]["parts"] == [
        {"functionResponse": {"id": "q1w2e3r4", "name": "look", "response": {"result": "x"}}}
    ]
    given_none = answered(reply(recording("parallel_calls")))
    talk = (given_none, *(result(call.args, call.id) for call in reversed(given_none.calls)))
    assert contents(*talk, model=NEW)[1]["parts"] == [
        {"functionResponse": {"name": "look", "response": {"result": '{"path": "a.txt"}'}}},
        {"functionResponse": {"name": "look", "response": {"result": '{"path": "b.txt"}'}}},
    ]


SHOT = {"functionResponse": {"name": "unknown", "response": {"result": "[a.png]"}}}


@pytest.mark.parametrize(
    "last, sides",
    [
        ((), [("user", [{"text": "It is noon."}])]),
        ((user('say "hi"'),), [("user", [{"text": 'say "hi"'}, {"text": "It is noon."}])]),
        (
            (result("x", "c"),),
            [("user", [{"functionResponse": {"name": "unknown", "response": {"result": "x\n\nIt is noon."}}}])],
        ),
        ((Message("tool", (PNG,), answers="c"),), [("user", [SHOT, SHOWN_PNG, {"text": "It is noon."}])]),
        (
            (Message("assistant", said("a")),),
            [("model", [{"text": "a"}]), ("user", [{"text": "It is noon."}])],
        ),
    ],
)
def test_the_tail_stands_at_the_very_end(last, sides):
    sent = contents(*last, tail="It is noon.")
    assert [(content["role"], content["parts"]) for content in sent] == sides


texts = st.text(st.characters(codec=None), max_size=20)
media = st.sampled_from([PNG, PDF, GIF])
signed = answered(reply(recording("text_and_call")))
messages = st.one_of(
    st.builds(user, texts),
    st.builds(lambda text, media: Message("user", (Text(text), media)), texts, media),
    st.builds(lambda text: Message("assistant", said(text)), texts),
    st.builds(lambda args: Message("assistant", calls=(ToolCall("c", "look", args),)), texts),
    st.builds(lambda text: replace(signed, parts=said(text)), texts),
    st.builds(lambda text: result(text, "c"), texts),
    st.builds(lambda text, media: Message("tool", (Text(text), media), answers="z7x8c9v0"), texts, media),
)


@given(st.lists(messages, min_size=1, max_size=8), texts, st.booleans(), st.sampled_from([OLD, NEW]))
def test_a_request_begins_with_the_bytes_of_the_one_before(talk, tail, with_tools, model):
    transcript = Transcript()
    transcript.files.update(FILES)
    before = b""
    for message in talk:
        transcript.messages.append(message)
        ask = prompt(transcript=transcript, tools=(LOOK,) if with_tools else (), model=model)
        now = encode(ask, PLAIN, "host")
        assert now.startswith(before.removesuffix(b"]}]}"))
        sides = [content["role"] for content in msgspec.json.decode(now)["contents"]]
        assert all(one != other for one, other in pairwise(sides))
        with_tail = encode(replace(ask, tail=tail), PLAIN, "host")
        assert with_tail.startswith(now.removesuffix(b'"}}}]}]}').removesuffix(b"]}]}"))
        msgspec.json.decode(with_tail)
        before = now


def test_a_message_is_rendered_once():
    ask = prompt(user("a"), Message("assistant", said("b")))
    encode(ask, PLAIN, "host")
    kept = ask.transcript.rendered["gemini", "host", OLD, True, PLAIN]
    first = list(kept.messages)
    ask.transcript.messages.append(user("c"))
    encode(ask, PLAIN, "host")
    assert [now is then for now, then in zip(kept.messages, first, strict=False)] == [True, True]
    assert len(kept.messages) == 3


def test_a_changed_prefix_is_rendered_anew():
    ask = prompt(user("a"))
    encode(ask, PLAIN, "host")
    changed = replace(ask, system="Be long.", tools=(LOOK,))
    assert encode(changed, PLAIN, "host") == encode(prompt(user("a"), system="Be long.", tools=(LOOK,)), PLAIN, "host")


def test_an_answer_is_told_as_it_streams():
    decoder = Decoder("host", NEW)
    first, second, _ = recording("reasoning").split(b"\r\n\r\n", 2)
    deltas = [decoder.feed(first + b"\r\n\r\n"), decoder.feed(second + b"\r\n\r\n")]
    assert deltas == [Delta("", "Two"), Delta("", " and two.\n\n\n")]
    assert not decoder.complete
    rest = recording("reasoning")[len(first + second) + 8 :]
    assert decoder.feed(rest) == Delta("Four.")
    assert (decoder.complete, decoder.done) == (True, False)
    assert decoder.feed(b"") is None
    assert decoder.done
    assert decoder.reply().model == "gemini-3.8-flash"


def test_calls_without_ids_get_some_that_follow_from_the_answer():
    once, again = reply(recording("parallel_calls")), reply(recording("parallel_calls"))
    assert once.calls == again.calls
    assert [call.id for call in reply(recording("one_call")).calls] == ["q1w2e3r4"]
    other = reply(recording("parallel_calls").replace(b"4e0YaaKQHZ2Yz7IP6L-pyAI", b"other"))
    assert not {call.id for call in other.calls} & {call.id for call in once.calls}


def test_a_call_may_have_no_arguments_at_all():
    parts = '{"functionCall": {"name": "now"}},{"functionCall": {"name": "now","args": null}}'
    assert [call.args for call in reply(event(parts, "STOP")).calls] == ["{}", "{}"]


def test_tokens_of_tools_that_the_host_ran_count_as_read():
    usage = ',"usageMetadata": {"promptTokenCount": 5,"toolUsePromptTokenCount": 2,"candidatesTokenCount": 1}'
    assert reply(event('{"text": "a"}', "STOP", usage)).usage == Usage(input=7, output=1)


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "CONTINUATION"])
def test_an_answer_that_ran_into_a_limit_says_so(reason):
    assert reply(event('{"text": "a"}', reason)).finish == "length"


@pytest.mark.parametrize(
    "reason",
    [
        *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
        *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
    ],
)
def test_a_withheld_answer_is_a_refusal_that_says_why(reason):
    answer = reply(event("", reason))
    assert (answer.text, answer.finish) == (f"host withheld the answer ({reason}).", "refused")
    assert reply(event('{"text": "I will not."}', reason)).text == "I will not."


def test_a_prompt_that_was_blocked_is_refused():
    assert reply(recording("blocked")) == Reply(
        text="host withheld the answer (PROHIBITED_CONTENT).",
        usage=Usage(input=21),
        finish="refused",
        model="gemini-2.5-flash",
    )


@pytest.mark.parametrize(
    "reason",
    ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE", "OTHER"],
)
def test_an_answer_that_the_host_gives_up_is_its_failure(reason):
    with pytest.raises(HostFailed, match=f"host gave up on its answer for {NEW}: {reason}"):
        reply(event("", reason))


def test_an_unknown_reason_ends_an_answer_and_none_does_not():
    assert reply(event('{"text": "a"}', "TIRED")).finish == "stop"
    with pytest.raises(StreamCut):
        reply(event('{"text": "a"}', "FINISH_REASON_UNSPECIFIED"))


def test_a_host_that_does_not_stream_is_understood():
    events = [line[6:] for line in recording("text_and_call").splitlines() if line]
    as_array = b"[" + b"\n,\r\n".join(events) + b"]"
    assert reply(as_array) == reply(recording("text_and_call"))
    whole = recording("parallel_calls")
    assert reply(b"\n" + whole.removeprefix(b"data: ")) == reply(whole)
    assert reply(whole + b"data: [DONE]\n\n") == reply(whole)


@pytest.mark.parametrize(
    "stream",
    [
        b"<html>\n<p>Sign in</p></html>",
        b"upstream connect error",
        b'{"hello": 1}',
        b'["hello"]',
        b'{"candidates": [{"con',
        b"data: <p>\n\n",
        b'data: {"candidates": 7}\n\n',
        b'data: {"candidates": [{"content": {"parts": [7]}}]}\n\n',
    ],
)
def test_what_gemini_would_not_say_is_told_as_such(stream):
    with pytest.raises(HostFailed, match="something that Gemini would not say"):
        reply(stream)


OVERLOADED = '{"error": {"code": 503,"message": "The model is overloaded.","status": "UNAVAILABLE"}}'
QUOTA = (
    '{"error": {"code": 429,"message": "Resource exhausted.","status": "RESOURCE_EXHAUSTED","details": '
    '[{"@type": "type.googleapis.com/google.rpc.RetryInfo","retryDelay": "7s"}]}}'
)


@pytest.mark.parametrize("form", ["data: {}\r\n\r\n", "{}", "{}\n", "[{}]"])
@pytest.mark.parametrize("error, kind", [(OVERLOADED, HostFailed), (QUOTA, RateLimited)])
def test_an_error_in_place_of_an_answer_is_raised_by_its_kind(form, error, kind):
    with pytest.raises(kind) as raised:
        reply(form.replace("{}", error).encode())
    assert getattr(raised.value, "retry_after", 7) == 7


@pytest.mark.parametrize("form", ["data: {}\r\n\r\n", "{}\n"])
def test_an_error_in_the_middle_is_raised_too(form):
    with pytest.raises(RateLimited) as raised:
        reply(event('{"text": "a"}') + form.replace("{}", QUOTA).encode())
    assert raised.value.retry_after == 7


def test_an_error_that_says_no_time_to_wait_leaves_it_open():
    with pytest.raises(RateLimited) as raised:
        reply(b'data: {"error": {"code": 429,"status": "RESOURCE_EXHAUSTED"}}\n\n')
    assert raised.value.retry_after is None


@pytest.mark.parametrize(
    "status, message, kind",
    [
        (400, "API key not valid. Please pass a valid API key.", KeyRefused),
        (400, 'API key expired. Please renew the API key.","details":[{"reason":"API_KEY_INVALID"}],"x":"', KeyRefused),
        (403, "Your API key was reported as leaked. Please use another API key.", KeyRefused),
        (
            400,
            "The input token count (1048999) exceeds the maximum number of tokens allowed (1048576).",
            ContextOverflow,
        ),
        (404, "models/gemini-9 is not found for API version v1beta, or is not supported.", UnknownModel),
        (400, "Please ensure that function call turn comes immediately after a user turn.", BadRequest),
        (429, "You exceeded your current quota, please check your plan and billing details.", RateLimited),
        (500, "An internal error has occurred.", HostFailed),
        (503, "The model is overloaded. Please try again later.", HostFailed),
    ],
)
def test_a_refusal_is_told_by_its_kind(status, message, kind):
    error = error_from("host", "m", status, {}, f'{{"error":{{"code":{status},"message":"{message}"}}}}'.encode())
    assert type(error) is kind


def test_a_key_that_google_calls_a_bad_request_is_a_refused_key():
    assert type(error_from("host", "m", 400, {}, recording("refused_key"))) is KeyRefused


def test_the_time_to_wait_is_read_from_the_body_unless_a_header_says_it():
    quota = recording("refused_rate_limit")
    waits = [error_from("host", "m", 429, headers, quota) for headers in ({}, {"Retry-After": "3"})]
    assert [error.retry_after for error in waits if isinstance(error, RateLimited)] == [7.2, 3.0]
