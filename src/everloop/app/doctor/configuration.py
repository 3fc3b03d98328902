"""Checks: the settings file, what it names that does nothing, variables that are meant for it, and which home this
is."""

import os
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

import msgspec
from msgspec import Struct

from ...ports.doctor import Diagnosis
from ...settings import Settings, home_of, unused
from ...settings.check import is_section, kind_of_sections
from ...settings.sources import FILES, file_of
from ...store.onlooking import DATABASE
from ...store.vault import PASSPHRASE
from ..channels import known
from ..rehearsal import opening_fault
from .check import Check, Patient, advice, aside, broken, fine, found_or_fine, skipped

PREFIX = "EVERLOOP_"
OTHERS = ("EVERLOOP_HOME", PASSPHRASE)  # variables that are no settings
CLOSE = 0.85


async def look_at_file(patient: Patient) -> Sequence[Diagnosis]:
    if patient.settings is None:
        if "cannot be read" in patient.unread:
            return [broken(patient.unread, f"See that you (uid {os.getuid()}) may read it; nothing starts before")]
        return [broken(patient.unread, "Correct it there; nothing starts before")]
    path = file_of(patient.home)
    left = [copy for copy in (patient.home / f"config.edit{Path(name).suffix}" for name in FILES) if copy.exists()]
    if left:
        todo = f"everloop config edit goes on with it; rm {left[0]} gives it up"
        return [
            advice(f"{left[0]} holds an edit of the settings that was not put in place, and counts for nothing", todo)
        ]
    if path and not path.stat().st_size:
        return [
            advice(
                f"{path} is empty, as a full disk leaves what is edited: the defaults count",
                f"Put back what was in it, as from a backup; if nothing was: rm {path}",
            )
        ]
    return fine(f"{path} is understood" if path else "there is no settings file; the defaults count")


async def look_at_opening(patient: Patient) -> Sequence[Diagnosis]:
    """What no look at a single value tells: a workspace that holds the home, a tool or a plugin that there is not."""
    if not await aside(patient.home.is_dir):
        return skipped("there is no home yet")
    if fault := await opening_fault(patient.house, patient.chosen):
        return [broken(fault, "everloop config edit, or everloop config set; no chat and no gateway opens before")]
    return fine("everloop would open with these settings")


async def look_at_unused(patient: Patient) -> Sequence[Diagnosis]:
    assert patient.settings is not None
    found = [
        advice(sentence, "Take it out of the settings, or install a package that brings the channel")
        for sentence in unused(patient.settings, known(patient.settings))
    ]
    return found_or_fine(found, "everything that is set is used")


async def look_at_variables(patient: Patient) -> Sequence[Diagnosis]:
    """What has `__` in it is checked with the settings; what has not is not taken for one, and does nothing."""
    found = [
        advice(f"{name} is set and does nothing: it is not the name of a setting", f"Did you mean {meant}?")
        for name in sorted(patient.environ)
        if name.startswith(PREFIX) and name not in OTHERS and "__" not in name and (meant := meant_by(name))
    ]
    return found_or_fine(found, "no variable looks like a misspelt setting")


def meant_by(variable: str) -> str:
    """The variable of a setting whose name this nearly is; "" where it is one, or is nearly none."""
    word = variable.removeprefix(PREFIX).lower()
    if word in Settings.__struct_fields__:
        return ""
    flat = {"_".join(path): path for path in paths_in(Settings)}
    ends = [path for path in flat.values() if path[-1] == word]
    near = get_close_matches(word, flat, 1, CLOSE)
    path = flat.get(word) or (flat[near[0]] if near else ends[0] if ends else ())
    return PREFIX + "__".join(path).upper() if path else ""


def paths_in(shape: type[Struct], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Of every setting that has a name of its own."""
    for field in msgspec.structs.fields(shape):
        path = (*above, field.name)
        if is_section(field.type):
            yield from paths_in(field.type, path)
        elif not kind_of_sections(field.type):
            yield path


async def look_at_homes(patient: Patient) -> Sequence[Diagnosis]:
    usual = home_of({name: value for name, value in patient.environ.items() if name != "EVERLOOP_HOME"})
    if patient.home == usual or has_data(patient.home) or not has_data(usual):
        return fine(f"the home is {patient.home}")
    return [
        advice(
            f"the home {patient.home} is empty, and there is another with conversations at {usual}",
            f"If that is the one you mean: unset EVERLOOP_HOME, or export EVERLOOP_HOME={usual}",
        )
    ]


def has_data(home: Path) -> bool:
    return (home / DATABASE).exists()


CHECKS = (
    Check("settings-file", "the settings file can be read and is understood, every key and value", look_at_file),
    Check(
        "settings-followed", "workspace, tools, plugins, personas can be had as they are set", look_at_opening, "store"
    ),
    Check(
        "settings-unused", "what is set and does nothing, as a channel that there is not", look_at_unused, "settings"
    ),
    Check("environment", "variables `EVERLOOP_…` that are nearly the name of a setting", look_at_variables),
    Check("homes", "whether this is the home with the conversations, where there are two", look_at_homes),
)
