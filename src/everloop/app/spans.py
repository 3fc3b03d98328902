"""Has the spans of turns sent to a collector, where one is set."""

import os
from collections.abc import Callable
from contextlib import AsyncExitStack

from .. import __version__
from ..core.turn import Finished
from ..ports import Http, Store
from ..runtime.supervisor import Supervisor
from ..settings import Settings
from .models import network_of


def tell_a_collector(
    settings: Settings, store: Store, http: Http | None, supervisor: Supervisor, stack: AsyncExitStack
) -> Callable[[str, Finished], None] | None:
    """What is returned is to be told of turns that end; the spans go out beside everything else."""
    wanted = settings.telemetry
    if not wanted.otlp_endpoint and not any(name.startswith("OTEL_EXPORTER_OTLP") for name in os.environ):
        return None
    from ..telemetry.exporter import Exporter  # only then is anything of it loaded
    from ..telemetry.target import target_of

    target = target_of(wanted.otlp_endpoint, wanted.otlp_headers, os.environ, __version__)
    if target is None:
        return None
    network = network_of(settings, stack) if http is None else http
    exporter = Exporter(store, network, target, __version__, wanted.content)
    stack.push_async_callback(exporter.close)
    stack.push_async_callback(supervisor.start("spans", exporter.run).end)
    return exporter.note
