"""Slash commands and buttons: what is registered, what somebody does with them, and what Discord is told of that."""

from typing import Any

from msgspec import Struct

from ...core.mail import ReplyTo
from ...ports.channel import Delivered, Incoming
from ...readings.commands import COMMANDS
from .codec import DiscordMember, DiscordPlace, DiscordUser, reply_to
from .places import DiscordRoom

COMMAND, BUTTON = 2, 3  # types of interactions
EPHEMERAL = 1 << 6
SAY, WAIT, UPDATE = 4, 6, 7  # types of answers: a message; nothing yet; the message of the button changes
TEXT_OPTION = 3
IN_SERVER, WITH_BOT, ELSEWHERE = 0, 1, 2  # where a command is used; the last are chats that the bot is not in
ALLOW, DENY = "allow:", "deny:"
LONGEST_ID = 100  # characters of a button's id


class CommandOption(Struct, frozen=True):
    name: str
    value: Any = None


class InteractionData(Struct, frozen=True):
    name: str = ""
    custom_id: str = ""
    options: tuple[CommandOption, ...] = ()


class PressedMessage(Struct, frozen=True):
    id: str


class Interaction(Struct, frozen=True):
    id: str
    token: str
    type: int
    channel_id: str | None = None
    guild_id: str | None = None
    context: int | None = None
    channel: DiscordRoom | None = None
    data: InteractionData | None = None
    member: DiscordMember | None = None
    user: DiscordUser | None = None
    message: PressedMessage | None = None

    def __repr__(self) -> str:
        return f"Interaction({self.id!r}, …)"

    @property
    def place(self) -> DiscordPlace:
        if self.channel:
            return DiscordRoom(self.channel.id, self.channel.type, self.guild_id, self.channel.parent_id).place
        return DiscordPlace(self.channel_id or "", server=self.guild_id or "")


def registered() -> list[dict[str, Any]]:
    """The house's commands, as Discord shows them after a slash."""
    return [
        {
            "name": command.name.removeprefix("/"),
            "description": _short(command.help),
            "type": 1,
            "integration_types": [0],  # by servers, not by people for chats that the bot is not in
            "contexts": [IN_SERVER, WITH_BOT],
            "options": [{"type": TEXT_OPTION, "name": "text", "description": _short(command.takes), "required": False}]
            if command.takes
            else [],
        }
        for command in COMMANDS.values()
    ]


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:99]}…"


def buttons(approval: str) -> list[dict[str, Any]]:
    """Under a question; none where the name is too long for them."""
    if not approval or len(DENY) + len(approval) > LONGEST_ID:
        return []
    allow = {"type": 2, "style": 3, "label": "Approve", "custom_id": ALLOW + approval}
    deny = {"type": 2, "style": 4, "label": "Deny", "custom_id": DENY + approval}
    return [{"type": 1, "components": [allow, deny]}]


def interacted(interaction: Interaction) -> Incoming | None:
    """What somebody says with it; None for what is not ours."""
    who = interaction.user or (interaction.member and interaction.member.user)
    text, place = _said(interaction), interaction.place
    if not who or not text or not place.chat or interaction.context == ELSEWHERE:
        return None
    nick = interaction.member.nick if interaction.member else None
    return Incoming(
        event=interaction.id,
        chat=place.chat,
        thread=place.thread,
        server=place.server,
        account=who.id,
        name=nick or who.global_name or who.username,
        text=text,
        direct=not place.server,
        mentioned=True,
        bot=who.bot,
        reply_to=reply_to(place, interaction.message.id) if interaction.message else ReplyTo(""),
    )


def _said(interaction: Interaction) -> str:
    data = interaction.data or InteractionData()
    if interaction.type == COMMAND and data.name:
        given = [str(option.value) for option in data.options if option.value is not None]
        return " ".join([f"/{data.name}", *given])
    if interaction.type == BUTTON and data.custom_id.startswith(ALLOW):
        return f"/approve {data.custom_id.removeprefix(ALLOW)}"
    if interaction.type == BUTTON and data.custom_id.startswith(DENY):
        return f"/deny {data.custom_id.removeprefix(DENY)}"
    return ""


def receipt(interaction: Interaction, said: str, delivered: Delivered) -> dict[str, Any]:
    """What Discord is told when it is committed. Buttons go away where only the person who was asked can press them; in
    a server anyone could take them from whom they are for."""
    if interaction.type == COMMAND:
        word = f"`{said.replace('`', 'ˋ')[:200]}`" if not delivered.refused else "Nothing comes of this here."
        return {"type": SAY, "data": {"content": word, "flags": EPHEMERAL, "allowed_mentions": {"parse": []}}}
    if interaction.guild_id or delivered.refused:
        return {"type": WAIT}
    return {"type": UPDATE, "data": {"components": []}}
