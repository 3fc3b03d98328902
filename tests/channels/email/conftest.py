"""One pair of mail servers for each file."""

from collections.abc import AsyncIterator, Iterator

import pytest

from everloop.net.trusted import TrustedHttp
from tests.channels.email.servers import MailServer, missing


@pytest.fixture(scope="module")
def server() -> Iterator[MailServer]:
    if reason := missing():
        pytest.skip(reason)
    server = MailServer()
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
async def http(server: MailServer) -> AsyncIterator[TrustedHttp]:
    http = TrustedHttp(server.ca_file)
    yield http
    await http.close()
