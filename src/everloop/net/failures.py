"""What goes wrong between two machines, in sentences that a person can act on."""

import os
import socket
import ssl

from ..errors import AnswerTimeout, HostFailed, HostHungUp, HostTimeout, HostUnreachable, ProviderError, StreamCut
from .answer_reader import NotHttp

FAILURES = (EOFError, OSError, NotHttp)  # of a connection
CONNECT_SECONDS = 30.0  # the most that is waited for a connection


class TookTooLong(TimeoutError):
    """An answer has not ended by its deadline, although its host may have been busy with it all the time."""


def explain_no_connection(error: OSError, host: str, seconds: float) -> HostUnreachable:
    """Why nobody is reached there. `seconds` is how long it was waited for."""
    match error:
        case TimeoutError():
            return HostUnreachable(
                f"{host} cannot be reached: no connection within {min(seconds, CONNECT_SECONDS):g} s."
            )
        case ssl.SSLCertVerificationError():
            return HostUnreachable(
                f"{host} shows a certificate that is not trusted here. If your company has its own authority, name its "
                f"file in SSL_CERT_FILE."
            )
        case ssl.SSLError():
            return HostUnreachable(
                f"{host} cannot be reached securely (TLS). Check whether the address wants http or https."
            )
        case socket.gaierror():
            return HostUnreachable(f"{host} cannot be found: check its name and the network.")
        case _:
            return HostUnreachable(f"{host} cannot be reached: {_reason(error)}.")


def explain_no_answer(error: Exception, host: str, seconds: float) -> ProviderError:
    """What a failure before the first byte means. `seconds` is how long it was waited for."""
    match error:
        case TookTooLong():
            return _too_long(host)
        case TimeoutError():
            return HostTimeout(f"{host} has not answered within {seconds:g} s.")
        case EOFError() | OSError():
            return HostHungUp(f"{host} closed the connection before it answered.")
        case _:
            return HostFailed(f"{host} does not answer in HTTP; check the address and its port.")


def explain_cut(error: Exception, host: str) -> ProviderError:
    """What a failure in the middle of a body means."""
    if isinstance(error, TookTooLong):
        return _too_long(host)
    if isinstance(error, TimeoutError):
        return HostTimeout(f"{host} fell silent in the middle of its answer.")
    return StreamCut(f"{host} broke off in the middle of its answer.")


def _too_long(host: str) -> AnswerTimeout:
    return AnswerTimeout(f"{host} did not come to the end of its answer in time.")


def _reason(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno and error.errno > 0 else "no connection"
