"""The OpenAPI document, written from the table of routes."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from .route import ApiRoute
from .shapes import Refusal

BYTES = {"type": "string", "format": "binary", "minLength": 1}
REFS = "#/components/schemas/{name}"


def document(table: Sequence[ApiRoute], version: str) -> dict[str, Any]:
    kinds = [kind for route in table for kind in (route.answers, route.body) if _is_named(kind)]
    _, schemas = msgspec.json.schema_components([*dict.fromkeys(kinds), Refusal], ref_template=REFS)
    paths: dict[str, dict[str, Any]] = {}
    for route in table:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "everloop", "version": version, "description": "What the page shows, for other programs."},
        "security": [{"token": []}, {"cookie": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "everloop"},
            },
        },
    }


def _operation(route: ApiRoute) -> dict[str, Any]:
    scopes = " and ".join(route.permission.scopes)
    told: dict[str, Any] = {
        "operationId": route.handle.__name__,
        "summary": route.summary,
        "description": f"Needs the role {route.least.name.lower()} and, of a token, the scope {scopes}.",
        "parameters": [*_parameters(route.at, "path"), *_parameters(route.query, "query")],
        "responses": {
            str(route.status): {"description": "done", "content": _content(route.answers)},
            **_refusals(route),
        },
    }
    if route.body is not None:
        told["requestBody"] = {"required": True, "content": _content(route.body)}
    elif route.takes_bytes:
        taken = {"type": "string", "format": "binary"} if route.may_be_empty else BYTES
        content = {"application/octet-stream": {"schema": taken}}
        told["requestBody"] = {"required": not route.may_be_empty, "content": content}
    return told


def _is_named(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _content(kind: Any) -> dict[str, Any]:
    if kind is None:
        return {"*/*": {"schema": {"type": "string", "format": "binary"}}}
    if not _is_named(kind):
        return {"application/json": {"schema": msgspec.json.schema(kind)}}
    return {"application/json": {"schema": {"$ref": REFS.format(name=kind.__name__)}}}


def _refusals(route: ApiRoute) -> dict[str, Any]:
    words = {"400": "not understood", "401": "nobody is logged in", "403": "not allowed", "503": "the store failed"}
    if route.at.__struct_fields__:
        words["404"] = "not there"
    if route.method != "GET":
        words |= {"409": "cannot be done now", "413": "too large", "415": "not JSON"}
    words |= {str(status): word for status, word in route.further.items()}
    return {status: {"description": word, "content": _content(Refusal)} for status, word in sorted(words.items())}


def _parameters(kind: type[Struct], place: str) -> list[dict[str, Any]]:
    schema = msgspec.json.schema_components([kind], ref_template=REFS)[1][kind.__name__]
    return [
        {"name": name, "in": place, "required": place == "path" or name in schema["required"], "schema": each}
        for name, each in schema["properties"].items()
    ]
