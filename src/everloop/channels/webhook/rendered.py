"""A webhook whose answers are written in a platform's own markup, for a program that only passes them on."""

from collections.abc import Callable, Sequence

from ...core.mail import Outbound
from ...ports import Http
from ...ports.channel import Rendered
from ..text import DIALECTS, render
from .wire import Webhook


class RenderedWebhook(Webhook):
    """Renders. `limit` is in characters, or in what the dialect counts; 0 is any."""

    def __init__(
        self,
        url: str,
        secrets: Sequence[bytes],
        http: Http,
        clock: Callable[[], float],
        *,
        dialect: str,
        limit: int,
    ) -> None:
        super().__init__(url, secrets, http, clock)
        self._dialect = DIALECTS[dialect]
        self._limit = limit

    def render(self, outbound: Outbound) -> tuple[Rendered, ...]:
        return render(outbound.text, self._dialect, self._limit)
