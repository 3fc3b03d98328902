"""The doctor of a gateway, loaded when somebody first asks for it: a gateway starts without."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ..ports.doctor import CheckRow, Diagnosis, Mended
from ..ports.jobs import TaskState

if TYPE_CHECKING:
    from .doctor import HouseDoctor


class DoctorLater:
    """The Doctor port."""

    def __init__(self, home: Path, tasks: Callable[[], Sequence[TaskState]]) -> None:
        self._home = home
        self._tasks = tasks

    @cached_property
    def _doctor(self) -> "HouseDoctor":
        from .doctor import HouseDoctor

        return HouseDoctor(self._home, self._tasks)

    def checks(self) -> Sequence[CheckRow]:
        return self._doctor.checks()

    async def examine(self) -> Sequence[Diagnosis]:
        return await self._doctor.examine()

    async def mend(self) -> Sequence[Mended]:
        return await self._doctor.mend()
