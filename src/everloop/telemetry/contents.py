"""What was said in the spans of a turn, for those who want to have it at their collector (`telemetry.content`)."""

from collections.abc import Iterable
from typing import Any

import msgspec

from ..core.conversation import Written
from ..core.log import CallReturned, GaveUp, ModelCalled, ModelSaid, UserSaid
from ..core.message import text_of
from ..readings.spans import FINISHES, TurnSpans, span_id

LONGEST = 100_000  # characters of one attribute


def contents_of(thread: str, turn: TurnSpans, history: Iterable[Written]) -> dict[str, dict[str, str]]:
    """By the ids of spans: prompts, answers, and the arguments and results of calls, as the conventions name them."""
    found: dict[str, dict[str, str]] = {turn.id: {}}
    heard: list[dict[str, Any]] = []
    called = 0
    for written in history:
        match written.entry:
            case UserSaid(parts=parts):
                heard.append(_message("user", text_of(parts)))
            case ModelCalled():
                called = written.seq
            case ModelSaid() as said:
                found[span_id(thread, "model", called)] = {"gen_ai.output.messages": _json([_answer(said)])}
                for place, call in enumerate(said.calls):
                    about = {"gen_ai.tool.call.arguments": call.args[:LONGEST]}
                    found[span_id(thread, "tool", written.seq, place)] = about
                if not said.calls:
                    found[turn.id]["gen_ai.output.messages"] = _json([_answer(said)])
            case CallReturned(answer=answer, place=place, text=text):
                about = found.setdefault(span_id(thread, "tool", answer, place), {})
                about["gen_ai.tool.call.result"] = text[:LONGEST]
            case GaveUp(text=text):
                found[turn.id]["gen_ai.output.messages"] = _json([_message("assistant", text)])
            case _:
                pass
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
