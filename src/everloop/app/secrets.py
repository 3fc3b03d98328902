"""Secrets by name, such as the tokens of channels: kept in the vault, referred to as `${vault:NAME}` in the settings of
a channel, and taken out where the channel is opened. No command and no route ever tells one."""

import re
from collections.abc import Iterable

from ..errors import EverloopError, SettingsError
from ..ports import Vault

VAULT = "vault:"  # how a reference to the vault begins
SECRET_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}"
LONGEST = 10_000
_KIND = "secret:"  # among all that the vault holds


class UnknownSecret(SettingsError):
    """A setting refers to what is not in the vault."""

    def __init__(self, place: str, name: str) -> None:
        super().__init__(
            f"{place} needs {name} from the vault, which is not there. Keep it: everloop secrets set {name}"
        )


def checked_name(text: str) -> str:
    """Raises EverloopError for what cannot be the name of a secret."""
    if not re.fullmatch(SECRET_NAME, text):
        raise EverloopError("the name of a secret is 1 to 100 letters, digits, dots, dashes and underscores")
    return text


def checked_secret(text: str) -> str:
    """Raises EverloopError for what cannot be a secret; it is never quoted."""
    secret = text.strip()
    if not secret:
        raise EverloopError("no secret was given, and nothing was kept")
    if len(secret) > LONGEST or not secret.isprintable():
        raise EverloopError(
            f"a secret is one line of at most {LONGEST:,} characters that can be shown; nothing was kept"
        )
    return secret


async def keep_secret(vault: Vault, name: str, secret: str) -> None:
    """Raises EverloopError."""
    await vault.set(_KIND + checked_name(name), checked_secret(secret))


async def kept_secrets(vault: Vault) -> dict[str, float]:
    """Their names, and when each was kept."""
    return {name.removeprefix(_KIND): at for name, at in (await vault.kept()).items() if name.startswith(_KIND)}


async def forget_secret(vault: Vault, name: str) -> bool:
    """Whether there was one to forget."""
    return await vault.forget(_KIND + name)


async def take_out(vault: Vault, names: Iterable[str]) -> dict[str, str]:
    """Those of these that are kept, as they are referred to. Raises VaultLocked."""
    taken = {VAULT + name: await vault.get(_KIND + name) for name in names}
    return {reference: secret for reference, secret in taken.items() if secret is not None}
