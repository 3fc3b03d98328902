"""Where spans go: the settings, the environment, or nowhere."""

import pytest

from everloop.errors import SettingsError
from everloop.telemetry.target import ExportTarget, target_of

OWN = {"service.name": "everloop", "service.version": "1"}


def found(endpoint: str = "", headers: dict[str, str] | None = None, **environ: str) -> ExportTarget | None:
    return target_of(endpoint, headers or {}, environ, "1")


def test_without_any_address_there_is_none():
    assert found() is None
    assert found(OTEL_SERVICE_NAME="mine") is None


@pytest.mark.parametrize("written", ["http://h:4318", "http://h:4318/", "http://h:4318/v1/traces"])
def test_the_path_is_added_where_it_is_missing(written):
    assert found(written) == ExportTarget("http://h:4318/v1/traces", {}, OWN)


def test_the_environment_names_it_with_headers_and_resource():
    environ = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://h/otlp",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Basic%20abc, x-team=one",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=home,service.name=other",
        "OTEL_SERVICE_NAME": "mine",
    }
    resource = {**OWN, "deployment.environment": "home", "service.name": "mine"}
    headers = {"authorization": "Basic abc", "x-team": "one"}
    assert found(**environ) == ExportTarget("https://h/otlp/v1/traces", headers, resource)


def test_the_settings_come_before_the_environment():
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://other", "OTEL_EXPORTER_OTLP_HEADERS": "a=b"}
    assert found("http://mine", {"c": "d"}, **environ) == ExportTarget("http://mine/v1/traces", {"c": "d"}, OWN)


def test_an_address_for_traces_alone_is_taken_as_it_is():
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://other", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h/x"}
    assert found(**environ) == ExportTarget("http://h/x", {}, OWN)


@pytest.mark.parametrize(
    "environ",
    [
        {"OTEL_SDK_DISABLED": "true"},
        {"OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "h:4317"},
    ],
)
def test_variables_that_ask_for_something_else_are_passed_over(environ):
    assert found(**{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", **environ}) is None


def test_a_setting_that_is_no_address_is_refused():
    with pytest.raises(SettingsError, match=r"telemetry\.otlp_endpoint must be an address"):
        found("localhost:4318")


def test_nothing_of_it_is_shown():
    assert repr(found("http://me:secret@h", {"authorization": "secret"})) == "ExportTarget(…)"
