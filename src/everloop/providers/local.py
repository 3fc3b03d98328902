"""Looking for a model server on this machine: Ollama, LM Studio, llama.cpp, vLLM at their usual ports."""

import asyncio
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from ..core.errors import ProviderError
from ..core.ports import Http
from .catalog import HOSTS, Host
from .choose import Choice, at_local

PATIENCE = 0.5


class _Model(Struct):
    id: str


class _Models(Struct):
    data: list[_Model]


LOCAL = [host for host in HOSTS.values() if host.port]


async def find_local(http: Http, hosts: Sequence[Host] = LOCAL) -> Choice | None:
    """The first model of the first server that answers, in the order of the hosts."""
    found = await asyncio.gather(*(_first_model(http, host) for host in hosts))
    return next((at_local(host, model) for host, model in zip(hosts, found, strict=True) if model), None)


async def _first_model(http: Http, host: Host) -> str:
    try:
        async with http.request("GET", f"{host.base}/models", seconds=PATIENCE) as answer:
            if answer.status != 200:
                return ""
            models = msgspec.json.decode(await answer.read(), type=_Models)
    except (ProviderError, msgspec.DecodeError):
        return ""  # nobody is there, or somebody who speaks another language
    return next((model.id for model in models.data if "embed" not in model.id), "")
