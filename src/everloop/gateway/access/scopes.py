"""What credentials may be good for. It stands alone, so that a command that makes a token loads no server."""

SCOPES = {
    "read": "look at conversations, usage, traces and settings",
    "chat": "speak, attach files, stop and change conversations",
    "approve": "allow or deny what asks for permission",
    "admin": "change settings, models, passwords and tokens",
}
