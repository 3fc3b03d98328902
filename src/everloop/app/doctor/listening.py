"""Checks: whether the gateway would start where it is set to listen, and whether browsers take its certificate."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ...errors import SettingsError
from ...gateway.transport.listen import check_listen
from ...gateway.transport.tls import tls_context
from ...ports.doctor import Diagnosis
from .check import Check, Patient, advice, aside, broken, fine

PRIVILEGED = 1024  # below it, ports are root's on most machines
SOON = 14 * 86_400.0  # seconds, in which somebody can still get another certificate
RENEW = "Get another certificate, put it and its key there (gateway.tls_cert, gateway.tls_key), and restart the gateway"


async def look_at_listening(patient: Patient) -> Sequence[Diagnosis]:
    place = patient.chosen.gateway
    try:
        check_listen(place)
        await aside(tls_context, place, patient.home)
    except SettingsError as error:
        return [broken(str(error), "The gateway does not start before: everloop config edit")]
    if refused := await _refused_at(place.host):
        why = refused.strerror or str(refused)
        todo = "Set gateway.host to 127.0.0.1, 0.0.0.0 or an address of this machine: `ip address` shows them"
        return [broken(f"the gateway cannot listen at {place.host}: {why}", todo)]
    if 0 < place.port < PRIVILEGED and isinstance(await _refused_at(place.host, place.port), PermissionError):
        todo = f"Set gateway.port to {PRIVILEGED} or more, with a proxy before it where it has to be {place.port}"
        return [broken(f"the gateway may not listen at port {place.port}: on this machine that is root's", todo)]
    if not place.tls_cert:
        return fine(f"the gateway may listen at {place.host or 'every address'}")
    until = await aside(_valid_until, patient.home, place.tls_cert)
    return _aged(until, time.time()) or fine(f"the certificate of the gateway is good until {_day(until)}")


def _aged(until: float, now: float) -> list[Diagnosis]:
    if until < now:
        return [broken(f"the certificate of the gateway (gateway.tls_cert) has expired on {_day(until)}", RENEW)]
    if until < now + SOON:
        return [advice(f"the certificate of the gateway (gateway.tls_cert) expires on {_day(until)}", RENEW)]
    return []


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).date().isoformat()


async def _refused_at(host: str, port: int = 0) -> OSError | None:
    """Why nobody can listen there. Without a port any that is free will do."""
    try:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, host or None, port)
    except OSError as error:
        return error
    server.close()
    return None


def _valid_until(home: Path, certificate: str) -> float:
    """Of the first certificate in the file, which is the gateway's own."""
    from cryptography import x509  # only where there is one

    return x509.load_pem_x509_certificate(
        (home / Path(certificate).expanduser()).read_bytes()
    ).not_valid_after_utc.timestamp()


CHECKS = (
    Check(
        "gateway-listens", "the gateway may listen where it is set to, and its certificate is good", look_at_listening
    ),
)
