"""A machine on which nothing else is configured."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.app.doctor.home import DoctoredHome, ModelHost, model_host


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """No variable of ours, no key, no proxy."""
    for name in [*os.environ]:
        if name.startswith("EVERLOOP_") or name.endswith("_API_KEY") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return monkeypatch


@pytest.fixture
async def host(alone: pytest.MonkeyPatch) -> AsyncIterator[tuple[ModelHost, str]]:
    async with model_host() as found:
        yield found


@pytest.fixture
async def home(host: tuple[ModelHost, str], tmp_path: Path) -> DoctoredHome:
    return await DoctoredHome(tmp_path / "home", host[1]).make()
