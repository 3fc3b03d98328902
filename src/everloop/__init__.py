"""everloop: a self-hosted AI agent that keeps its word.

The public names are loaded when they are first used, so that `import everloop` costs nothing.
"""

import sys

# `python -m everloop` looks for modules in the folder where it is typed before all others. That may be a workspace, in
# which a command has put a `json.py`. (An `everloop` of its own there would be found before this is read.)
_ASKED_FOR = any(word.removeprefix("-m").split(".")[0] == "everloop" for word in sys.orig_argv)
if sys.argv[:1] == ["-m"] and _ASKED_FOR and not sys.flags.safe_path:
    del sys.path[0]

TYPE_CHECKING = False  # as in typing, which takes longer to load than all of this
if TYPE_CHECKING:
    from typing import Any

    from .app import open as open
    from .app.agent import Agent as Agent
    from .app.user import User as User
    from .cli.process import run as run
    from .core.people import Role as Role
    from .core.prompt import Usage as Usage
    from .core.tool import Effect as Effect
    from .core.tool import Risk as Risk
    from .errors import EverloopError as EverloopError
    from .errors import MailRefused as MailRefused
    from .errors import ModelMissing as ModelMissing
    from .errors import SettingsError as SettingsError
    from .errors import StoreError as StoreError
    from .errors import ToolError as ToolError
    from .errors import TurnFailed as TurnFailed
    from .ports import Channel as Channel
    from .ports import Provider as Provider
    from .ports import ToolSource as ToolSource
    from .ports.events import Answer as Answer
    from .ports.events import Event as Event
    from .ports.permission import Allowance as Allowance
    from .ports.tools import CallContext as CallContext
    from .ports.tools import Picture as Picture
    from .ports.tools import Shown as Shown
    from .ports.tools import Tool as Tool
    from .readings.brought_commands import CommandCall as CommandCall
    from .readings.brought_commands import slash_command as slash_command
    from .tools.decorator import tool as tool

__version__ = "0.1.0"

_ROOMS = {
    "open": "app",
    "run": "cli.process",
    "Agent": "app.agent",
    "Answer": "ports.events",
    **dict.fromkeys(
        ("EverloopError", "MailRefused", "ModelMissing", "SettingsError", "StoreError", "ToolError", "TurnFailed"),
        "errors",
    ),
    **dict.fromkeys(("Channel", "Provider", "ToolSource"), "ports"),
    "Event": "ports.events",
    "Allowance": "ports.permission",
    "Role": "core.people",
    "User": "app.user",
    "Usage": "core.prompt",
    **dict.fromkeys(("Effect", "Risk"), "core.tool"),
    **dict.fromkeys(("CallContext", "Picture", "Shown", "Tool"), "ports.tools"),
    **dict.fromkeys(("CommandCall", "slash_command"), "readings.brought_commands"),
    "tool": "tools.decorator",
}

__all__ = ["__version__", *_ROOMS]  # noqa: PLE0604


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name not in _ROOMS:
        raise AttributeError(f"everloop has no {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
