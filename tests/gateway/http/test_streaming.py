"""What is shown of a turn while it runs."""

import everloop
from everloop.core.turn import Finished
from everloop.gateway.http.streaming import AnswerDelta, LetterDraft
from everloop.ports.events import AnswerBegan, AnswerPiece, Event, LetterTaken, TurnEnded


def draft_of(mail: int) -> LetterDraft:
    draft = LetterDraft()
    assert draft.follow(LetterTaken("t", 0, mail)) is None
    return draft


def start(call: int, *mails: int) -> Event:
    return AnswerBegan("t", call, call, mails)


def chunk(call: int, text: str = "", reasoning: str = "") -> Event:
    return AnswerPiece("t", call, 1, text, reasoning)


def shown(draft: LetterDraft, *events: Event) -> list[AnswerDelta]:
    return [piece for event in events if (piece := draft.follow(event))]


def answer(content: str) -> everloop.Answer:
    return everloop.Answer(content, "api:a", "t:1")


def test_the_words_of_each_model_call_are_shown():
    events = [start(2, 7), chunk(2, reasoning="hm"), chunk(2, "I look."), start(6, 7), chunk(6, "It "), chunk(6)]
    draft = draft_of(7)
    assert shown(draft, *events) == [AnswerDelta(2, reasoning="hm"), AnswerDelta(2, "I look."), AnswerDelta(6, "It ")]


def test_what_is_done_for_another_letter_is_not_shown():
    ended = TurnEnded("t", 3, Finished(1, 3, "theirs", "api:a", (6,)))
    events = [chunk(2, "half "), start(2, 6), chunk(2, "theirs"), ended, start(6, 7), chunk(6, "ours"), ended]
    assert shown(draft_of(7), *events) == [AnswerDelta(6, "ours")]
    assert shown(draft_of(6), *events) == [AnswerDelta(2, "theirs")]


def test_a_message_that_steers_a_turn_sees_what_is_said_after_it():
    assert shown(draft_of(7), start(2, 6), chunk(2, "before"), start(6, 6, 7), chunk(6, "after")) == [
        AnswerDelta(6, "after")
    ]


def test_what_was_not_shown_of_the_answer_follows():
    draft = draft_of(7)
    assert draft.complete(answer("whole")) == AnswerDelta(-1, "whole")
    shown(draft, start(2, 7), chunk(2, "who"))
    assert draft.complete(answer("whole")) == AnswerDelta(2, "le")
    assert draft.complete(answer("another")) == AnswerDelta(-1, "another")
    shown(draft, chunk(2, "le"))
    assert draft.complete(answer("whole")) is None
