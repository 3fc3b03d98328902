"""The calls of a log, with what came of each."""

from everloop.core.log import CallReturned, CallStarted, ModelCalled, ModelSaid, Resumed
from everloop.core.tool import ToolCall
from everloop.readings.calls import CallRecord, calls_in

LOOK, WRITE = ToolCall("1", "look", "{}"), ToolCall("2", "write", "{}")


def test_each_call_is_told_with_its_last_start_and_its_result():
    seen = CallReturned(6, 0, "seen")
    log = [ModelSaid("", (LOOK, WRITE)), seen, CallStarted(6, 1), Resumed(), CallStarted(6, 1)]
    assert calls_in(6, log) == [CallRecord(6, 0, LOOK, returned=seen), CallRecord(6, 1, WRITE, started=10)]


def test_a_call_whose_answer_lies_before_is_told_without_what_was_called():
    done = CallReturned(3, 1, "done")
    assert calls_in(5, [CallStarted(3, 1), done, ModelCalled("m"), ModelSaid("fine")]) == [
        CallRecord(3, 1, None, 5, done)
    ]
