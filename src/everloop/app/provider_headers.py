"""Headers of providers that refer to the vault, as `${vault:NAME}`: the settings file says which, and who asks the
provider is given what is kept."""

import re
from collections.abc import Mapping

from msgspec.structs import replace

from ..errors import VaultLocked
from ..ports import Vault
from ..settings.shape import AccountSection
from .secrets import SECRET_NAME, VAULT, UnknownSecret, take_out

_REFERENCE = re.compile(rf"\$\{{({VAULT}{SECRET_NAME})\}}")
_PREFIX = "provider."


def own_header(provider: str, header: str) -> str:
    """The name in the vault of what a header of a provider holds."""
    return f"{_PREFIX}{provider}.{header}"


def vault_references(account: AccountSection) -> list[str]:
    """What of the vault its headers refer to."""
    return [found for value in account.headers.values() for found in _REFERENCE.findall(value)]


async def with_headers(
    accounts: Mapping[str, AccountSection], vault: Vault
) -> tuple[dict[str, AccountSection], dict[str, str]]:
    """The accounts as they are used, and of those that refer to what cannot be had a sentence instead. Raises
    StoreError."""
    used, wrong = dict(accounts), dict[str, str]()
    for name, account in accounts.items():
        if not vault_references(account):
            continue
        try:
            used[name] = await _looked_up(name, account, vault)
        except (UnknownSecret, VaultLocked) as error:
            wrong[name] = str(error)
    return used, wrong


async def _looked_up(name: str, account: AccountSection, vault: Vault) -> AccountSection:
    kept = await take_out(vault, [each.removeprefix(VAULT) for each in vault_references(account)])

    def value_of(header: str, found: re.Match[str]) -> str:
        if found[1] not in kept:
            raise UnknownSecret(f"providers.{name}.headers.{header}", found[1].removeprefix(VAULT))
        return kept[found[1]]

    headers = {
        header: _REFERENCE.sub(lambda found, header=header: value_of(header, found), value)  # type: ignore[misc]
        for header, value in account.headers.items()
    }
    return replace(account, headers=headers)
