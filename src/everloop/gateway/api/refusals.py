"""What a part of the house refuses, as an answer of the API."""

from collections.abc import Awaitable
from typing import TypeVar

from ...errors import EverloopError, StoreError
from ..http.errors import Refused, sentence

_Done = TypeVar("_Done")


class Refusals:
    """By which code clients know each kind of error: the first that it is of, else that of the settings."""

    def __init__(self, *codes: tuple[type[EverloopError], str]) -> None:
        self._codes = codes

    async def done(self, deed: Awaitable[_Done]) -> _Done:
        """Raises Refused; a store that fails is nobody's mistake, and told as every failure is."""
        try:
            return await deed
        except StoreError:
            raise
        except EverloopError as error:
            raise self.refused(error) from error

    def refused(self, error: EverloopError) -> Refused:
        code = next((code for kind, code in self._codes if isinstance(error, kind)), "setting_refused")
        return Refused(409, code, sentence(error))
