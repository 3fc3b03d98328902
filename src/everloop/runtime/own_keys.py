"""Keys of model providers that people have of their own: who is asked with one pays for it, and nobody else does.

A call is made with such a key when whoever pays for it has one for the provider that is asked: for an answer and for a
summary whoever has asked, for a title whose conversation it is. Then nothing is reserved of a budget and nothing is
charged to one; and when the key is refused nobody else is asked, for that would be at another's expense.
"""

from typing import Protocol

from msgspec import Struct

from ..ports import Provider


class AskedProvider(Struct, frozen=True):
    """Who is asked; `own`: with a key of their own."""

    provider: Provider
    own: bool = False


class OwnKeys(Protocol):
    """The keys that people have of their own."""

    def has(self, person: str) -> bool:
        """Whether any is kept for them. It is known at once: a plain turn asks nobody."""
        ...

    async def asked(self, person: str, model: str, usual: Provider) -> AskedProvider:
        """Who answers them for a model, by the name that it is found by: `usual` unless they have a key for it. What is
        wrong with the key is told by the provider when it is asked."""
        ...


class NoOwnKeys:
    """For a house in which nobody has one."""

    def has(self, person: str) -> bool:
        return False

    async def asked(self, person: str, model: str, usual: Provider) -> AskedProvider:
        return AskedProvider(usual)


NO_OWN_KEYS = NoOwnKeys()
