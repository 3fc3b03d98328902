"""Checks: which models answer, whether their hosts take the keys, and what is known of them. Nothing that costs is
asked unless `--live` is given."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import replace

from ...errors import EverloopError, ModelMissing, ProviderError
from ...gateway.transport.listen import is_loopback
from ...ports.doctor import Diagnosis
from ...providers.choose import EMBEDDED
from ...providers.keys import key_setting
from ...providers.models import ResolvedModel
from ...settings import Settings
from ..models import ModelLibrary, open_models
from ..presets import Presets
from ..survey import HostRow, Use, find_hosts, find_use, find_uses
from ..trial import trials_of
from .check import Check, Patient, advice, broken, fine, found_or_fine, skipped
from .logins import OnlookersVault

KEYS = "everloop models key set {name} keeps another; everloop models shows all hosts"


@asynccontextmanager
async def library_of(patient: Patient, vault: OnlookersVault | None = None) -> AsyncIterator[ModelLibrary]:
    assert patient.settings is not None
    settings = replace(patient.settings, net=replace(patient.settings.net, record=""))  # nothing is written down
    async with AsyncExitStack() as stack:
        yield await open_models(patient.home, settings, vault or OnlookersVault(patient.house.vault), stack)


async def look_at_uses(patient: Patient) -> Sequence[Diagnosis]:
    async with library_of(patient) as library:
        uses = await find_uses(library)
        named = [await find_use(library, role, name) for role, name in _named_in(library.settings)]
        weights = [*_wrong_weights(library, [*uses, *named])]
    found = [_missing(use) for use in uses if use.why]
    found += [_missing(use) for use in named if use.why]
    found += weights
    names = ", ".join(f"{use.model or 'the embedded model'} ({use.role})" for use in uses)
    return found_or_fine(found, f"models that are used: {names}")


def _wrong_weights(library: ModelLibrary, uses: Sequence[Use]) -> Iterator[Diagnosis]:
    """What is fetched is looked at when it comes; a file that somebody names is asked for with the first message."""
    if not (given := library.settings.providers.embedded.path):
        return
    from ...providers.embedded.weights import is_whole  # only where a file is named

    for use in uses:
        if use.model.partition("/")[0] != EMBEDDED or use.why:
            continue
        download = library.models.find(use.model).download
        if download and not is_whole(Path(given), download.weights):
            yield broken(
                f"providers.embedded.path names {given}, which is not there or is not {download.weights.file}",
                "Name the right file, or everloop config unset providers.embedded.path: it is fetched then",
            )


def _named_in(settings: Settings) -> Iterator[tuple[str, str]]:
    """Models that answer when somebody asks for them, or at some place; a preset is named by itself."""
    yield from ((f"models.{name}", preset.model) for name, preset in settings.models.items())
    personas = ((f"personas.{name}", persona.model) for name, persona in settings.personas.items())
    yield from ((role, name) for role, name in personas if name and name not in settings.models)


def _missing(use: Use) -> Diagnosis:
    what = f"the {use.role} model {use.model!r} cannot be had: {use.why}"
    setting = f"{use.role}.model" if use.role in ("voice", "speech") or "." in use.role else "agents.defaults"
    todo = f"everloop models shows what can be asked; the setting is {setting}"
    return broken(what, todo) if use.role == "default" else advice(what, todo)


async def look_at_hosts(patient: Patient) -> Sequence[Diagnosis]:
    vault = OnlookersVault(patient.house.vault)
    async with library_of(patient, vault) as library:
        uses = await find_uses(library)
        rows = await find_hosts(library, uses, everything=False)
    waiting = [row for row in rows if row.name in vault.run_out]
    found = [_refused(row) for row in rows if row.state != "reachable" and row not in waiting]
    reached = ", ".join(f"{row.name} ({row.models} models)" for row in rows if row.state == "reachable")
    if not rows:
        return fine("no host is configured; the embedded model answers")
    told = "".join(f". {row.why.rstrip('.')}" for row in waiting)
    return found_or_fine(found, f"hosts that answer and take their keys: {reached or 'none was asked'}{told}")


def _refused(row: HostRow) -> Diagnosis:
    what = f"{row.name}: {row.state} ({row.why or row.key})"
    if row.state in ("key refused", "no credit"):
        todo = _other_key(row)
    elif row.state in ("not reachable", "no answer"):
        todo = f"See that it runs and can be reached from here, and that providers.{row.name}.api_base is right"
    else:
        todo = f"everloop models {row.name} asks it again; the settings are providers.{row.name}"
    return broken(what, todo) if row.use == "default" else advice(what, todo)


def _other_key(row: HostRow) -> str:
    if row.key == "login":
        return f"everloop models login {row.name} logs in anew; everloop models shows all hosts"
    if row.key in ("vault", "none", "no key needed"):
        return KEYS.format(name=row.name)
    first = key_setting(row.name, row.key) or row.key
    return (
        f"It is that of {first}: put another there, or take it out and keep one by everloop models key set {row.name}"
    )


async def look_at_names(patient: Patient) -> Sequence[Diagnosis]:
    """Of models whose hosts list what they have; a server that only transcribes or speaks is no such host."""
    found = []
    async with library_of(patient) as library:
        elsewhere = {"voice": library.settings.voice.api_base, "speech": library.settings.speech.api_base}
        for use in [use for use in await find_uses(library) if not (use.why or elsewhere.get(use.role))]:
            if (sentence := await _unlisted(library, use)) is not None:
                found.append(sentence)
    return found_or_fine(found, "the models that are used are listed by their hosts")


async def _unlisted(library: ModelLibrary, use: Use) -> Diagnosis | None:
    try:
        choice = await library.models.look(use.model)
        if choice.host is None:
            return None
        listed = [model.name for model in await library.models.discovery.models(choice)]
    except (ModelMissing, ProviderError):
        return None  # the hosts themselves are told of by another check
    if not listed or choice.model in listed:
        return None
    from difflib import get_close_matches  # only a mistake needs it

    near = get_close_matches(choice.model, listed, 3, 0.5)
    meant = f"Did you mean {' or '.join(f'{choice.host.name}/{name}' for name in near)}? " if near else ""
    return advice(
        f"{choice.host.name} does not list the {use.role} model {choice.model!r}",
        f"{meant}everloop models {choice.host.name} lists what it has",
    )


async def look_at_facts(patient: Patient) -> Sequence[Diagnosis]:
    assert patient.settings is not None
    async with library_of(patient) as library:
        presets = Presets(library.settings, library.models)
        asked = presets.asked("")
        try:
            choice = await library.models.look(asked.model)
            model = presets.find("")
        except ModelMissing:
            return skipped("there is no model yet")
        limits, price, _ = library.models.facts(asked.model)
        window = asked.context_window or limits.window or await _measured(model)
    found = []
    if not window:
        found.append(
            advice(
                f"nobody knows how much {model.name} can read: it is taken to be little",
                "Set agents.defaults.context_window to its tokens",
            )
        )
    if price is None and (choice.key or not is_loopback(urlsplit(choice.base).hostname or "")):
        found.append(
            advice(
                f"nobody knows what {model.name} costs: no budget in money holds, and usage has no cost",
                f'Set its price, in dollars for a million tokens: [prices."{model.model}"] input = …, output = …',
            )
        )
    return found_or_fine(found, f"{model.name} reads {window or 0:,} tokens, and its price is known, or it has none")


async def _measured(model: ResolvedModel) -> int | None:
    if model.measure is None:
        return model.limits.window
    try:
        return (await model.measure()).window
    except ProviderError:
        return None


async def try_answer(patient: Patient) -> Sequence[Diagnosis]:
    if not patient.live:
        return skipped("a model is asked for an answer with --live, as that may cost something")
    vault = OnlookersVault(patient.house.vault)
    async with library_of(patient, vault) as library:
        try:
            trials = await trials_of("", Presets(library.settings, library.models), library.models)
            tried = [await run(lambda _: None) for run in trials.run]
        except EverloopError as error:
            return [broken(f"the model does not answer: {error}", "everloop models test shows more")]
    if vault.run_out:
        return skipped(f"{trials.model} is not asked: its login has run out, and is renewed with the next message")
    found = [
        broken(f"{trials.model} failed at the {each.name}: {each.why}", "Choose another model; everloop models test")
        for each in tried
        if not each.ok
    ]
    return found_or_fine(found, f"{trials.model} has answered and called a tool")


CHECKS = (
    Check(
        "models",
        "the default model, fallbacks, presets, those of personas and for other purposes can be had",
        look_at_uses,
        "store",
    ),
    Check("hosts", "hosts of models answer and take their keys, local servers too", look_at_hosts, "store", 30),
    Check("model-names", "the models that are used are in the lists of their hosts", look_at_names, "store", 30),
    Check("model-facts", "the window and the price of the default model are known", look_at_facts, "store"),
    Check("model-answers", "with `--live`: the model answers and calls a tool", try_answer, "store", 120),
)
