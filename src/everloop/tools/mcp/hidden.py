"""Secrets of a server's settings, taken out of what it says back and of what is said of it: no model has to know them,
nor whoever may use its tools, nor the log."""

from ...ports.mcp import McpServer
from ..redaction import redacted


def secrets_by_name(server: McpServer) -> dict[str, str]:
    """Each by what is shown in its place; one that holds another comes first."""
    named = {value: key for key, value in {**server.env, **server.headers}.items()}
    found = sorted(server.secrets, key=lambda secret: (-len(secret), secret))
    return {named.get(secret, f"secret {number}"): secret for number, secret in enumerate(found, 1)}


def without_secrets(server: McpServer, text: str) -> str:
    return redacted(text, secrets_by_name(server))
