"""A password, changed into an access token once."""

from collections.abc import Mapping

from ...errors import ChannelDown, ChannelRefused
from ...ports import Http
from .homeserver import Homeserver, HomeserverRefused, path_of
from .manifest import checked_address


async def log_in(values: Mapping[str, str], http: Http) -> dict[str, str]:
    """The settings to keep, of which `access_token` is secret. `values` are `homeserver`, `user_id` and `password`, and
    the `device_id` of an earlier login, which is taken up again: then a message that was on its way is not sent twice.
    Raises SettingsError, ChannelDown, and ChannelRefused when the password is wrong."""
    address = checked_address(values["homeserver"])
    asked = {
        "type": "m.login.password",
        "identifier": {"type": "m.id.user", "user": values["user_id"]},
        "password": values["password"],
        "initial_device_display_name": "everloop",
    }
    if device := values.get("device_id", ""):
        asked["device_id"] = device
    try:
        said = await Homeserver(address, "", http).post(path_of("login"), asked)
    except HomeserverRefused as error:
        raise _refused(error) from error
    kept = {
        "user_id": said.get("user_id"),
        "access_token": said.get("access_token"),
        "device_id": said.get("device_id"),
    }
    if not all(isinstance(value, str) and value for value in kept.values()):
        raise ChannelDown("the homeserver answered a login with no token")
    return {"homeserver": address, **kept}


def _refused(error: HomeserverRefused) -> Exception:
    if error.code == "M_USER_DEACTIVATED":
        return ChannelRefused("this account has been deactivated on its homeserver")
    if error.status == 403:
        return ChannelRefused("the homeserver does not accept this user id with this password")
    if error.code in ("M_UNKNOWN", "M_UNRECOGNIZED"):
        return ChannelRefused(
            "this homeserver lets nobody in by a password; take an access token from another client (channels.matrix."
            "access_token)"
        )
    return ChannelDown(str(error), error.retry_after)
