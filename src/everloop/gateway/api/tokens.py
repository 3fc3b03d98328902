"""Tokens, by which programs come in. Nobody gives one more than they hold themselves."""

from ...errors import EverloopError
from ...readings.keys import escaped
from ..access.credentials import check_platforms
from ..access.secrets import hash_of, new_secret
from ..http.errors import Refused, sentence
from .route import ApiAnswer, ApiCall
from .shapes import NewToken, Revoked, TokenList

DAY = 86_400.0


async def list_tokens(call: ApiCall) -> ApiAnswer:
    return TokenList(await call.agent.store.tokens(call.principal.user))


async def create(call: ApiCall) -> ApiAnswer:
    asked, secret = call.body, new_secret("ev_")
    if beyond := set(asked.scopes) - call.principal.scopes:
        raise Refused(403, "forbidden", f"You do not hold the scope {min(beyond)} yourself.")
    scopes, seconds = sorted(set(asked.scopes)), (asked.days or 0) * DAY
    if (until := call.principal.until) and (not seconds or call.agent.clock.now() + seconds > until):
        raise Refused(403, "forbidden", "A token makes none that outlasts it: give fewer days than it has left.")
    platforms = _platforms(call)
    user = call.principal.user
    id = await call.agent.store.keep_token(user, asked.name, hash_of(secret), scopes, seconds, platforms)
    if not id:
        raise Refused(409, "exists", "There is a token of that name already.")
    return NewToken(id, asked.name, secret)


def _platforms(call: ApiCall) -> list[str]:
    """Whoever has logged in names what they like, for it is their own bot; a token only what it names itself."""
    platforms, principal = sorted(set(call.body.platforms)), call.principal
    try:
        check_platforms(platforms, call.body.scopes)
    except EverloopError as error:
        raise Refused(403, "forbidden", sentence(error)) from error
    beyond = [each for each in platforms if escaped(each) not in principal.platforms]
    if beyond and principal.kind == "token":
        raise Refused(403, "forbidden", f"This token does not name the platform {beyond[0]!r} itself.")
    return platforms


async def revoke(call: ApiCall) -> ApiAnswer:
    known = {row.id for row in await call.agent.store.tokens(call.principal.user)}
    if call.path.id not in known or not await call.agent.store.forget_token(call.principal.user, call.path.id):
        raise Refused(404, "not_found", "There is no token of that name.")
    return Revoked(call.path.id)
