"""Channels: how they stand, and how they are set up. No secret is ever told."""

from ...errors import ChannelDown, ChannelRefused, EverloopError, VaultLocked
from ..http.errors import Refused
from .channel_shapes import ChannelList, ChannelRemoved, ChannelSaved, ChannelShown, ChannelTested
from .refusals import Refusals
from .route import ApiAnswer, ApiCall
from .settings_ports import ChannelBook

_REFUSALS = Refusals((ChannelRefused, "channel_refused"), (ChannelDown, "channel_down"), (VaultLocked, "vault_locked"))
_done = _REFUSALS.done


async def list_channels(call: ApiCall) -> ApiAnswer:
    return ChannelList(list(await _done(call.agent.channels.rows())))


async def show_channel(call: ApiCall) -> ApiAnswer:
    desk, name = await _desk_for(call), call.path.name
    row = await _done(desk.row(name))
    if not row.by:  # nobody brings it, so nobody says how it is set up
        return ChannelShown(row, [], [], [])
    try:
        setup, login = desk.setup(name), desk.login_fields(name)
    except EverloopError as error:
        raise _REFUSALS.refused(error) from error
    return ChannelShown(row, list(setup.steps), list(setup.fields), list(login))


async def add_channel(call: ApiCall) -> ApiAnswer:
    _check_references(call.body.values)
    added = await _done((await _desk_for(call)).add(call.path.name, call.body.values, test=call.body.test))
    return ChannelSaved(added.row, added.probed)


async def log_in(call: ApiCall) -> ApiAnswer:
    _check_references(call.body.values)
    added = await _done((await _desk_for(call)).log_in(call.path.name, call.body.values))
    return ChannelSaved(added.row, added.probed)


async def test_channel(call: ApiCall) -> ApiAnswer:
    return ChannelTested(await _done((await _desk_for(call)).test(call.path.name)))


async def remove_channel(call: ApiCall) -> ApiAnswer:
    return ChannelRemoved(call.path.name, await _done((await _desk_for(call)).remove(call.path.name)))


async def _desk_for(call: ApiCall) -> ChannelBook:
    """Raises Refused where there is no such channel."""
    desk: ChannelBook = call.agent.channels
    if not await _done(desk.is_there(call.path.name)):
        raise Refused(404, "not_found", "There is no channel of that name.")
    return desk


def _check_references(values: dict[str, str]) -> None:
    """A ${NAME} would send anything out of the environment or the vault wherever the address says. Raises Refused."""
    for key, value in values.items():
        if "${" in value:
            raise Refused(409, "setting_refused", f"{key} has a ${{…}} in it, which can only be written in the file.")
