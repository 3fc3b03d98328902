"""What is put on the wire, read by OpenTelemetry's own parser."""

from hypothesis import given
from hypothesis import strategies as st
from tests.telemetry.collector import attributes_of, service, spans_in, value_of

from everloop.readings.spans import Span, TurnSpans
from everloop.telemetry.otlp import request

TRACE, ROOT, CHILD = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"


def parsed(*turns: TurnSpans, **more):
    resource = more.pop("resource", {"service.name": "everloop"})
    return service.ExportTraceServiceRequest.FromString(request(turns, resource, "1.2", more.pop("content", {})))


def test_a_turn_is_a_span_with_its_steps_as_children():
    model = Span("model", "m", 2.0, 3.25, id=CHILD, operation="chat m", attributes={"error.type": "rate", "n": -3})
    turn = TurnSpans(1, "hi", 1.5, 4.0, spans=[model], trace=TRACE, id=ROOT, attributes={"a": ("x", "y"), "cost": 0.5})
    told = parsed(turn)
    (resource,) = told.resource_spans
    (scope,) = resource.scope_spans
    root, child = scope.spans
    assert {each.key: value_of(each.value) for each in resource.resource.attributes} == {"service.name": "everloop"}
    assert (scope.scope.name, scope.scope.version) == ("everloop", "1.2")
    assert (root.trace_id.hex(), root.span_id.hex(), root.parent_span_id.hex()) == (TRACE, ROOT, "")
    assert (child.trace_id.hex(), child.span_id.hex(), child.parent_span_id.hex()) == (TRACE, CHILD, ROOT)
    assert (root.name, root.kind, root.start_time_unix_nano, root.end_time_unix_nano) == (
        *("invoke_agent everloop", 1),
        *(1_500_000_000, 4_000_000_000),
    )
    assert (child.name, child.kind, child.start_time_unix_nano, child.end_time_unix_nano) == (
        *("chat m", 3),
        *(2_000_000_000, 3_250_000_000),
    )
    assert attributes_of(root) == {"a": ["x", "y"], "cost": 0.5}
    assert attributes_of(child) == {"error.type": "rate", "n": -3}
    assert (root.status.code, child.status.code) == (0, 2)


def test_what_lasts_is_not_sent():
    running = Span("tool", "exec", 2.0, id=CHILD, operation="execute_tool exec")
    assert list(spans_in(parsed(TurnSpans(1, "hi", 1.0, spans=[running], trace=TRACE, id=ROOT)))) == []


def test_what_was_said_is_sent_only_when_it_is_given():
    turn = TurnSpans(1, "a secret plan", 1.0, 2.0, trace=TRACE, id=ROOT)
    (silent,), (open_,) = spans_in(parsed(turn)), spans_in(parsed(turn, content={ROOT: {"gen_ai.input.messages": "…"}}))
    assert "secret plan" not in str(silent)
    assert attributes_of(open_) == {"gen_ai.input.messages": "…"}


VALUES = st.text() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.lists(st.text()).map(tuple)


@given(st.dictionaries(st.text(), VALUES), st.text(), st.floats(0, 1e10))
def test_any_value_arrives_as_it_was(attributes, name, start):
    turn = TurnSpans(1, "", start, start, trace=TRACE, id=ROOT, operation=name, attributes=attributes)
    (span,) = spans_in(parsed(turn))
    assert span.name == name
    assert attributes_of(span) == {
        key: list(each) if isinstance(each, tuple) else each for key, each in attributes.items()
    }
