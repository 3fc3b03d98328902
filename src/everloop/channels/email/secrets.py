"""How a password is said to a mail server, and so may come back from there."""

from base64 import b64encode


def plain_login(username: str, password: str) -> str:
    """As AUTH PLAIN says it (RFC 4616)."""
    return b64encode(f"\0{username}\0{password}".encode()).decode()


def spoken_secrets(username: str, password: str) -> tuple[str, ...]:
    return password, plain_login(username, password), b64encode(password.encode()).decode()
