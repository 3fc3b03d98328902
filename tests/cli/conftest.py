"""A person at a terminal, and the scripted model that answers them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.cli.person import Person

from everloop.testing.model_server import ModelServer


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def person(tmp_path: Path, model: ModelServer) -> AsyncIterator[Person]:
    person = Person(tmp_path, model)
    yield person
    await person.leave()
