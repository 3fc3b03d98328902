"""Numbers for Prometheus, counted since the gateway began. https://prometheus.io/docs/instrumenting/exposition_formats/"""

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from ..ports.events import CallMeasured, Event, ToolReturned, TurnEnded
from ..ports.jobs import TaskState

Labels = tuple[tuple[str, str], ...]

HELP = {
    "everloop_requests_total": ("counter", "Requests, by method, route and status."),
    "everloop_turns_total": ("counter", "Turns that ended, by how."),
    "everloop_tokens_total": ("counter", "Tokens, by model and direction."),
    "everloop_cost_dollars_total": ("counter", "What model calls cost, as far as prices are known."),
    "everloop_model_calls_total": ("counter", "Model calls that were answered, by model."),
    "everloop_model_seconds_total": ("counter", "Seconds that they took."),
    "everloop_tool_calls_total": ("counter", "Tool calls, by tool and outcome."),
    "everloop_ws_frames_total": ("counter", "WebSocket frames, by direction."),
    "everloop_ws_errors_total": ("counter", "Error frames, by code."),
    "everloop_ws_slow_total": ("counter", "WebSocket clients that were cut off because they read too slowly."),
    "everloop_connections": ("gauge", "Connections that are open, WebSockets among them."),
    "everloop_ws_connections": ("gauge", "WebSocket clients that are connected."),
    "everloop_turns_running": ("gauge", "Turns that run in this process."),
    "everloop_task": ("gauge", "What runs for as long as the house is open: 1 for the state that each is in."),
    "everloop_task_restarts": ("gauge", "How often each of them failed and was begun again."),
    "everloop_uptime_seconds": ("gauge", "Seconds since the gateway began."),
    "everloop_resident_bytes": ("gauge", "Memory of this process."),
}


FRAMES_IN: tuple[str, Labels] = "ws_frames_total", (("direction", "in"),)
FRAMES_OUT: tuple[str, Labels] = "ws_frames_total", (("direction", "out"),)
COUNTED = (TurnEnded, ToolReturned, CallMeasured)


class Metrics:
    def __init__(self) -> None:
        self._counts: Counter[tuple[str, Labels]] = Counter()
        self._began = time.monotonic()

    def count(self, name: str, **labels: str) -> None:
        self._counts[name, tuple(labels.items())] += 1

    def count_frames(self, amount: int, row: tuple[str, Labels]) -> None:
        """`row` is FRAMES_IN or FRAMES_OUT: frames are too many to have their labels put together for each."""
        self._counts[row] += amount

    def hear(self, event: Event) -> None:
        if isinstance(event, TurnEnded):
            self.count("turns_total", outcome=event.finished.reason or "answered")
        elif isinstance(event, ToolReturned):
            self.count("tool_calls_total", tool=event.tool, outcome=event.outcome)
        elif isinstance(event, CallMeasured):
            counts, (calls, seconds, input, output, cost) = self._counts, _of_a_call(event.model)
            counts[calls] += 1
            counts[seconds] += event.seconds  # type: ignore[assignment]
            counts[input] += event.usage.input
            counts[output] += event.usage.output
            counts[cost] += event.cost or 0.0  # type: ignore[assignment]

    @property
    def uptime(self) -> float:
        return time.monotonic() - self._began

    def tell(self, now: Mapping[str, float], tasks: Iterable[TaskState] = ()) -> str:
        """All of it as text; `now` are the numbers that go up and down."""
        gauges = {**now, "uptime_seconds": self.uptime, "resident_bytes": resident()}
        rows: dict[tuple[str, Labels], float] = {(f"everloop_{name}", ()): value for name, value in gauges.items()}
        rows |= {(f"everloop_{name}", labels): value for (name, labels), value in self._counts.items()}
        for task in tasks:
            rows["everloop_task", (("task", task.name), ("state", task.state))] = 1
            rows["everloop_task_restarts", (("task", task.name),)] = task.restarts
        return "".join(_family(name, rows) for name in HELP)


@lru_cache(maxsize=256)
def _of_a_call(model: str) -> Sequence[tuple[str, Labels]]:
    """What is counted of a model call: each has five of them."""
    of = ("model", model)
    tokens = [("tokens_total", (of, ("direction", direction))) for direction in ("input", "output")]
    return ("model_calls_total", (of,)), ("model_seconds_total", (of,)), *tokens, ("cost_dollars_total", (of,))


def _family(name: str, rows: Mapping[tuple[str, Labels], float]) -> str:
    kind, sentence = HELP[name]
    lines = [f"{name}{_labels(labels)} {value:g}\n" for (of, labels), value in sorted(rows.items()) if of == name]
    return f"# HELP {name} {sentence}\n# TYPE {name} {kind}\n{''.join(lines)}"


def _labels(labels: Iterable[tuple[str, str]]) -> str:
    told = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{told}}}" if told else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def resident() -> int:
    """Bytes that this process has in memory; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
