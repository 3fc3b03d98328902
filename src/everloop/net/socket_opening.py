"""The package for WebSockets is loaded when one is opened, and not before."""

from ..errors import SettingsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .websocket import WebSocketOpening


def websocket_opening() -> "type[WebSocketOpening]":
    """Raises SettingsError where the package is not installed."""
    try:
        from .websocket import WebSocketOpening
    except ImportError as error:
        raise SettingsError("WebSockets need the extra [channels]: pip install 'everloop[channels]'") from error
    return WebSocketOpening
