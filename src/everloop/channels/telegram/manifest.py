"""What Telegram can do, how a bot is set up, and what its settings mean."""

import re
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from ...errors import SettingsError
from ...ports.channel import Manifest, Setup, SetupField, Traits
from ..settings import check_address, check_names, read_settings

LARGEST_SENT = 50_000_000  # bytes of a file that a bot may send,
LARGEST_FETCHED = 20_000_000  # and of one that it may fetch
LARGEST_PHOTO = 10_000_000

MANIFEST = Manifest(
    "telegram",
    Traits(
        text_limit=4_096,
        text_unit="utf16",
        preview=1.0,
        typing=4.0,  # Telegram shows it for 5 s
        files=LARGEST_SENT,
        edits=True,
    ),
)

SETUP = Setup(
    title="Telegram",
    steps=(
        "In Telegram, write /newbot to @BotFather (https://t.me/BotFather), and choose a name for your bot.",
        "BotFather answers with a token, such as 123456789:AAE…: whoever has it can speak as your bot.",
        "To have it hear what is said in groups, send /setprivacy to @BotFather, choose the bot and then Disable; "
        "a group that it is in already has to add it again.",
    ),
    fields=(SetupField("token", "The token that @BotFather gave you", secret=True),),
)

_TOKEN = re.compile(r"[0-9]+:[A-Za-z0-9_-]+", re.ASCII)
_SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}", re.ASCII)


class TelegramSettings(Struct, forbid_unknown_fields=True, kw_only=True):
    """The settings `channels.telegram`. `webhook_url` is under which address Telegram reaches `/hooks/telegram`;
    without a `webhook_secret` one is made from the token. `api_url` is for a Bot API server of one's own. `menu` shows
    people our slash commands."""

    token: str
    mode: Literal["polling", "webhook"] = "polling"
    webhook_url: str = ""
    webhook_secret: str = ""
    api_url: str = "https://api.telegram.org"
    menu: bool = True

    def __repr__(self) -> str:
        return f"TelegramSettings(…, mode={self.mode!r})"


def check_keys(values: Mapping[str, Any]) -> None:
    """Raises SettingsError for one that means nothing."""
    check_names("telegram", values, TelegramSettings)


def check_settings(values: Mapping[str, Any]) -> TelegramSettings:
    """What they say. Raises SettingsError, which tells no token."""
    if not values.get("token"):
        check_keys(values)
        raise SettingsError("channels.telegram.token is missing: @BotFather in Telegram gives you one (/newbot)")
    chosen = read_settings("telegram", {**values, "token": str(values["token"]).strip()}, TelegramSettings)
    if not _TOKEN.fullmatch(chosen.token):
        raise SettingsError(
            "channels.telegram.token is not one: it looks like 123456789:AAE…, copy it again from @BotFather"
        )
    check_address("channels.telegram.api_url", chosen.api_url)
    if chosen.mode == "webhook":
        if not chosen.webhook_url:
            raise SettingsError(
                'channels.telegram.webhook_url is missing: with mode = "webhook" it is the address under which '
                "Telegram reaches this gateway, such as https://example.org/hooks/telegram"
            )
        check_address("channels.telegram.webhook_url", chosen.webhook_url)
    if chosen.webhook_secret and not _SECRET.fullmatch(chosen.webhook_secret):
        raise SettingsError("channels.telegram.webhook_secret has 16 to 256 letters, digits, _ or -")
    return chosen
