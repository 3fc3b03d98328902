"""What is asked and told about channels."""

from typing import Annotated

from msgspec import Meta, Struct

from ...ports.channel import Probed, SetupField
from ...ports.listening import ChannelRow
from .shapes import ApiInput

_Name = Annotated[str, Meta(min_length=1, max_length=100)]
_Key = Annotated[str, Meta(min_length=1, max_length=100)]
_Value = Annotated[str, Meta(max_length=10_000)]


class OfChannel(ApiInput, frozen=True):
    name: _Name


class AddingChannel(ApiInput, frozen=True):
    """`values` are its settings, by name; secrets go to the vault. With `test` false it is not tried first."""

    values: Annotated[dict[_Key, _Value], Meta(max_length=50)]
    test: bool = True


class LoggingIn(ApiInput, frozen=True):
    """`values` are what the login asks for (`login` of the channel)."""

    values: Annotated[dict[_Key, _Value], Meta(max_length=50)]


class ChannelList(Struct, frozen=True):
    channels: list[ChannelRow]


class ChannelShown(Struct, frozen=True):
    """A channel, and how it is set up: where one gets what is asked for (`steps`), what that is (`fields`), and what is
    asked for a login instead, where there is one."""

    channel: ChannelRow
    steps: list[str]
    fields: list[SetupField]
    login: list[SetupField]


class ChannelSaved(Struct, frozen=True):
    """`probed` is what its platform says of us: null where it was not asked, or cannot be."""

    channel: ChannelRow
    probed: Probed | None


class ChannelTested(Struct, frozen=True):
    probed: Probed | None


class ChannelRemoved(Struct, frozen=True):
    """`left` are secrets in the vault that it referred to and that may be others', too."""

    name: str
    left: list[str]
