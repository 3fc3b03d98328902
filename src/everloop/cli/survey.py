"""`everloop models list`: which providers can be asked, and what their models can do and cost."""

from ..app.records import open_library
from ..app.survey import HostRow, ModelRow, Use, find_hosts, find_models, find_uses
from ..errors import EverloopError
from .parser import nearest
from .table import counted, rate, table, to_json
from .terminal import Terminal

WORDS = ("test", "key", "login", "logout")  # of `everloop models`, in whose place a provider may be named


async def list_hosts(everything: bool, as_json: bool, terminal: Terminal) -> int:
    """Also those that are configured and cannot be asked; with `everything`, those that could be configured too."""
    async with open_library() as library:
        terminal.status("asking the hosts …")
        uses = await find_uses(library)
        hosts = await find_hosts(library, uses, everything)
    presets = {name: preset.model for name, preset in library.settings.models.items()}
    if as_json:
        told = {"hosts": hosts, "default": uses[0], "fallbacks": [use for use in uses if use.role == "fallback"]}
        roles = ("small", "embeddings", "voice", "speech")
        purposes = {role: next((use for use in uses if use.role == role), None) for role in roles}
        terminal.answer(to_json({**told, **purposes, "presets": presets}))
    else:
        terminal.answer(_hosts_text(hosts, uses, presets))
    return 0


async def list_models(wanted: str, as_json: bool, terminal: Terminal) -> int:
    """Of a provider, or those that fit a pattern of provider/model. Raises ProviderError when it cannot be asked."""
    async with open_library() as library:
        terminal.status("asking the host …")
        try:
            rows = await find_models(library, wanted, await find_uses(library))
        except EverloopError as error:
            if (near := nearest(wanted, WORDS)) and f"{error}".startswith("there is no provider"):
                raise EverloopError(f"there is no provider, and no word, {wanted!r}{near}") from error
            raise
    terminal.answer(to_json({"models": rows}) if as_json else _models_text(wanted, rows))
    return 0


def _hosts_text(hosts: list[HostRow], uses: list[Use], presets: dict[str, str]) -> str:
    rows = [(row.name, row.key, row.state, "" if row.models is None else str(row.models), row.use) for row in hosts]
    lines = [table(("PROVIDER", "KEY", "STATE", " MODELS", "USE"), rows), ""]
    if not hosts:
        lines = ["No provider has a key. Set one such as OPENAI_API_KEY; `everloop models --all` shows them.", ""]
    lines += [f"{use.role}: {use.model}" + (f" (cannot be had: {use.why})" if use.why else "") for use in uses]
    lines += [f"preset {name}: {model}" for name, model in presets.items()]
    return "\n".join(lines)


def _models_text(wanted: str, rows: list[ModelRow]) -> str:
    if not rows:
        return f"There is no model {wanted}." if "/" in wanted else f"{wanted} lists no models."
    sight = {True: "yes", False: "no", None: "?"}
    cells = [
        (r.name, counted(r.window), counted(r.answer), rate(r.input), rate(r.output), sight[r.sees], r.use)
        for r in rows
    ]
    return table(("MODEL", " WINDOW", " ANSWER", " INPUT/M", " OUTPUT/M", "IMAGES", "USE"), cells)
