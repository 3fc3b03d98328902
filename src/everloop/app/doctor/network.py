"""Checks: proxies, names, and whether the host of the model can be reached from here."""

import asyncio
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

from yarl import URL

from ...errors import HostUnreachable, ModelMissing
from ...net.proxies import find_proxy
from ...ports.doctor import Diagnosis
from ...providers.choose import Choice
from ...settings.shape import masked
from ..presets import Presets
from .check import Check, Patient, aside, broken, fine, skipped
from .models import library_of

REACH = 5.0  # seconds
SAMPLE = "https://model.example"  # any host that is not this machine
VARIABLES = "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY"


async def look_at_proxy(patient: Patient) -> Sequence[Diagnosis]:
    wanted = patient.chosen.net.proxy
    where = "net.proxy" if wanted else VARIABLES
    try:
        proxy = find_proxy(URL(SAMPLE), wanted)
    except HostUnreachable:
        return [
            broken(f"{where} does not name an HTTP proxy", "Write an address that begins with http://, or unset it")
        ]
    if proxy is None or not proxy.host:
        return fine("there is no proxy")
    shown = masked(str(proxy))
    if why := await unreachable(proxy.host, proxy.port or 80):
        return [
            broken(
                f"the proxy {shown} of {where} cannot be reached ({why}): nothing outside can be",
                f"See that it runs, or unset {where}; hosts to be reached without it stand in NO_PROXY",
            )
        ]
    return fine(f"the proxy {shown} answers")


async def look_at_egress(patient: Patient) -> Sequence[Diagnosis]:
    choice = await _choice_of(patient)
    if choice is None:
        return skipped("no host of a model is configured")
    assert choice.host is not None
    address = urlsplit(choice.base)
    host, port = address.hostname or "", address.port or (443 if address.scheme == "https" else 80)
    if find_proxy(URL(choice.base), patient.chosen.net.proxy):
        return skipped(f"{host} is reached through the proxy")
    try:
        async with asyncio.timeout(REACH):
            await aside(socket.getaddrinfo, host, port)
    except (OSError, TimeoutError, UnicodeError) as error:
        why = getattr(error, "strerror", "") or "nobody answers"
        return [
            broken(
                f"the name {host} of {choice.host.name} cannot be looked up ({why})",
                "See that this machine has a network and a name server (/etc/resolv.conf), and that the name is right",
            )
        ]
    if why := await unreachable(host, port):
        return [
            broken(
                f"{host}:{port} of {choice.host.name} cannot be reached ({why})",
                f"See that it runs and no firewall is between; its address is providers.{choice.host.name}.api_base",
            )
        ]
    return fine(f"{host}:{port} can be reached")


async def _choice_of(patient: Patient) -> Choice | None:
    async with library_of(patient) as library:
        try:
            choice = await library.models.look(Presets(library.settings, library.models).asked("").model)
        except ModelMissing:
            return None
    return choice if choice.host else None


async def unreachable(host: str, port: int) -> str:
    """Why nobody can be reached there; "" if somebody can."""
    try:
        async with asyncio.timeout(REACH):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        return f"nobody answers within {REACH:g} s"
    except (OSError, UnicodeError) as error:
        return getattr(error, "strerror", "") or str(error)
    writer.close()
    return ""


CHECKS = (
    Check("proxy", "the proxy of the settings or the environment is one, and answers", look_at_proxy),
    Check("egress", "the host of the model has an address and can be reached", look_at_egress, "store"),
)
