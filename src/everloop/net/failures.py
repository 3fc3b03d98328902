"""What goes wrong between two machines, in sentences that a person can act on."""

import os

import aiohttp

from everloop.core.errors import HostFailed, HostHungUp, HostTimeout, HostUnreachable, ProviderError, StreamCut

CONNECT_SECONDS = 30.0  # the most that is waited for a connection
FAILURES = (aiohttp.ClientError, OSError)


def explain_no_answer(error: Exception, host: str, seconds: float) -> ProviderError:
    """What a failure before the first byte means. `seconds` is how long it was waited for."""
    match error:
        case aiohttp.ConnectionTimeoutError():
            return HostUnreachable(
                f"{host} cannot be reached: no connection within {min(seconds, CONNECT_SECONDS):g} s."
            )
        case TimeoutError():
            return HostTimeout(f"{host} has not answered within {seconds:g} s.")
        case aiohttp.ClientConnectorCertificateError():
            return HostUnreachable(
                f"{host} shows a certificate that is not trusted here. If your company has its own authority, name its "
                f"file in SSL_CERT_FILE."
            )
        case aiohttp.ClientSSLError():
            return HostUnreachable(
                f"{host} cannot be reached securely (TLS). Check whether the address wants http or https."
            )
        case aiohttp.ClientConnectorDNSError():
            return HostUnreachable(f"{host} cannot be found: check its name and the network.")
        case aiohttp.ClientProxyConnectionError():
            return HostUnreachable(f"{host} cannot be reached: the proxy that the environment names does not answer.")
        case aiohttp.ClientHttpProxyError():
            return HostUnreachable(f"{host} cannot be reached: the proxy refuses to connect ({error.status}).")
        case aiohttp.ClientConnectorError():
            return HostUnreachable(f"{host} cannot be reached: {_reason(error.os_error)}.")
        case aiohttp.ClientResponseError():
            return HostFailed(f"{host} does not answer in HTTP; check the address and its port.")
        case _:
            return HostHungUp(f"{host} closed the connection before it answered.")


def explain_cut(error: Exception, host: str) -> ProviderError:
    """What a failure in the middle of a body means."""
    if isinstance(error, TimeoutError):
        return HostTimeout(f"{host} fell silent in the middle of its answer.")
    return StreamCut(f"{host} broke off in the middle of its answer.")


def _reason(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno and error.errno > 0 else "no connection"
