"""`/model`: who answers in a conversation, and choosing another."""

from typing import Protocol

from msgspec import structs

from ..core.mail import Choose, Inbound, Said
from ..core.thread import Thread
from ..errors import ModelMissing
from ..ports import Archive, Log
from .models import Models
from .persona_commands import PersonaCommands
from .typed_command import CommandEffect, TypedCommand


class ModelCommandStore(Archive, Log, Protocol):
    """Conversations, and their logs."""


class ModelCommand:
    def __init__(self, store: ModelCommandStore, models: Models, personas: PersonaCommands) -> None:
        self._store = store
        self._models = models
        self._personas = personas

    async def work_out(self, typed: TypedCommand) -> CommandEffect:
        if typed.rest:
            return await self._choose(typed.rest, typed.inbound, typed.letter)
        usual = await self._personas.model(typed.inbound, typed.letter, typed.role)
        return await self._show_model(typed.inbound, usual)

    async def _choose(self, wanted: str, inbound: Inbound, letter: Said) -> CommandEffect:
        try:
            model = await self._models.look("" if wanted == "default" else wanted)
        except ModelMissing as error:
            return CommandEffect(inbound, "none", f"The model stays as it is: {error}.")
        choosing = structs.replace(inbound, letter=Choose("" if wanted == "default" else model.key, letter.author))
        return CommandEffect(choosing, "tell", f"{model.name} answers in this conversation from now on.")

    async def _show_model(self, inbound: Inbound, usual: str) -> CommandEffect:
        """`usual` is who answers here where nobody has chosen; "" is the one of the settings."""
        row = await self._store.session(str(inbound.address))
        chosen = ""
        if row:
            opened = await self._store.open(row.id)
            fold = Thread(row.id, opened.first - 1)
            fold.extend(opened.entries)
            waiting = [mail.letter.model for mail in opened.mail if isinstance(mail.letter, Choose)]
            chosen = waiting[-1] if waiting else fold.choice
        presets = self._models.names()
        lines = [f"{await self._who(chosen or usual)} answers in this conversation."]
        if presets:
            lines.append(f"Presets: {', '.join(presets)}.")
        lines.append("Choose another with /model NAME (a preset or provider/model), or go back with /model default.")
        return CommandEffect(inbound, "none", "\n".join(lines))

    async def _who(self, chosen: str) -> str:
        try:
            model = await self._models.look(chosen) if chosen else self._models.find("")
        except ModelMissing:
            return f"{self._models.default} (in place of {chosen}, which cannot be had)"
        return model.name if chosen in ("", model.name) else f"{chosen} ({model.name})"
