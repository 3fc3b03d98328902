"""Ways to break everloop inside a worker process, each a promise taken back: the checks must find every one.

Without these, a campaign that reports no violations would prove nothing.
"""

import secrets
from collections.abc import Callable
from typing import Any

from msgspec import structs

from everloop.core import decide
from everloop.core.mail import Inbound
from everloop.core.tool import Effect
from everloop.errors import StoreError, StoreUnreachable
from everloop.ports.tools import CallContext
from everloop.runtime import book, driver, lanes
from everloop.runtime.outbox import Outbox
from everloop.store import sqlite, sqlite_statements
from everloop.store.holders import Holders


def run_unsafe_calls_again() -> None:
    decide.REPEATABLE = frozenset(Effect)


def hide_what_is_unknown() -> None:
    decide.UNKNOWN = "done"


def make_a_new_key_each_time() -> None:
    made = driver._context

    def with_new_key(*args: Any) -> CallContext:
        context = made(*args)
        return structs.replace(context, key=f"{context.key}:{secrets.token_hex(4)}")

    driver._context = with_new_key


def send_again_without_a_mark() -> None:
    Outbox._notes = lambda self, row, number: []


def take_every_event_as_new() -> None:
    post = sqlite_statements.post

    def post_as_new(execute: object, inbound: Inbound, *rest: object, **more: object) -> object:
        new = Inbound(inbound.address, f"{inbound.event} {secrets.token_hex(4)}", inbound.letter, inbound.owner)
        return post(execute, new, *rest, **more)

    sqlite.post = sqlite_statements.post = post_as_new


def believe_everyone_dead() -> None:
    Holders.alive = lambda self, holder: holder == self.me


def lose_all_leases_at_the_first_failed_renewal() -> None:
    renew = lanes.Lanes._renew

    async def give_up(self: lanes.Lanes) -> None:
        ask = self._store.renew

        async def renewed(leases: object) -> object:
            try:
                return await ask(leases)
            except StoreError:
                for thread, held in self._held(0.0).items():
                    self._lose(thread, held)
                raise

        self._store.renew = renewed
        await renew(self)

    lanes.Lanes._renew = give_up


def forget_what_could_not_be_committed() -> None:
    async def forget(*_: object) -> object:
        raise StoreUnreachable("sabotage")

    book.commit_again = forget


# Those of chaos: what is broken, and what the checks then say.
IN_OUTAGES: list[tuple[Callable[[], None], str]] = [
    (lose_all_leases_at_the_first_failed_renewal, "leases were lost, though"),
    (forget_what_could_not_be_committed, "the model was asked"),
]

# What is broken, the failpoint at which a kill shows it (none: it shows without), and what the checks then say.
SABOTAGES: list[tuple[Callable[[], None], str, str]] = [
    (run_unsafe_calls_again, "call.done", "ran 2 times"),
    (hide_what_is_unknown, "call.done", "and the model was told: done"),
    (make_a_new_key_each_time, "call.done", "ran with the keys"),
    (send_again_without_a_mark, "outbox.delivered", "was repeated unmarked"),
    (take_every_event_as_new, "inbox.committed", "came back as"),
    (believe_everyone_dead, "", "two processes run calls of"),
]
