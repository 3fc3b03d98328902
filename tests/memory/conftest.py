from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everloop.ports import Store
from everloop.store.sqlite import SqliteStore


@pytest.fixture
async def sqlite_store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await SqliteStore.connect(tmp_path)
    yield store
    await store.close()
