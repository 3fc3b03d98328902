"""Tokens of programs and the password of the page, as the owner makes and unmakes them, also while it runs."""

import asyncio
from collections.abc import Iterable

from ...core.errors import EverloopError
from ...core.ports import Credentials
from .principal import SCOPES
from .secrets import LONGEST, SHORTEST, hash_of, hash_password, new_secret


def token_scopes() -> tuple[str, ...]:
    """What a token of the gateway may be good for."""
    return tuple(SCOPES)


async def new_token(book: Credentials, owner: str, name: str, scopes: Iterable[str], seconds: float = 0) -> str:
    """Make a token for the gateway and return it: this once, for only its hash is kept. Raises EverloopError."""
    token = new_secret("ev_")
    if not await book.keep_token(owner, name, hash_of(token), tuple(scopes), seconds):
        raise EverloopError(f"there is a token {name!r} already; revoke it first, or choose another name")
    return token


async def new_invitation(book: Credentials, person: str, seconds: float) -> str:
    """The path of a link by which somebody comes in, once; in place of an earlier one."""
    code = new_secret()
    await book.keep_login(person, "link", hash_of(code), seconds)
    return f"/login?code={code}"


async def set_password(book: Credentials, owner: str, password: str) -> None:
    """Let this be the password of the page. All browsers are logged out. Raises EverloopError."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise EverloopError(f"a password has {SHORTEST} to {LONGEST} characters; nothing was changed")
    await book.keep_login(owner, "password", await asyncio.to_thread(hash_password, password))
    await book.end_visits(owner)


async def remove_password(book: Credentials, owner: str) -> bool:
    """Whether there was one. All browsers are logged out: the link of the next start is the way in."""
    removed = await book.forget_login(owner, "password")
    await book.end_visits(owner)
    return removed
