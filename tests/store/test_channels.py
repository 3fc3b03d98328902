"""Channels over PostgreSQL promise what they promise over SQLite."""

from functools import partial

import pytest
from tests.channels.platform import Receiver

import everloop
from everloop.testing.conformance import CHECKS, Trial

from .conftest import PostgresHome


@pytest.mark.parametrize("name", CHECKS)
async def test_webhooks_keep_their_word_over_postgresql(name: str, postgres_home: PostgresHome, tmp_path):
    opened = partial(everloop.open, settings={"store": {"url": postgres_home.url}})
    await CHECKS[name](Trial(Receiver(), tmp_path / "home", opened))
