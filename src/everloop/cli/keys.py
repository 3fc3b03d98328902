"""`everloop models key`, `login` and `logout`: what opens the hosts, kept in the vault and never shown."""

import asyncio
import getpass
import sys

from ..app.keys import Host, Login, Sleep, checked_key, find_host, kept_keys, login_to
from ..app.keys import forget as forget_it
from ..app.keys import keep_key as keep_it
from ..errors import EverloopError
from .terminal import Terminal

__all__ = ["find_host", "forget", "keep_key", "list_keys", "log_in", "login", "read_key", "typed_unseen"]


def read_key(name: str) -> str:
    """From stdin, or from someone who types it unseen. Raises EverloopError for what cannot be a key."""
    return checked_key(typed_unseen(f"The key of {name}: "))


def typed_unseen(prompt: str) -> str:
    """What someone types unseen, or what a pipe brings."""
    if not sys.stdin.isatty():
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        return getpass.getpass(prompt)
    except EOFError:
        return ""


async def keep_key(host: Host, key: str, terminal: Terminal) -> int:
    notes = await keep_it(host, key)
    for note in (f"The key of {host.name} is kept in the vault.", *notes):
        terminal.note(note)
    return 0


async def list_keys(terminal: Terminal) -> int:
    if names := await kept_keys():
        terminal.answer("\n".join(names))
    else:
        terminal.note("There are no keys in the vault.")
    return 0


async def forget(name: str, terminal: Terminal, *, login: bool = False) -> int:
    what = f"login to {name}" if login else f"key of {name}"
    if not await forget_it(name, login=login):
        raise EverloopError(f"the {what} is not in the vault")
    terminal.note(f"The {what} is forgotten.")
    return 0


async def login(name: str, terminal: Terminal) -> int:
    async with login_to(name) as way:
        await log_in(way, terminal)
    return 0


async def log_in(login: Login, terminal: Terminal, sleep: Sleep = asyncio.sleep) -> None:
    """Raises LoginDenied, LoginExpired and other ProviderErrors."""
    asking = await login.begin()
    terminal.answer(f"Open {asking.url} and enter the code {asking.code}")
    terminal.status("waiting until you have …")
    await login.finish(asking, sleep)
    terminal.note(f"You are logged in to {login.name}: {login.name}/MODEL is a model now.")
