from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from everloop.net.trusted import TrustedHttp
from tests.channels.matrix.listener import Bot
from tests.channels.matrix.party import made_party
from tests.channels.matrix.somebody import Somebody, somebody
from tests.channels.matrix.synapse import Synapse, running


@pytest.fixture(scope="session")
def synapse() -> Iterator[Synapse]:
    with running() as server:
        yield server


@pytest.fixture
async def bot(synapse: Synapse) -> AsyncIterator[Bot]:
    http = TrustedHttp()
    yield Bot(synapse, http)
    await http.close()


@pytest.fixture
async def anna(synapse: Synapse) -> AsyncIterator[Somebody]:
    async with somebody(synapse) as person:
        yield person


@pytest.fixture
async def ben(synapse: Synapse) -> AsyncIterator[Somebody]:
    async with somebody(synapse, "ben") as person:
        yield person


@pytest.fixture
async def party(synapse: Synapse) -> AsyncIterator[Callable[..., Any]]:
    http = TrustedHttp()
    yield lambda name, memory=None: made_party(synapse, http, name, memory)
    await http.close()
