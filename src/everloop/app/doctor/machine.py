"""Checks: Python and packages, what the settings need that is not installed, the clock and time zones."""

import os
import re
import ssl
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from importlib import metadata
from importlib.util import find_spec
from zoneinfo import ZoneInfo

import apsw

from ...errors import EverloopError, ModelMissing, StoreError
from ...ports.doctor import Diagnosis
from ...ports.log_lines import FILE, FOLDER
from ...settings import Settings
from ...settings.unused import switched_on
from ..channels import NEEDED
from ..log_tail import read_since, too_large_in
from ..presets import Presets
from ..schedules import zone_here
from .check import Check, Patient, advice, aside, broken, fine, found_or_fine, many, skipped
from .models import library_of

OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = 3_045_000
SKEWED, FAR_OFF = 30.0, 300.0  # seconds
ANSWER = 5.0
_NUMBER = re.compile(r"\d+")


async def look_at_python(patient: Patient) -> Sequence[Diagnosis]:
    found = []
    if sys.version_info < OLDEST_PYTHON:
        found.append(broken(f"Python {sys.version.split()[0]} is too old", "Use Python 3.11 or newer"))
    if _number(apsw.sqlite_lib_version()) < OLDEST_SQLITE:
        found.append(
            advice(f"SQLite {apsw.sqlite_lib_version()} is old, and slow at some of this", "pip install -U apsw")
        )
    return found_or_fine(found, f"Python {sys.version.split()[0]}, SQLite {apsw.sqlite_lib_version()}")


def _number(version: str) -> int:
    major, minor, patch = (*map(int, version.split(".")[:3]), 0, 0)[:3]
    return major * 1_000_000 + minor * 1000 + patch


async def look_at_packages(patient: Patient) -> Sequence[Diagnosis]:
    """Those that everloop always needs, as its own record names them."""
    try:
        required = [each for each in metadata.requires("everloop") or () if "extra ==" not in each]
    except metadata.PackageNotFoundError:
        return skipped("everloop runs from its source and has no record of what it needs")
    found = [each for text in required if (each := _lacking(text.partition(";")[0]))]
    return found_or_fine(found, f"what everloop needs is there: {many(len(required), 'package')}")


def _lacking(requirement: str) -> Diagnosis | None:
    name, _, least = requirement.partition(">=")
    name = re.split(r"[\[<>=!~ ]", name.strip())[0]
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return broken(f"the package {name} is not installed", f"pip install '{requirement.strip()}'")
    if least and _parts(version) < _parts(least.split(",")[0]):
        return broken(
            f"{name} {version} is older than everloop needs ({least})", f"pip install '{requirement.strip()}'"
        )
    return None


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in _NUMBER.findall(version.split("+")[0])[:3])


async def look_at_extras(patient: Patient) -> Sequence[Diagnosis]:
    assert patient.settings is not None
    found = [
        broken(
            f"{why}, and {module} is not installed, which belongs to the extra [{extra}]",
            f"pip install 'everloop[{extra}]'",
        )
        for why, extra, module in needed_by(patient.settings)
        if not is_installed(module)
    ]
    return found_or_fine(found, "what the settings need is installed")


def needed_by(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Why something is needed, the extra, and a module of it."""
    if settings.store.url:
        yield "store.url names PostgreSQL", "postgres", "asyncpg"
    if settings.files.url.startswith("s3:"):
        yield "files.url names a bucket", "s3", "obstore"
    for name in switched_on(settings.channels):
        for module in NEEDED.get(name, ()):
            yield f"channels.{name} is set", "channels", module
    if any(server.enabled for server in settings.tools.mcp_servers.values()):
        yield "tools.mcp_servers names servers", "mcp", "mcp"
    if settings.agents.defaults.model.startswith("embedded"):
        yield "agents.defaults.model is the embedded one", "local", "xllamacpp"
    if settings.tools.web.search.engine == "ddgs":
        yield "tools.web.search.engine is ddgs", "web", "ddgs"


def is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


async def look_at_clock(patient: Patient) -> Sequence[Diagnosis]:
    """Against the database's where that is elsewhere, the host of the model, and what was written here before."""
    told = [each for each in (await _of_database(patient), await _of_host(patient), await _of_log(patient)) if each]
    found = [_skew(name, by) for name, by in told if abs(by) >= SKEWED]
    if not told:
        return skipped("there is nobody to compare the clock with")
    return found_or_fine(found, f"the clock goes as that of {' and '.join(name for name, _ in told)}")


def _skew(name: str, by: float) -> Diagnosis:
    what = f"the clock of this machine is {abs(by):,.0f} s {'ahead of' if by > 0 else 'behind'} that of {name}"
    todo = "Set it, best by NTP: sudo timedatectl set-ntp true"
    return broken(f"{what}: logins and certificates fail", todo) if abs(by) >= FAR_OFF else advice(what, todo)


async def _of_database(patient: Patient) -> tuple[str, float] | None:
    url = patient.chosen.store.url
    if not url or not is_installed("asyncpg"):
        return None
    from ...store.onlooking_server import facts_of

    try:
        facts = await facts_of(url)
    except StoreError:
        return None
    return "the database", time.time() - facts.now


async def _of_log(patient: Patient) -> tuple[str, float] | None:
    """Whose lines of later tell that the clock has gone back, as where its battery is empty."""
    path = patient.home / FOLDER / FILE
    if not os.access(path, os.R_OK) or not await aside(os.path.isfile, path):
        return None
    if await aside(too_large_in, patient.home):  # which the check of the log tells
        return None
    later = await aside(read_since, patient.home, time.time() + SKEWED)
    try:
        last = datetime.fromisoformat(later[-1].time).timestamp() if later else None
    except ValueError:  # a line that somebody else has written
        return None
    return ("everloop.log, where lines of later stand", time.time() - last) if last else None


async def _of_host(patient: Patient) -> tuple[str, float] | None:
    if patient.settings is None or patient.opened is None:
        return None
    async with library_of(patient) as library:
        try:
            choice = await library.models.look(Presets(library.settings, library.models).asked("").model)
        except ModelMissing:
            return None
        if choice.host is None:
            return None
        try:
            began = time.time()
            async with library.http.request("GET", f"{choice.base}/models", seconds=ANSWER) as answer:
                date = answer.headers.get("Date", "")
            there = parsedate_to_datetime(date).timestamp() if date else None
        except (EverloopError, ValueError):
            return None
    return (choice.host.name, (began + time.time()) / 2 - there) if there else None


async def look_at_zones(patient: Patient) -> Sequence[Diagnosis]:
    zone = patient.chosen.schedules.timezone
    todo = "pip install tzdata, or install the system's package tzdata"
    try:
        ZoneInfo("Europe/Berlin")
    except (OSError, ValueError, KeyError):
        return [broken("there is no data of time zones on this machine: schedules cannot be worked out", todo)]
    try:
        ZoneInfo(zone or "UTC")
    except (OSError, ValueError, KeyError):
        return [
            broken(f"schedules.timezone is {zone!r}, which is no time zone", "Write one such as Europe/Berlin or UTC")
        ]
    named = patient.environ.get("TZ", "").removeprefix(":")
    if named and not zone and (here := zone_here()) != named:
        return [
            advice(
                f"TZ is {named!r}, which is no name of a time zone: schedules go by {here}",
                "Write one such as Europe/Berlin, or set schedules.timezone",
            )
        ]
    return fine(f"time zones are known{f'; schedules go by {zone}' if zone else ''}")


async def look_at_roots(patient: Patient) -> Sequence[Diagnosis]:
    """Whose certificates are believed."""
    path = patient.chosen.net.ca_file
    try:
        context = ssl.create_default_context()
        if path:
            context.load_verify_locations(path)
    except (OSError, ssl.SSLError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it holds no certificate in PEM"
        return [broken(f"net.ca_file, {path}, cannot be used ({why})", "Name a file of certificates, or take it out")]
    places = ssl.get_default_verify_paths()
    if not context.cert_store_stats()["x509_ca"] and not places.capath:
        return [
            broken(
                "this machine has no certificates of authorities: no host can be believed",
                "Install ca-certificates (Debian: apt install ca-certificates), or set SSL_CERT_FILE",
            )
        ]
    return fine("authorities for TLS are known")


CHECKS = (
    Check("python", "the versions of Python and SQLite", look_at_python),
    Check("packages", "the packages that everloop needs are there and new enough", look_at_packages),
    Check("extras", "what the settings need is installed: PostgreSQL, S3, channels, MCP", look_at_extras, "settings"),
    Check("clock", "the clock, against the database's, that of the model's host, and the log", look_at_clock),
    Check("time-zones", "data of time zones, and the zone of schedules", look_at_zones),
    Check("tls-roots", "the authorities that certificates are checked against", look_at_roots),
)  # fmt: skip
