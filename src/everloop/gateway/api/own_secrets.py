"""What people keep for themselves: keys of model providers, and credentials for their tools. Nothing tells a value."""

import msgspec

from ...errors import EverloopError, StoreError
from ...ports.credential import KeptCredential
from ..access.principal import Principal
from ..access.scopes import SCOPES
from ..http.errors import Refused, sentence
from .own_shapes import CredentialShown, OwnCredentialList, OwnKeyList, OwnKeyShown
from .route import ApiAnswer, ApiCall


async def own_keys(call: ApiCall) -> ApiAnswer:
    return await _keys(call)


async def keep_own_key(call: ApiCall) -> ApiAnswer:
    _check_whole(call.principal)
    try:
        notes = await call.agent.own_keys.keep(call.principal.user, call.path.name, call.body.key)
    except StoreError:
        raise
    except EverloopError as error:
        raise Refused(409, "key_refused", sentence(error)) from error
    return await _keys(call, notes)


async def forget_own_key(call: ApiCall) -> ApiAnswer:
    _check_whole(call.principal)
    await call.agent.own_keys.forget(call.principal.user, call.path.name)
    return await _keys(call)


async def own_credentials(call: ApiCall) -> ApiAnswer:
    rows = await call.agent.credentials.rows(call.principal.user)
    return OwnCredentialList([msgspec.convert(each, CredentialShown, from_attributes=True) for each in rows])


async def keep_credential(call: ApiCall) -> ApiAnswer:
    _check_whole(call.principal)
    asked = call.body
    kept = KeptCredential(asked.value, tuple(asked.hosts), asked.header, asked.commands)
    try:
        await call.agent.credentials.keep(call.principal.user, call.path.name, kept)
    except StoreError:
        raise
    except EverloopError as error:
        raise Refused(409, "key_refused", sentence(error)) from error
    return await own_credentials(call)


async def forget_credential(call: ApiCall) -> ApiAnswer:
    _check_whole(call.principal)
    await call.agent.credentials.forget(call.principal.user, call.path.name)
    return await own_credentials(call)


def _check_whole(principal: Principal) -> None:
    """Raises Refused (403) for a token that is worth less than its person: who gives a key decides who reads along,
    and who takes it away, who pays from then on."""
    principal.check_lasting()
    if missing := [scope for scope in SCOPES if scope not in principal.scopes]:
        whole = "This is kept by whoever logs in, or with a token of all scopes"
        raise Refused(403, "forbidden", f"{whole}: not without {', '.join(missing)}.")


async def _keys(call: ApiCall, notes: list[str] | None = None) -> OwnKeyList:
    keeper = call.agent.own_keys
    rows = [OwnKeyShown(each.provider, each.at, each.problem) for each in await keeper.keys(call.principal.user)]
    return OwnKeyList(rows, keeper.providers(), notes or [])
