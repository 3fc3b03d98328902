"""Connecting a model, and fetching the one of this machine. Looking at an address is what setting one would be: it
needs the scopes that this needs, and nothing is kept of it."""

import msgspec

from ...errors import EverloopError, HostUnreachable, KeyRefused, ProviderError, StoreError
from ..http.errors import Refused
from .route import ApiAnswer, ApiCall
from .setup_shapes import EmbeddedShown, ModelConnected, ModelsFound, ProviderList, ProviderShown

NO_EMBEDDED = "There is no model of this machine to fetch: install everloop with the extra [local]."


async def providers(call: ApiCall) -> ApiAnswer:
    rows = await call.agent.connector.providers()
    return ProviderList([msgspec.convert(row, ProviderShown, from_attributes=True) for row in rows])


async def look(call: ApiCall) -> ApiAnswer:
    _need(call, {"providers.custom.api_base": "http://127.0.0.1"})
    asked = call.body
    try:
        found = await call.agent.connector.look(asked.provider, asked.address.strip(), asked.key.strip())
    except KeyRefused as error:
        raise Refused(409, "key_refused", _sentence(error)) from error
    except HostUnreachable as error:
        raise Refused(409, "unreachable", _sentence(error)) from error
    except ProviderError as error:
        raise Refused(409, "no_list", _sentence(error)) from error
    except EverloopError as error:
        raise Refused(409, "refused", _sentence(error)) from error
    return msgspec.convert(found, ModelsFound, from_attributes=True)


async def connect(call: ApiCall) -> ApiAnswer:
    asked, connector = call.body, call.agent.connector
    place = (asked.provider, asked.address.strip())
    try:
        _need(call, {**connector.changes(*place, asked.model.strip()), "providers.custom.api_base": "http://127.0.0.1"})
        done = await connector.connect(*place, asked.key.strip(), asked.model.strip())
    except (Refused, StoreError):
        raise
    except EverloopError as error:
        raise Refused(409, "refused", _sentence(error)) from error
    return msgspec.convert(done, ModelConnected, from_attributes=True)


async def embedded(call: ApiCall) -> ApiAnswer:
    """Whether it answers, and how far it is."""
    download = call.agent.connector.download
    if download is None:
        return EmbeddedShown(False, "none", 0, 0, "", None, "")
    now = download.state
    return EmbeddedShown(call.agent.connector.is_embedded, now.state, now.done, now.total, now.what, now.left, now.why)


async def fetch_embedded(call: ApiCall) -> ApiAnswer:
    if (download := call.agent.connector.download) is None:
        raise Refused(409, "refused", NO_EMBEDDED)
    download.start()
    return await embedded(call)


async def leave_embedded(call: ApiCall) -> ApiAnswer:
    """What has come is kept."""
    if (download := call.agent.connector.download) is None:
        raise Refused(409, "refused", NO_EMBEDDED)
    await download.leave()
    return await embedded(call)


def _need(call: ApiCall, changes: dict[str, str]) -> None:
    for scope in sorted(call.agent.live_settings.scopes_for(changes)):
        call.principal.need(scope)


def _sentence(error: EverloopError) -> str:
    text = str(error).rstrip()
    return text if text.endswith((".", "?", ")")) else f"{text}."
