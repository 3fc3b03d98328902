"""Encryption of the gateway's own connections."""

import ssl
from pathlib import Path

from ...errors import SettingsError
from .listen import ListenSettings


def tls_context(place: ListenSettings, home: Path) -> ssl.SSLContext | None:
    """Raises SettingsError when the certificate or its key cannot be used."""
    if not place.tls_cert:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    cert, key = (home / Path(path).expanduser() for path in (place.tls_cert, place.tls_key))
    try:
        context.load_cert_chain(cert, key, lambda: _no_passphrase(key))
    except SettingsError:
        raise
    except (OSError, ValueError) as error:
        raise SettingsError(f"gateway.tls_cert {cert} and gateway.tls_key {key} cannot be used ({error})") from error
    return context


def _no_passphrase(key: Path) -> str:
    """Else whoever starts the gateway would be asked at a terminal, and nobody where there is none."""
    raise SettingsError(
        f"gateway.tls_key {key} is locked with a passphrase, which nobody types at a start: write it without one, "
        f"openssl pkey -in {key} -out FILE, for your eyes alone (chmod 600 FILE)"
    )
