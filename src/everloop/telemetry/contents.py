"""What was said in the spans of a turn, for those who want to have it at their collector (`telemetry.content`)."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ..core.log import GaveUp, ModelCalled, ModelSaid, UserSaid
from ..core.message import text_of
from ..ports.conversation import Written
from ..readings.calls import calls_in
from ..readings.spans import FINISHES, TurnSpans, span_id

LONGEST = 100_000  # characters of one attribute


def contents_of(thread: str, turn: TurnSpans, history: Sequence[Written]) -> dict[str, dict[str, str]]:
    """By the ids of spans: prompts, answers, and the arguments and results of calls, as the conventions name them."""
    found: dict[str, dict[str, str]] = {turn.id: {}}
    heard: list[dict[str, Any]] = []
    called = 0
    for written in history:
        entry = written.entry
        if isinstance(entry, UserSaid):
            heard.append(_message("user", text_of(entry.parts)))
        elif isinstance(entry, ModelCalled):
            called = written.seq
        elif isinstance(entry, ModelSaid):
            found[span_id(thread, "model", called)] = {"gen_ai.output.messages": _json([_answer(entry)])}
            if not entry.calls:
                found[turn.id]["gen_ai.output.messages"] = _json([_answer(entry)])
        elif isinstance(entry, GaveUp):
            found[turn.id]["gen_ai.output.messages"] = _json([_message("assistant", entry.text)])
    for each in calls_in(history[0].seq if history else 1, [written.entry for written in history]):
        arguments = {"gen_ai.tool.call.arguments": each.call.args[:LONGEST]} if each.call else {}
        result = {"gen_ai.tool.call.result": each.returned.text[:LONGEST]} if each.returned else {}
        found[span_id(thread, "tool", each.answer, each.place)] = arguments | result
    found[turn.id]["gen_ai.input.messages"] = _json(heard)
    return found


def _answer(said: ModelSaid) -> dict[str, Any]:
    message = _message("assistant", said.text)
    calls = [{"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.args} for call in said.calls]
    return {**message, "parts": [*message["parts"], *calls], "finish_reason": FINISHES.get(said.finish, said.finish)}


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text[:LONGEST]}] if text else []}


def _json(messages: list[dict[str, Any]]) -> str:
    return msgspec.json.encode(messages).decode()
