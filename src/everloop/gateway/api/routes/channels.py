"""Routes of the API: channels."""

from ....core.people import Role
from .. import channel_shapes, channels, shapes
from ..route import ApiRoute

_ALL = ("admin", "read", "chat", "approve")  # who sets up a channel lets others speak with the agent

ROUTES = (
    ApiRoute(
        "GET",
        "/api/channels",
        "The channels that there are, and how they stand",
        handle=channels.list_channels,
        answers=channel_shapes.ChannelList,
        least=Role.ADMIN,
        needs="admin",
        further={409: "the settings file has been spoiled"},
    ),
    ApiRoute(
        "GET",
        "/api/channels/{name}",
        "A channel, and how it is set up",
        handle=channels.show_channel,
        answers=channel_shapes.ChannelShown,
        at=channel_shapes.OfChannel,
        least=Role.ADMIN,
        needs="admin",
        further={409: "the settings file has been spoiled"},
    ),
    ApiRoute(
        "PUT",
        "/api/channels/{name}",
        "Set it up: it is tried with a real call first, and secrets go to the vault",
        handle=channels.add_channel,
        answers=channel_shapes.ChannelSaved,
        at=channel_shapes.OfChannel,
        body=channel_shapes.AddingChannel,
        least=Role.OWNER,
        needs=_ALL,
    ),
    ApiRoute(
        "POST",
        "/api/channels/{name}/login",
        "Set it up by a login, where it has one",
        handle=channels.log_in,
        answers=channel_shapes.ChannelSaved,
        at=channel_shapes.OfChannel,
        body=channel_shapes.LoggingIn,
        least=Role.OWNER,
        needs=_ALL,
    ),
    ApiRoute(
        "POST",
        "/api/channels/{name}/test",
        "Try it as it is set, with a call that changes nothing",
        handle=channels.test_channel,
        answers=channel_shapes.ChannelTested,
        at=channel_shapes.OfChannel,
        body=shapes.Nothing,
        least=Role.OWNER,
        needs="admin",
    ),
    ApiRoute(
        "DELETE",
        "/api/channels/{name}",
        "Take it out of the settings, with its secrets",
        handle=channels.remove_channel,
        answers=channel_shapes.ChannelRemoved,
        at=channel_shapes.OfChannel,
        least=Role.OWNER,
        needs=_ALL,
    ),
)
