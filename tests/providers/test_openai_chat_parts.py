"""What the chat dialect makes of media, effort, marks for the cache, and answers that another host has given."""

import msgspec
import pytest
from msgspec.structs import replace

from everloop.core.message import Media, Message, Opaque, Text, said
from everloop.core.prompt import Prompt, Transcript
from everloop.core.tool import ToolCall
from everloop.providers.dialects.openai_chat import encode
from everloop.providers.dialects.quirks import Quirks

PLAIN = Quirks()
CAT = Media("f1", "image/png", "cat.png")
DOG = Media("f2", "image/jpeg", "dog.jpg")
PAPER = Media("f3", "application/pdf", "paper.pdf")
FILES = {"f1": b"meow", "f2": b"woof", "f3": b"%PDF"}
CAT_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,bWVvdw=="}}
DOG_PART = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,d29vZg=="}}
PAPER_PART = {"type": "file", "file": {"filename": "paper.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}}
TWO_LOOKS = Message("assistant", calls=(ToolCall("c1", "look", "{}"), ToolCall("c2", "look", "{}")))


def prompt(*messages: Message, **fields) -> Prompt:
    transcript = Transcript(messages)
    transcript.files |= FILES
    return Prompt(**{"model": "m", "system": "", "transcript": transcript, **fields})


def body(prompt: Prompt, quirks: Quirks = PLAIN, host: str = "host"):
    return msgspec.json.decode(encode(prompt, quirks, host))


def sent(*messages: Message, quirks: Quirks = PLAIN, **fields) -> list:
    return body(prompt(*messages, **fields), quirks)["messages"]


def text(words: str) -> dict:
    return {"type": "text", "text": words}


def user(*parts: Text | Media) -> Message:
    return Message("user", parts)


def result(id: str, *parts: Text | Media) -> Message:
    return Message("tool", parts, answers=id)


def test_images_and_documents_are_shown():
    assert sent(user(Text("Look:"), CAT, PAPER)) == [{"role": "user", "content": [text("Look:"), CAT_PART, PAPER_PART]}]


def test_a_document_without_a_name_has_one():
    (message,) = sent(user(replace(PAPER, name="")))
    assert message["content"][0]["file"]["filename"] == "document"


def test_several_texts_are_one():
    assert sent(user(Text("a"), Text("b"))) == [{"role": "user", "content": "a\nb"}]


def test_what_a_model_cannot_see_is_named():
    assert sent(user(Text("Look:"), CAT, Media("f1", "image/png")), sees=False) == [
        {"role": "user", "content": "Look:\n[cat.png: not shown]\n[image/png: not shown]"}
    ]


def test_a_file_that_is_gone_is_named():
    assert sent(user(Media("f9", "image/png"), CAT)) == [
        {"role": "user", "content": [text("[image/png: not shown]"), CAT_PART]}
    ]


def test_media_of_results_follow_when_all_results_are_told():
    talk = (TWO_LOOKS, result("c1", Text("A cat:"), CAT), result("c2", Text("A dog:"), DOG), user(Text("Well?")))
    assert sent(*talk)[1:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "A cat:\n[cat.png]"},
        {"role": "tool", "tool_call_id": "c2", "content": "A dog:\n[dog.jpg]"},
        {"role": "user", "content": [CAT_PART, DOG_PART]},
        {"role": "user", "content": "Well?"},
    ]


def test_media_of_the_last_results_end_the_request():
    assert sent(TWO_LOOKS, result("c1", Text("x")), result("c2", CAT))[2:] == [
        {"role": "tool", "tool_call_id": "c2", "content": "[cat.png]"},
        {"role": "user", "content": [CAT_PART]},
    ]


def test_media_of_results_stay_where_they_stood_when_the_talk_goes_on():
    ask = prompt(TWO_LOOKS, result("c1", Text("x")), result("c2", CAT))
    before = encode(ask, PLAIN, "host")
    ask.transcript.add(Message("assistant", said("A cat.")))
    assert encode(ask, PLAIN, "host").startswith(before.removesuffix(b"]}"))


def test_media_of_results_are_not_shown_to_a_model_that_cannot_see():
    assert sent(TWO_LOOKS, result("c1", Text("x")), result("c2", CAT), sees=False)[2:] == [
        {"role": "tool", "tool_call_id": "c2", "content": "[cat.png: not shown]"}
    ]


NOON = "It is noon."


@pytest.mark.parametrize(
    "last, end",
    [
        (user(Text("Look:"), CAT), {"role": "user", "content": [text("Look:"), CAT_PART, text(NOON)]}),
        (result("c1", Text("x"), CAT), {"role": "user", "content": [CAT_PART, text(NOON)]}),
        (user(Text("a"), Text("b")), {"role": "user", "content": "a\nb\n\nIt is noon."}),
    ],
)
def test_the_tail_is_the_last_part(last, end):
    assert sent(last, tail=NOON)[-1] == end


@pytest.mark.parametrize(
    "field, effort, told",
    [
        ("reasoning_effort", "low", {"reasoning_effort": "low"}),
        ("reasoning_effort", "none", {"reasoning_effort": "none"}),
        ("reasoning", "high", {"reasoning": {"effort": "high"}}),
        ("thinking", "minimal", {"thinking": {"type": "enabled"}}),
        ("thinking", "none", {"thinking": {"type": "disabled"}}),
        ("enable_thinking", "medium", {"enable_thinking": True}),
        ("enable_thinking", "none", {"enable_thinking": False}),
        ("", "high", {}),
        ("reasoning", "", {}),
    ],
)
def test_each_host_is_told_how_hard_to_think_in_its_own_way(field, effort, told):
    without = body(prompt(user(Text("hi"))))
    assert body(prompt(user(Text("hi")), effort=effort), Quirks(effort=field)) == {**without, **told}


def test_top_p_is_sent_when_it_is_set():
    without = body(prompt(user(Text("hi"))))
    assert body(prompt(user(Text("hi")), top_p=0.5)) == {**without, "top_p": 0.5}


MARKS = Quirks(cache_marks="anthropic/")
CLAUDE = "anthropic/claude-sonnet-4.5"


def marked(words: str) -> dict:
    return {"type": "text", "text": words, "cache_control": {"type": "ephemeral"}}


def test_the_ends_of_the_prefix_are_marked_and_the_tail_stands_outside():
    talk = (user(Text("hi")), Message("assistant", said("Hello.")), user(Text('say "content":"x"')))
    assert sent(*talk, quirks=MARKS, model=CLAUDE, system="Be brief.", tail=NOON) == [
        {"role": "system", "content": [marked("Be brief.")]},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": [marked('say "content":"x"'), text(NOON)]},
    ]


def test_a_result_is_marked_too():
    assert sent(result("c1", Text("x")), quirks=MARKS, model=CLAUDE) == [
        {"role": "tool", "tool_call_id": "c1", "content": [marked("x")]}
    ]


def test_the_mark_moves_on_with_the_talk():
    ask = prompt(user(Text("a")), model=CLAUDE)
    encode(ask, MARKS, "host")
    ask.transcript.add(user(Text("b")))
    assert body(ask, MARKS)["messages"] == [
        {"role": "user", "content": "a"},
        {"role": "user", "content": [marked("b")]},
    ]


@pytest.mark.parametrize("last", [result("c1", Text("")), user(Text("Look:"), CAT), TWO_LOOKS])
def test_what_cannot_be_marked_is_sent_as_it_is(last):
    assert sent(last, quirks=MARKS, model=CLAUDE) == sent(last, model=CLAUDE)


def test_an_empty_result_takes_the_tail():
    assert sent(result("c1", Text("")), quirks=MARKS, model=CLAUDE, tail=NOON) == [
        {"role": "tool", "tool_call_id": "c1", "content": "\n\nIt is noon."}
    ]


@pytest.mark.parametrize("model, quirks", [("openai/gpt-5", MARKS), (CLAUDE, PLAIN)])
def test_other_models_and_other_hosts_are_sent_no_marks(model, quirks):
    assert sent(user(Text("hi")), quirks=quirks, model=model, system="Be brief.", tail=NOON) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi\n\nIt is noon."},
    ]


def test_a_talk_is_taken_over_from_another_host_without_what_only_that_one_can_read():
    signed = Opaque("anthropic_messages anthropic/claude", msgspec.Raw(b'[{"type":"thinking","signature":"x"}]'))
    call = ToolCall("toolu_01AbC", "look", '{"path":"a"}')
    talk = (Message("assistant", said("I look."), (call,), "", "hm", (signed,)), result("toolu_01AbC", Text("x")))
    assert sent(*talk) == [
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "toolu_01AbC", "type": "function", "function": {"name": "look", "arguments": '{"path":"a"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "toolu_01AbC", "content": "x"},
    ]
    asked, answered = sent(*talk, quirks=Quirks(short_call_ids=True))
    assert asked["tool_calls"][0]["id"] == answered["tool_call_id"]
    assert len(answered["tool_call_id"]) == 9


def test_a_talk_that_goes_back_and_forth_between_hosts_is_rendered_once_for_each():
    ask = prompt(user(Text("a"), CAT))
    here, there = encode(ask, PLAIN, "here"), encode(replace(ask, model="n", sees=False), PLAIN, "there")
    kept = ask.transcript.rendered["openai_chat", "here", "m", True, PLAIN].messages[0]
    assert encode(ask, PLAIN, "here") == here
    assert encode(replace(ask, model="n", sees=False), PLAIN, "there") == there
    assert ask.transcript.rendered["openai_chat", "here", "m", True, PLAIN].messages[0] is kept
