"""The closed boxes of the vault, written once for both databases."""

from ..ports.audit import line_of
from ..ports.vault import PERSONAL
from .audit import AuditRows


class SecretRows(AuditRows):
    async def keep_secret(self, owner: str, name: str, box: bytes) -> None:
        await self._change_noted(
            line_of("secret.kept", name, {"owner": owner}),
            "INSERT INTO vault(owner, name, at, box) VALUES($1, $2, {now}, $3) "
            "ON CONFLICT(owner, name) DO UPDATE SET at = excluded.at, box = excluded.box RETURNING name",
            owner,
            name,
            box,
        )

    async def secret(self, owner: str, name: str) -> bytes | None:
        rows = await self._ask("SELECT box FROM vault WHERE owner = $1 AND name = $2", owner, name)
        return bytes(rows[0][0]) if rows else None

    async def secrets(self, owner: str) -> list[str]:
        return sorted(name for (name,) in await self._ask("SELECT name FROM vault WHERE owner = $1", owner))

    async def secret_times(self, owner: str) -> dict[str, float]:
        rows = await self._ask("SELECT name, at FROM vault WHERE owner = $1 ORDER BY name", owner)
        return {name: float(at) for name, at in rows}

    async def has_secrets(self) -> bool:
        return bool(await self._ask("SELECT 1 FROM vault LIMIT 1"))

    async def secrets_of_people(self) -> list[tuple[str, str, float]]:
        kinds = " OR ".join(f"name LIKE '{kind}%'" for kind in PERSONAL)
        rows = await self._ask(f"SELECT owner, name, at FROM vault WHERE {kinds} ORDER BY owner, name")
        return [(owner, name, float(at)) for owner, name, at in rows]

    async def forget_secret(self, owner: str, name: str) -> bool:
        forget = "DELETE FROM vault WHERE owner = $1 AND name = $2 RETURNING name"
        return await self._change_noted(line_of("secret.forgotten", name, {"owner": owner}), forget, owner, name)
