"""Who sends a request, as the doors need to know it."""

from typing import Protocol, cast

from aiohttp import web

from .refusals import Refused


class Person(Protocol):
    @property
    def user(self) -> str: ...


def who(request: web.Request) -> str:
    """The user that the request was authenticated as."""
    person = cast(Person | None, request.get("principal"))
    if person is None:
        raise Refused("This needs a token: send it as Authorization: Bearer.", "unauthorized", status=401)
    return person.user
