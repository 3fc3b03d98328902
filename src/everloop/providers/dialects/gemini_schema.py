"""A tool's JSON schema as Gemini takes it.

`parametersJsonSchema` takes most of JSON Schema as it is, but refuses a whole request over a `$schema`, or over a
`$ref` that stands beside anything but a description and a default. Tools of other people's servers have both.
"""

from typing import Any

_BESIDE_REF = ("$ref", "description", "default")


def fitted(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema without what Gemini refuses."""
    fit: dict[str, Any] = _fit(schema)
    fit.pop("$schema", None)
    return fit


def _fit(value: Any) -> Any:
    match value:
        case {"$ref": str()}:
            return {key: value[key] for key in _BESIDE_REF if key in value}
        case dict():
            return {key: _fit(item) for key, item in value.items()}
        case list():
            return [_fit(item) for item in value]
    return value
