"""What the owner sets up while the house is open: settings, keys, models. A refusal names the key in a sentence."""

from typing import Any

import msgspec
from aiohttp import web

from ...errors import EverloopError, HomeError, ModelMissing, SettingsError, SettingsMoved, StoreError
from ..http.errors import Refused, respond
from .route import ApiAnswer, ApiCall
from .setup_shapes import (
    CheckShown,
    KeyForgotten,
    KeyKept,
    KeyList,
    KeyShown,
    SettingRow,
    SettingsShown,
    TriedModel,
)


async def settings(call: ApiCall) -> ApiAnswer:
    try:
        return _settings(call, await call.agent.live_settings.look())
    except SettingsError as error:
        raise Refused(409, "settings_spoiled", _ended(error)) from error


async def change_settings(call: ApiCall) -> ApiAnswer:
    """The version that was seen comes as `If-Match`; without one, whatever is there is changed."""
    version = call.request.headers.get("If-Match", "").removeprefix("W/").strip('"')
    try:
        for scope in sorted(call.agent.live_settings.scopes_for(call.body)):
            call.principal.need(scope)
        return _settings(call, await call.agent.live_settings.change(call.body, "" if version == "*" else version))
    except SettingsMoved as error:
        raise Refused(412, "settings_moved", _ended(error)) from error
    except (SettingsError, HomeError) as error:
        raise Refused(409, "setting_refused", _ended(error)) from error


def _settings(call: ApiCall, looked: Any) -> web.Response:
    rows = [msgspec.convert(row, SettingRow, from_attributes=True) for row in looked.rows]
    shown = SettingsShown(dict(call.agent.settings), looked.version, looked.file, rows, looked.waiting)
    response = respond(shown)
    response.headers["ETag"] = f'"{looked.version}"'
    return response


async def keys(call: ApiCall) -> ApiAnswer:
    rows = await call.agent.live_settings.keys()
    return KeyList([msgspec.convert(row, KeyShown, from_attributes=True) for row in rows])


async def keep_key(call: ApiCall) -> ApiAnswer:
    name = call.path.name
    if name not in {row.name for row in await call.agent.live_settings.keys()}:
        raise Refused(404, "not_found", f"There is no provider {name}.")
    try:
        return KeyKept(name, await call.agent.live_settings.keep_key(name, call.body.key))
    except StoreError:
        raise
    except EverloopError as error:
        raise Refused(409, "key_refused", _ended(error)) from error


async def forget_key(call: ApiCall) -> ApiAnswer:
    name = call.path.name
    if not any(row.in_vault for row in await call.agent.live_settings.keys() if row.name == name):
        raise Refused(404, "not_found", f"There is no key of {name} in the vault.")
    await call.agent.live_settings.forget_key(name)
    return KeyForgotten(name)


async def try_model(call: ApiCall) -> ApiAnswer:
    try:
        model, tried = await call.agent.live_settings.try_model(call.body.name)
    except ModelMissing as error:
        raise Refused(409, "model_missing", _ended(error)) from error
    checks = [msgspec.convert(each, CheckShown, from_attributes=True) for each in tried]
    return TriedModel(model, all(each.ok for each in checks), checks)


def _ended(error: EverloopError) -> str:
    """Not with a capital: it may begin with the name of a setting."""
    text = str(error)
    return text if text.endswith((".", "?", ")")) else f"{text}."
