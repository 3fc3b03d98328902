"""Where everybody's folder lies: the owner's where the settings say, all others' in the home."""

from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from ..core.people import OWNER, is_chat
from ..errors import SettingsError
from ..tools.sandbox.exposure import why_not_there

_LONGEST_FOLDER = 60  # characters, so that no hash is taken for a name


def workspace_for(principal: str, home: Path, owners: Path) -> Path:
    if principal == OWNER:
        return owners
    return home / ("chats" if is_chat(principal) else "people") / principals_folder(principal) / "workspace"


def principals_folder(principal: str) -> str:
    """The name of somebody's folder: no two share one, and none leads elsewhere."""
    name = quote(principal, safe="")
    plain = 0 < len(name) <= _LONGEST_FOLDER and not name.startswith(".")
    return name if plain else sha256(principal.encode("utf-8", "surrogatepass")).hexdigest()


def check_workspace(workspace: Path, home: Path) -> None:
    """Raises SettingsError where the home could not be kept out of reach of tools."""
    if why := why_not_there(home, workspace):
        raise SettingsError(why)
