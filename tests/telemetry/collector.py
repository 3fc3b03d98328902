"""A collector for tests: takes OTLP over HTTP as the real ones do, and reads it with OpenTelemetry's own parser."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
PATIENCE = 60.0


class Collector:
    def __init__(self, url: str = "") -> None:
        self.url = url
        self.requests: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.statuses: list[int] = []  # of the next answers; 200 after that
        self.asked = 0
        self._changed = asyncio.Condition()

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        status = self.statuses.pop(0) if self.statuses else 200
        async with self._changed:
            self.asked += 1
            if status == 200:
                self.requests.append(service.ExportTraceServiceRequest.FromString(body))
                self.headers.append(dict(request.headers))
            self._changed.notify_all()
        return web.Response(status=status)

    async def until(self, spans: int) -> list[Any]:
        """Wait until so many spans have come."""
        async with asyncio.timeout(PATIENCE), self._changed:
            await self._changed.wait_for(lambda: len(self.spans()) >= spans)
        return self.spans()

    async def until_asked(self, times: int) -> None:
        async with asyncio.timeout(PATIENCE), self._changed:
            await self._changed.wait_for(lambda: self.asked >= times)

    def spans(self) -> list[Any]:
        return [span for request in self.requests for span in spans_in(request)]


def spans_in(request: Any) -> Iterator[Any]:
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            yield from scope.spans


def value_of(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [value_of(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, kind)


def attributes_of(span: Any) -> dict[str, Any]:
    return {each.key: value_of(each.value) for each in span.attributes}


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    collector = Collector()
    app = web.Application()
    app.add_routes([web.post("/v1/traces", collector.take)])
    async with TestServer(app) as server:
        collector.url = str(server.make_url("")).rstrip("/")
        yield collector
