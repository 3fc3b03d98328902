"""`/compact`: what was said before becomes a summary."""

from typing import Protocol

from msgspec import structs

from ..core.gauge import rough
from ..core.mail import CompactRequest
from ..core.thread import Thread
from ..ports import Archive, Log
from .typed_command import CommandEffect, TypedCommand

LEAST, LEAST_TOKENS = 4, 450  # messages that are worth a summary, and how long they have to be
LEAST_AGAIN = 1800  # the same, where there is a summary already


class CompactStore(Archive, Log, Protocol):
    """Conversations, and their logs."""


class CompactCommand:
    def __init__(self, store: CompactStore) -> None:
        self._store = store

    async def work_out(self, typed: TypedCommand) -> CommandEffect:
        thread, letter = await self._thread(typed.session), typed.letter
        known = thread.transcript.messages[int(thread.condensed) :] if thread else []
        enough = LEAST_AGAIN if thread and thread.condensed else LEAST_TOKENS
        if len(known) < LEAST or sum(map(rough, known)) < enough:
            return typed.told("There is too little in this conversation to make a summary of it.")
        squeezing = structs.replace(typed.inbound, letter=CompactRequest(letter.author, letter.payer))
        return CommandEffect(squeezing, "tell", "What was said before becomes a summary; nothing of it is lost.")

    async def _thread(self, session: str) -> Thread | None:
        """The conversation as it stands, without the mail that waits."""
        row = await self._store.session(session)
        if row is None:
            return None
        opened = await self._store.open(row.id)
        thread = Thread(row.id, opened.first - 1)
        thread.extend(opened.entries)
        return thread
