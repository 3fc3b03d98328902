"""Slash commands that are understood in every channel, whatever the model is doing."""

from msgspec import Struct

from ..core.ports import Action


class Command(Struct, frozen=True):
    name: str
    help: str
    action: Action
    reply: str = ""
    otherwise: str = ""


_DOING = (
    Command("/new", "Start a new conversation", "new", "New session started."),
    Command("/stop", "Stop the current task", "stop", "⏹ Stopped 1 task(s).", "No active task to stop."),
)
_HELP = "Show available commands"
_TEXT = "\n".join(["everloop commands:", *(f"{each.name} — {each.help}" for each in _DOING), f"/help — {_HELP}"])

COMMANDS = {command.name: command for command in (*_DOING, Command("/help", _HELP, "none", _TEXT))}
