"""/v1/models: `everloop` is the model of the settings, beside it stand the presets, and each of them bare; any
provider/model can be asked."""

from typing import Any

from aiohttp import web

from ...readings.commands import COMMANDS
from ..access.principal import principal_of
from ..http.errors import Refused
from ..ports import TurnAgent
from .request import BARE, BARELY, DEFAULT, model_of


async def list_models(agent: TurnAgent, request: web.Request) -> web.StreamResponse:
    if not _may_choose(request):  # which models there are is not a guest's to know, nor to choose
        return web.json_response({"object": "list", "data": [_model(DEFAULT)]})
    presets = [name for name in agent.models() if name != DEFAULT]
    names = [DEFAULT, *presets, BARE, *(f"{BARELY}{name}" for name in presets)]
    return web.json_response({"object": "list", "data": [_model(name) for name in names]})


async def show_model(agent: TurnAgent, request: web.Request) -> web.StreamResponse:
    name = request.match_info["name"]
    if name != DEFAULT and not _may_choose(request):
        raise Refused(404, "model_not_found", "There is no model of that name for you to choose.")
    await agent.find_model(model_of(name)[0])
    return web.json_response(_model(name))


def _may_choose(request: web.Request) -> bool:
    return principal_of(request).role >= COMMANDS["/model"].right_to(DEFAULT).least


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "everloop"}
