"""How webhooks are set up."""

from ...ports.channel import Setup, SetupField

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
