"""What a server's HTTP answer means where it is not one that the SDK understands; pure."""

from typing import Any

import httpx2
import msgspec

from ...errors import AnswerTooLarge, EverloopError, HostHungUp, HostUnreachable, McpLogin, ProviderError
from ...ports.mcp import McpServer
from .failures import FailureKind, WireFailure
from .hidden import without_secrets
from .transport import EVENTS, origin_of

_JSON = "application/json"
_OLDER = ' If it is an older server, set its transport to "sse".'


def judge(server: McpServer, response: httpx2.Response) -> WireFailure | None:
    """What is wrong with the whole answer to a message; None: the SDK can read it. It never quotes the server."""
    status, asked = response.status_code, response.request.headers
    if status < 300:
        return _judge_content(server, response)
    if status < 400:
        return _judge_redirect(server, response)
    if status == 404 and "mcp-session-id" in asked:
        return WireFailure("session", f"{server.name} no longer knows our session (404).")
    if _is_rpc_error(response):
        return None
    kind: FailureKind = "lost" if status >= 500 else "down"
    return WireFailure(kind, f"{server.name} {_reason(server, response)}")


def failure_from(server: McpServer, error: EverloopError) -> WireFailure:
    """What an error of `net`, of the vault or of a login means for the request that it befell."""
    if isinstance(error, McpLogin):
        return WireFailure("login", str(error))
    before = isinstance(error, HostUnreachable) and not isinstance(error, HostHungUp)
    lost = isinstance(error, ProviderError | AnswerTooLarge) and not before
    return WireFailure("lost" if lost else "down", f"{server.name} is no help now: {error}")


def retry_after(response: httpx2.Response) -> int:
    """Seconds; 0: it does not say."""
    said = response.headers.get("retry-after", "")
    return min(int(said), 86_400) if said.isascii() and said.isdigit() and len(said) < 10 else 0


def _judge_redirect(server: McpServer, response: httpx2.Response) -> WireFailure | None:
    """The SDK follows those within the server's origin."""
    there = response.next_request
    if there is None or origin_of(there.url) == origin_of(response.request.url):
        return None
    return WireFailure(
        "down",
        f"{server.name} redirects to {origin_of(there.url)}, which is not followed. If it has moved there, set its new "
        "address.",
    )


def _judge_content(server: McpServer, response: httpx2.Response) -> WireFailure | None:
    """A notification is accepted in any words; a request wants an answer."""
    if response.status_code == 202 or not _is_request(response.request):
        return None
    kind = content_type(response)
    if kind in (_JSON, EVENTS):
        return None
    said = f"with {kind[:60]!a}" if kind else "without saying what it is,"
    place = without_secrets(server, server.url)
    return WireFailure(
        "lost", f"{server.name} answers {said} in place of JSON: check that its address ({place}) is that of MCP."
    )


def _reason(server: McpServer, response: httpx2.Response) -> str:
    place = without_secrets(server, server.url)
    match response.status_code:
        case 401:
            return "does not accept the key that is set for it (401). Check its headers and its address."
        case 403:
            return "does not let us in (403). Check its headers, its login and its address."
        case 404:
            return f"has nothing at {place} (404). Check its address.{_OLDER}"
        case 405:
            return f"does not take messages at {place} (405). Check its address.{_OLDER}"
        case 429:
            seconds = retry_after(response)
            return f"has been asked too much (429). Try again {f'in {seconds} s' if seconds else 'later'}."
        case status if status >= 500:
            return f"has failed ({status})."
        case status:
            return f"refuses the request ({status})."


def content_type(response: httpx2.Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_request(request: httpx2.Request) -> bool:
    message = _json(request.content)
    return isinstance(message, dict) and "id" in message and "method" in message


def _is_rpc_error(response: httpx2.Response) -> bool:
    if content_type(response) != _JSON:
        return False
    said = _json(response.content)
    return isinstance(said, dict) and said.get("jsonrpc") == "2.0" and isinstance(said.get("error"), dict)


def _json(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
