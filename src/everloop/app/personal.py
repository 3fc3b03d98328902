"""Who has something of their own in the vault: known at once, so that a turn of whoever has nothing asks nobody."""

from collections.abc import Mapping

from ..ports import Secrets
from ..ports.vault import CREDENTIAL, OWN_KEY

LOCKED = "cannot be read now, for the vault is locked. Whoever runs this can look up why."
_NOTHING: Mapping[str, float] = {}


class PersonalSecrets:
    """The names of what people keep, and since when, as they were at the last look; another process may have kept
    something since, which is found within two seconds."""

    def __init__(self, store: Secrets) -> None:
        self._store = store
        self._kept: dict[str, dict[str, float]] = {}

    async def look(self) -> None:
        """Raises StoreError."""
        kept: dict[str, dict[str, float]] = {}
        for owner, name, at in await self._store.secrets_of_people():
            kept.setdefault(owner, {})[name] = at
        self._kept = kept

    def of(self, person: str, kind: str) -> Mapping[str, float]:
        """What of a kind somebody keeps, without the kind in its name."""
        names = self._kept.get(person, _NOTHING)
        return {name.removeprefix(kind): at for name, at in names.items() if name.startswith(kind)}

    def names(self, person: str) -> tuple[list[str], list[str]]:
        """The providers that somebody keeps a key for, and what their credentials are called."""
        return [*self.of(person, OWN_KEY)], [*self.of(person, CREDENTIAL)]

    def has(self, person: str) -> bool:
        return person in self._kept
