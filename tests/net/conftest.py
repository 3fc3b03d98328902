"""What a connection does is shown on both event loops: a host program has the one, our own process the other."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

_ON_BOTH = {"test_deadlines.py", "test_sending.py", "test_pool.py", "test_stream.py", "test_websocket.py"}


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    both = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
    return both if item.path.name in _ON_BOTH else {"asyncio": asyncio.new_event_loop}
