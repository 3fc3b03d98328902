"""Keys of claims: who claims something names the claim, so that they know it again when its answer was lost.

A claim that the server has kept and nobody has heard of would lie until it runs out, and would then look like work that
somebody has begun.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager


class Claims:
    """The keys of claims whose answers were not heard, by what was claimed."""

    def __init__(self) -> None:
        self._unheard: dict[str, list[str]] = {}

    def are_unheard(self, what: str) -> bool:
        """Whether something may have been claimed of which nobody was told."""
        return what in self._unheard

    @contextmanager
    def keys(self, what: str) -> Iterator[list[str]]:
        """What is claimed in the block is claimed by the first key; what has any of the others is ours, too."""
        keys = self._unheard.pop(what, None) or [secrets.token_hex(8)]
        try:
            yield keys
        except BaseException:  # also when somebody stops waiting for it
            self._unheard.setdefault(what, []).extend(keys)
            raise
