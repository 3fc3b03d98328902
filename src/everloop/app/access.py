"""The gateway's tokens and password, for the commands that set them."""

from ..gateway.access.credentials import new_invitation, new_token, remove_password, set_password, token_scopes

__all__ = ["new_invitation", "new_token", "remove_password", "set_password", "token_scopes"]
