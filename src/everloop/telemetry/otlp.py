"""Turns as OTLP puts them on the wire: an ExportTraceServiceRequest, in protobuf, which every collector takes.

The numbers of the fields are those of opentelemetry-proto; a test has its own parser read what is written here.
"""

from collections.abc import Iterable, Mapping

from ..readings.spans import Span, TurnSpans, Value
from .protobuf import data, double, fixed, message, number, text

INTERNAL, CLIENT, PRODUCER = 1, 3, 4  # kinds of spans
KINDS = {"model": CLIENT, "delivery": PRODUCER}
ERROR = 2
Content = Mapping[str, Mapping[str, str]]  # what was said in a span, by the span's id


def request(turns: Iterable[TurnSpans], resource: Mapping[str, Value], version: str, content: Content) -> bytes:
    """Everything that is over of these turns. What still lasts is left out: a span is sent once, when it has ended."""
    spans = [span for turn in turns for span in _spans(turn, content)]
    about = message(1, *(_attribute(1, name, value) for name, value in resource.items()))
    scope = message(1, text(1, "everloop"), text(2, version))
    return message(1, about, message(2, scope, *spans))


def _spans(turn: TurnSpans, content: Content) -> Iterable[bytes]:
    if turn.end is not None:
        attributes = {**turn.attributes, **content.get(turn.id, {})}
        yield _span(turn.trace, turn.id, "", turn.operation, INTERNAL, turn.start, turn.end, attributes)
    for span in turn.spans:
        if span.end is not None:
            yield _child(turn, span, span.end, content)


def _child(turn: TurnSpans, span: Span, end: float, content: Content) -> bytes:
    attributes = {**span.attributes, **content.get(span.id, {})}
    kind = KINDS.get(span.kind, INTERNAL)
    return _span(turn.trace, span.id, turn.id, span.operation, kind, span.start, end, attributes)


def _span(
    trace: str, id: str, parent: str, name: str, kind: int, start: float, end: float, attributes: Mapping[str, Value]
) -> bytes:
    return message(
        2,
        data(1, bytes.fromhex(trace)),
        data(2, bytes.fromhex(id)),
        data(4, bytes.fromhex(parent)) if parent else b"",
        text(5, name),
        number(6, kind),
        fixed(7, round(start * 1e9)),
        fixed(8, round(max(start, end) * 1e9)),
        *(_attribute(9, key, value) for key, value in attributes.items()),
        message(15, number(3, ERROR)) if "error.type" in attributes else b"",
    )


def _attribute(field: int, name: str, value: Value) -> bytes:
    return message(field, text(1, name), message(2, _value(value)))


def _value(value: Value) -> bytes:
    match value:
        case str():
            return text(1, value)
        case int():
            return number(3, value)
        case float():
            return double(4, value)
        case tuple():
            return message(5, *(message(1, text(1, each)) for each in value))
