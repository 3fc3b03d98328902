"""Looking for a model server on this machine: Ollama, LM Studio, llama.cpp, vLLM at their usual ports."""

import asyncio
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from ..errors import ProviderError
from ..ports import Http
from .catalog import HOSTS, Host
from .choose import Choice, at_local

PATIENCE = 0.5


class _Model(Struct):
    id: str


class _Models(Struct):
    data: list[_Model]


LOCAL = [host for host in HOSTS.values() if host.port]


async def find_local(http: Http, wanted: str = "", hosts: Sequence[Host] = LOCAL) -> Choice | None:
    """A model of this name at the first server that has it; without a name, the first server's first."""
    lists = await asyncio.gather(*(_models(http, host) for host in hosts))
    for host, models in zip(hosts, lists, strict=True):
        for model in models:
            if model == wanted or (not wanted and "embed" not in model):
                return at_local(host, model)
    return None


async def _models(http: Http, host: Host) -> list[str]:
    try:
        async with http.request("GET", f"{host.base}/models", seconds=PATIENCE) as answer:
            if answer.status != 200:
                return []
            models = msgspec.json.decode(await answer.read(), type=_Models)
    except (ProviderError, msgspec.DecodeError):
        return []  # nobody is there, or somebody who speaks another language
    return [model.id for model in models.data]
