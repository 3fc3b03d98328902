"""Tokens, by which programs come in. Nobody gives one more than they hold themselves."""

from ..access.secrets import hash_of, new_secret
from ..http.errors import Refused
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
    id = await call.agent.store.keep_token(call.principal.user, asked.name, hash_of(secret), scopes, seconds)
    if not id:
        raise Refused(409, "exists", "There is a token of that name already.")
    return NewToken(id, asked.name, secret)


async def revoke(call: ApiCall) -> ApiAnswer:
    known = {row.id for row in await call.agent.store.tokens(call.principal.user)}
    if call.path.id not in known or not await call.agent.store.forget_token(call.principal.user, call.path.id):
        raise Refused(404, "not_found", "There is no token of that name.")
    return Revoked(call.path.id)
