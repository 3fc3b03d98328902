"""What a webhook is, and how it is set up."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from ...errors import SettingsError
from ...ports.channel import Manifest, Setup, SetupField, Traits
from ..settings import check_address, check_names, read_settings
from .codec import secret_of

MANIFEST = Manifest("webhook", Traits(once=True, addressed=True))
LEAST = 200  # units of the shortest part that an answer can be split into
DIALECTS = ("markdown", "plain", "telegram", "slack", "discord", "matrix", "email")

SETUP = Setup(
    title="Webhook",
    steps=(
        "Your program posts what people say to /hooks/webhook of this gateway, and takes answers at an address of its "
        "own: docs/webhook.md shows both.",
        "Both sides sign with one secret, which you make: openssl rand -hex 32",
    ),
    fields=(
        SetupField("url", "The address to which answers are posted, such as https://bot.example.org/answers"),
        SetupField("secret", "The secret that both sides sign with, at least 16 bytes", secret=True),
    ),
)


class Chosen(Struct, forbid_unknown_fields=True):
    """The settings `channels.webhook`. `previous_secret` still opens for what comes in, while the two are exchanged.
    Answers are posted in this `dialect`, in parts of at most `text_limit` characters (0: any)."""

    url: str
    secret: str
    previous_secret: str = ""
    enabled: bool = True
    dialect: str = DIALECTS[0]
    text_limit: Annotated[int, Meta(ge=0)] = 0


def check_keys(values: Mapping[str, Any]) -> None:
    """Raises SettingsError for one that means nothing."""
    check_names("webhook", values, Chosen)


def check_settings(values: Mapping[str, Any]) -> tuple[Chosen, list[bytes]]:
    """What they say, and the secrets. Raises SettingsError."""
    chosen = read_settings("webhook", values, Chosen)
    check_address("channels.webhook.url", chosen.url)
    if chosen.dialect not in DIALECTS:
        raise SettingsError(f"channels.webhook.dialect is one of {', '.join(DIALECTS)}, not {chosen.dialect[:50]!r}")
    if chosen.text_limit and (chosen.dialect == "markdown" or chosen.text_limit < LEAST):
        raise SettingsError(f"channels.webhook.text_limit is at least {LEAST}, or 0, and needs a dialect but markdown")
    secrets = []
    for name in ("secret", "previous_secret"):
        if name == "secret" or getattr(chosen, name):
            try:
                secrets.append(secret_of(getattr(chosen, name)))
            except ValueError as error:
                raise SettingsError(f"channels.webhook.{name}: {error}") from error
    return chosen, secrets
