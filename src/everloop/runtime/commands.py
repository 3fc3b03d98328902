"""Slash commands that are understood in every channel, whatever the model is doing."""

from msgspec import Struct

from ..core.ports import Action


class Command(Struct, frozen=True):
    name: str
    help: str
    action: Action
    reply: str = ""
    otherwise: str = ""


_ALL = (
    Command("/new", "Start a new conversation", "new", "New session started."),
    Command("/stop", "Stop the current task", "stop", "⏹ Stopped 1 task(s).", "No active task to stop."),
    Command("/help", "Show available commands", "none"),
)

HELP = "everloop commands:\n" + "\n".join(f"{command.name} — {command.help}" for command in _ALL)

COMMANDS = {
    command.name: command if command.reply else Command(command.name, command.help, command.action, HELP)
    for command in _ALL
}
