"""Short ways to write logs in tests."""

from everloop.core.approval import digest_of
from everloop.core.decide import Rules
from everloop.core.log import Asked, ModelCalled, ModelSaid, UserSaid
from everloop.core.message import said
from everloop.core.people import Role
from everloop.core.thread import Thread
from everloop.core.tool import Effect, ToolCall, ToolSpec

ANY = {"type": "object", "properties": {}, "additionalProperties": True}


def spec(name: str, effect: Effect, guarded: bool = False) -> ToolSpec:
    return ToolSpec(name, f"{name} something", ANY, effect, guarded=guarded)


SPECS = {
    "look": spec("look", Effect.READ),
    "put": spec("put", Effect.IDEMPOTENT),
    "pay": spec("pay", Effect.KEYED),
    "file": spec("file", Effect.VERIFIABLE),
    "send": spec("send", Effect.UNSAFE),
    "ask": spec("ask", Effect.UNSAFE, guarded=True),
}
ROLES = {"ann": Role.OWNER, "bob": Role.ADMIN, "cid": Role.USER}
RULES = Rules(SPECS, roles=ROLES)


def spoke(text: str = "hi", author: str = "ann", mail: int = 1) -> UserSaid:
    return UserSaid(said(text), author, "cli:direct", mail)


def call(name: str, args: str = "{}") -> ToolCall:
    return ToolCall(f"id-{name}", name, args)


DIGEST = digest_of(call("ask"), SPECS["ask"])


def asked(place: int = 0) -> Asked:
    """The question about a call of `ask` in the third entry."""
    return Asked(3, place, DIGEST)


def answered(text: str = "", *names: str) -> ModelSaid:
    return ModelSaid(text, tuple(call(name) for name in names))


CALLED = ModelCalled("m")


def calling(*names: str) -> Thread:
    """A thread whose model has just asked for these calls."""
    return Thread.of(spoke(), CALLED, answered("", *names))
