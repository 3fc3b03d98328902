"""Who a request comes from, and what they may do with it.

A token carries scopes; a person who has logged in has all of them. What a scope is worth also depends on the role of
the person behind it, which is read anew with each request.
"""

from typing import Literal

from aiohttp import web
from msgspec import Struct

from ...core.mail import Said
from ...core.message import text_of
from ...core.people import Role
from ...ports.audit import Authority
from ...ports.channel import Traits
from ...readings.commands import EVERY, scope_of
from ...readings.keys import escaped
from ..http.errors import Refused
from .scopes import SCOPES

NAME_IT = "make a token that does, with `everloop tokens create NAME --platform PLATFORM`, or in the page under Access."
_ROLES = {"read": Role.GUEST, "chat": Role.GUEST, "approve": Role.USER, "admin": Role.ADMIN}


class Principal(Struct, frozen=True):
    """Who is asking. Handlers find it as `request["principal"]`."""

    user: str
    role: Role
    scopes: frozenset[str]
    kind: Literal["cookie", "token"]
    credential: str = ""  # the id of the token or of the login, never the secret
    until: float = 0.0  # when the token runs out; 0 is never
    platforms: frozenset[str] = frozenset()  # whose people its word counts for, as they are written in keys

    @property
    def authority(self) -> Authority:
        """As the audit tells it."""
        by = "token" if self.kind == "token" else "login"
        return Authority(self.user, f"{self.role.name.lower()} by {by} {self.credential}")

    def may(self, scope: str) -> bool:
        return scope in self.scopes and self.role >= _ROLES[scope]

    def need(self, scope: str) -> None:
        """Raises Refused (403)."""
        if not self.may(scope):
            raise Refused(403, "forbidden", f"this needs the scope {scope}, which these credentials do not have")

    def check_names_platform(self) -> None:
        """Raises Refused (403) for a token that names no platform, and for a login."""
        if not self.platforms:
            raise Refused(403, "platform_not_named", f"These credentials name no platform: {NAME_IT}")

    def check_speaks_for(self, platform: str) -> None:
        """Raises Refused (403), unless the token names this platform: only of its people a bot may say who wrote, and
        only what is meant for them may it take along."""
        if escaped(platform) not in self.platforms:
            raise Refused(
                403, "platform_not_named", f"This token does not name the platform {platform[:80]!r}: {NAME_IT}"
            )

    def check_lasting(self) -> None:
        """Raises Refused (403) for a token that runs out: what it would give stays."""
        if self.until:
            raise Refused(403, "forbidden", "A token that runs out lets nobody in for good.")

    def check_begins(self, traits: Traits) -> None:
        """Raises Refused (403) for a place in which nothing was said yet, and which a channel's people or the owner
        would find to be another's."""
        if self.role < Role.OWNER and not traits.open:
            raise Refused(403, "forbidden", "Only the owner lays hands on places of other channels.")

    def owns(self, owner: str) -> bool:
        """Whether something of this owner's is theirs to see."""
        return owner == self.user


def lacking(principal: Principal, letter: Said) -> str:
    """The scope that a message needs and its sender's credentials have not; "" when they have all."""
    scope = scope_of(text_of(letter.parts)) if not letter.before else ""  # as the inbox looks for commands
    if scope == EVERY:  # whatever their role is: a user's page has the scopes that are of no use to them, too
        missing = next((each for each in SCOPES if each not in principal.scopes), "")
        return EVERY if principal.until else missing  # what runs out gives nothing that stays
    return "" if not scope or principal.may(scope) else scope


def principal_of(request: web.Request) -> Principal:
    principal: Principal = request["principal"]
    return principal
