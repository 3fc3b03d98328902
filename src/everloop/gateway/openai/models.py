"""/v1/models: `everloop` is the model of the settings, beside it stand the presets; any provider/model can be asked."""

from typing import Any

from aiohttp import web

from ..desk import Desk
from ..identity import who
from .asking import DEFAULT


async def list_models(house: Desk, request: web.Request) -> web.StreamResponse:
    who(request)
    names = [DEFAULT, *(name for name in house.models() if name != DEFAULT)]
    return web.json_response({"object": "list", "data": [_model(name) for name in names]})


async def show_model(house: Desk, request: web.Request) -> web.StreamResponse:
    who(request)
    name = request.match_info["name"]
    if name != DEFAULT:
        await house.find_model(name)
    return web.json_response(_model(name))


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "everloop"}
