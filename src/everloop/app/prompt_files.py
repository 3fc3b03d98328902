"""The files that stand in prompts, put together: those of a workspace, and what is remembered."""

from collections import defaultdict
from functools import partial
from pathlib import Path

from ..memory.views import MOST, PATHS
from ..ports import Clock, Files, Store
from ..ports.heartbeat import HEARTBEAT_FILE
from ..settings import Settings, workspace_of
from ..tools.bootstrap import FILES as BOOTSTRAP_FILES
from ..tools.bootstrap import Bootstrap
from ..tools.home import Home
from ..tools.house_prompt_files import HousePromptFiles
from ..tools.prompt_files import Beside, FilesWithSkills, WatchedFiles
from ..tools.skill_files import SkillFiles
from ..tools.tainted import Ended, Tainted, place_of
from ..tools.watched_memory import WatchedMemory
from ..tools.workspace import Workspace
from .memory_files import MemoryFiles
from .workspaces import workspace_for

CROWD = 20  # turns at once, from which on those that begin together look at the owner's files once


def watched_files(home: Home, settings: Settings, store: Store, files: Files, ended: Ended) -> HousePromptFiles:
    """The files that stand in prompts; what they hold is known after a look."""
    folder = workspace_of(settings, home.path)
    workspace = Workspace(folder, hidden=home)
    bootstrap = Bootstrap(workspace, lambda: store.running > CROWD, (*BOOTSTRAP_FILES, HEARTBEAT_FILE))
    source = FilesWithSkills(bootstrap, SkillFiles(workspace))
    besides: defaultdict[str, Beside] = defaultdict(Beside)

    def others(place: str) -> WatchedFiles:
        workspace = Workspace(Path(place), hidden=home)
        tainted = Tainted(store, place, ended)
        source = FilesWithSkills(Bootstrap(workspace, names=(HEARTBEAT_FILE,)), SkillFiles(workspace))
        return WatchedFiles(source, workspace, store, tainted, files, beside=besides[place])

    def memory_of(owner: str) -> WatchedMemory:
        own = workspace_for(owner, home.path, folder)
        workspace = Workspace(own, hidden=home)
        source = Bootstrap(workspace, lambda: store.running > CROWD, PATHS.values(), MOST)
        tainted = Tainted(store, place_of(own), ended)
        return WatchedMemory(source, workspace, store, tainted, files, owner, besides[tainted.place])

    tainted = Tainted(store, place_of(folder), ended)
    beside = besides[tainted.place]
    owners = WatchedFiles(source, workspace, store, tainted, files, quick=bootstrap.is_stale, beside=beside)
    return HousePromptFiles(owners, others, memory_of, store)


def memory_files(home: Path, settings: Settings, store: Store, files: HousePromptFiles, clock: Clock) -> MemoryFiles:
    folder_of = partial(workspace_for, home=home, owners=workspace_of(settings, home))
    return MemoryFiles(store, files, folder_of, home, clock)
