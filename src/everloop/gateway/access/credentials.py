"""Tokens of programs and the password of the page, as the owner makes and unmakes them, also while it runs."""

import asyncio
import re
from collections.abc import Collection, Iterable

from ...errors import EverloopError
from ...ports import Credentials
from ...readings.visible import UNSEEN
from .scopes import SCOPES
from .secrets import LONGEST, SHORTEST, hash_of, hash_password, new_secret

MOST_PLATFORMS = 50
PLATFORM = rf"^[^\x00-\x20{UNSEEN}]([^\x00-\x1f{UNSEEN}]{{0,98}}[^\x00-\x20{UNSEEN}])?$"
_PLATFORM = re.compile(PLATFORM)


def token_scopes() -> tuple[str, ...]:
    """What a token of the gateway may be good for."""
    return tuple(SCOPES)


def check_platforms(platforms: Collection[str], scopes: Collection[str]) -> None:
    """Raises EverloopError for names that could not be, or are of no use to a token of these scopes."""
    if len(platforms) > MOST_PLATFORMS:
        raise EverloopError(f"a token names at most {MOST_PLATFORMS} platforms; make another for the rest")
    for each in platforms:
        if not _PLATFORM.fullmatch(each) or not each.isprintable():
            raise EverloopError(
                "a platform has a name of 1 to 100 characters that can be seen, such as discord, with no space before "
                f"or after it; not {each[:80]!r}"
            )
    if platforms and "chat" not in scopes:
        raise EverloopError("a token that names platforms needs the scope chat, or its bot could say nothing there")


async def new_token(
    book: Credentials,
    owner: str,
    name: str,
    scopes: Iterable[str],
    seconds: float = 0,
    platforms: Iterable[str] = (),
) -> str:
    """Make a token for the gateway and return it: this once, for only its hash is kept. Raises EverloopError."""
    token, held, named = new_secret("ev_"), tuple(scopes), sorted(set(platforms))
    check_platforms(named, held)
    if not await book.keep_token(owner, name, hash_of(token), held, seconds, named):
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
