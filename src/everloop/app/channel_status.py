"""How the channels stand: what the settings say of them, and what whoever listens has said last."""

from collections.abc import Mapping
from pathlib import Path

from ..ports import ListeningStates, Vault
from ..ports.listening import ChannelRow, ChannelStanding, ChannelState
from ..settings import Settings
from ..settings.unused import is_off
from .channel_packages import advice_of, installed, title_of
from .channels import OURS, Unopened, expanded, placed, table_of, wrong_in
from .listening import lease_of, unopened_lease_of

TODO: Mapping[ChannelState, str] = {
    "unset": "Set it up: everloop channels add {name}",
    "off": "It is switched off in the settings; everloop channels add {name} sets it up anew",
    "wrong": "Mend it: everloop channels add {name}, or in the settings file",
    "stopped": "Start the gateway: everloop gateway. One that runs already opens it within seconds",
    "failed": "It is tried again by itself. Try it now: everloop channels test {name}",
    "starting": "",
    "listening": "",
}
NOBODYS: Mapping[ChannelState, str] = {
    **dict.fromkeys(TODO, ""),
    "wrong": "Switch it off (enabled = false) or take it out of the settings file, or install a package that brings it",
}
LEASES = lease_of("")
DEAD = "Look at what was given up: everloop outbox list"


class ChannelStatus:
    def __init__(self, home: Path, store: ListeningStates, vault: Vault) -> None:
        self._home = home
        self._store = store
        self._vault = vault

    async def rows(self, settings: Settings) -> list[ChannelRow]:
        """Of all channels that there are, and of all that are set. Raises StoreError."""
        there, held = installed(), await self._store.listening()
        wrong = {each.name: each.why for each in wrong_in(settings, self._home)}
        named = [str(name) for name in (settings.channels if isinstance(settings.channels, dict) else ())]
        brought = [lease.removeprefix(LEASES) for lease in held if lease.startswith(LEASES)]  # by a program
        names = dict.fromkeys((*there, *named, *brought))
        return [await self._row(settings, name, there, held, wrong) for name in names]

    async def _row(
        self,
        settings: Settings,
        name: str,
        there: Mapping[str, str],
        held: Mapping[str, ChannelStanding],
        wrong: Mapping[str, str],
    ) -> ChannelRow:
        state, why, since = await self._state(settings, name, held, wrong)
        traffic = await self._store.traffic(name)
        todo = ". ".join(
            each
            for each in (
                (TODO if name in there else NOBODYS)[state].format(name=name),
                DEAD if traffic.given_up else "",
                advice_of(name) if state not in ("unset", "off") else "",
            )
            if each
        )
        title = title_of(name) if name in OURS else name
        return ChannelRow(
            name=name,
            title=title,
            by=there.get(name, ""),
            state=state,
            why=why,
            todo=todo,
            since=since,
            traffic=traffic,
        )

    async def _state(
        self, settings: Settings, name: str, held: Mapping[str, ChannelStanding], wrong: Mapping[str, str]
    ) -> tuple[ChannelState, str, float]:
        """Who listens is believed before anything else; then who has tried to, then the settings."""
        if told := held.get(lease_of(name)):
            return told.state, told.why, told.since
        table = table_of(settings, name)
        if table is None or is_off(table):
            return ("unset" if table is None else "off"), "", 0.0
        told = held.get(unopened_lease_of(name))
        if told and told.state == "wrong":  # whoever is about to say so has the lease already, and has not said why
            return told.state, told.why, told.since
        if name in wrong:
            return "wrong", wrong[name], 0.0
        found = await expanded(settings, name, self._vault)
        if isinstance(found, Unopened) and not found.maybe:
            return "wrong", placed(settings, self._home, name, found.why), 0.0
        return "stopped", "", 0.0
