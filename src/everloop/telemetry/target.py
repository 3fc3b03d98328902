"""Where spans are sent: as the settings say, or else the variables that every OpenTelemetry program knows."""

import logging
from collections.abc import Mapping
from urllib.parse import unquote

from msgspec import Struct

from ..errors import SettingsError
from ..readings.spans import Value

_log = logging.getLogger("everloop.telemetry")

PATH = "/v1/traces"
PROTOCOL = "http/protobuf"


class ExportTarget(Struct, frozen=True):
    url: str
    headers: Mapping[str, str]
    resource: Mapping[str, Value]

    def __repr__(self) -> str:  # headers and addresses hold keys
        return "ExportTarget(…)"


def target_of(
    endpoint: str, headers: Mapping[str, str], environ: Mapping[str, str], version: str
) -> ExportTarget | None:
    """None when nobody wants spans. `endpoint` and `headers` are the settings', and come first.

    Raises SettingsError when the setting is no address. Variables may be meant for other programs: those that ask for
    something that we don't do are passed over with a warning."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    url = _with_path(endpoint) or _named(environ)
    if not url:
        return None
    if not url.startswith(("http://", "https://")):
        raise SettingsError("telemetry.otlp_endpoint must be an address that begins with http:// or https://")
    given = _pairs(environ, "OTEL_EXPORTER_OTLP_HEADERS") | _pairs(environ, "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
    return ExportTarget(url, headers or given, _resource(environ, version))


def _named(environ: Mapping[str, str]) -> str:
    """The address that the environment names, if it is one that we can send to."""
    whole = environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "").strip()
    url = whole or _with_path(environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", ""))
    if not url or environ.get("OTEL_TRACES_EXPORTER", "").strip() not in ("otlp", ""):
        return ""
    protocol = environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if (protocol or PROTOCOL).strip() != PROTOCOL or not url.startswith(("http://", "https://")):
        _log.warning("no spans are sent: the OTEL_EXPORTER_OTLP_… variables ask for another protocol than %s", PROTOCOL)
        return ""
    return url


def _with_path(base: str) -> str:
    base = base.strip().rstrip("/")
    return base if not base or base.endswith(PATH) else f"{base}{PATH}"


def _resource(environ: Mapping[str, str], version: str) -> dict[str, Value]:
    own: dict[str, Value] = {"service.name": "everloop", "service.version": version}
    own |= _pairs(environ, "OTEL_RESOURCE_ATTRIBUTES")
    if name := environ.get("OTEL_SERVICE_NAME", "").strip():
        own["service.name"] = name
    return own


def _pairs(environ: Mapping[str, str], name: str) -> dict[str, str]:
    """`a=b,c=d`, as in the environment; what is no pair is passed over."""
    pairs = (pair.partition("=") for pair in environ.get(name, "").split(","))
    return {key.strip(): unquote(value.strip()) for key, is_pair, value in pairs if is_pair and key.strip()}
