"""An open everloop as it is looked at: what it is set to, what runs in it, and its desks, made when asked for."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.decide import Steering
from ..core.people import Role
from ..errors import ModelMissing
from ..ports import Files
from ..ports.channel import Hook
from ..ports.jobs import TaskState
from ..readings.commands import SlashCommand
from ..runtime.supervisor import Supervised
from ..settings import TerminalSection, workspace_of
from .credentials import PersonalCredentials
from .house import House
from .own_keys import OwnProviderKeys

if TYPE_CHECKING:
    from ..memory.book import MemoryBook
    from ..runtime.allotments import Allotments
    from ..runtime.heartbeat_desk import HeartbeatDesk
    from ..runtime.reading_aloud import AnswersAloud
    from ..runtime.schedule_words import ScheduleWords
    from ..runtime.voice import VoiceMessages
    from .skill_desk import SkillDesk


class HeldHouse:
    def __init__(self, house: House) -> None:
        self._house = house
        self._live = house.live
        self.store = house.store
        self.clock = house.clock
        self.files: Files = house.storage.bounded
        self.traits = house.traits  # of every channel that is known here, by its name

    @property
    def hooks(self) -> Mapping[str, Sequence[Hook]]:
        """What the platforms of channels call, by the channel's name."""
        return self._house.hooks

    @property
    def budgets(self) -> "Allotments":
        """What people may spend."""
        return self._house.budgets

    @property
    def own_keys(self) -> OwnProviderKeys:
        """Of model providers, that people have of their own."""
        return self._house.own_keys

    @property
    def credentials(self) -> PersonalCredentials:
        """That people keep for their tools."""
        return self._house.credentials

    @property
    def memory(self) -> "MemoryBook":
        """Of everybody, by their principal."""
        return self._house.memory

    @property
    def skills(self) -> "SkillDesk":
        """That people have."""
        return self._house.skills

    @property
    def schedules(self) -> "ScheduleWords":
        """Of people: what is to happen later, or again and again."""
        return self._house.builder.schedules

    @property
    def heartbeat(self) -> "HeartbeatDesk":
        """Of people: what they have looked after."""
        return self._house.heartbeat

    @property
    def voice(self) -> "VoiceMessages":
        """Who transcribes what is spoken."""
        return self._house.voice

    @property
    def aloud(self) -> "AnswersAloud":
        """Who reads answers aloud."""
        return self._house.aloud

    @property
    def model(self) -> str:
        """The provider/model that answers where nothing else was chosen."""
        return self._live.now.model.name

    @property
    def steering(self) -> Steering:
        """What a message during a turn does."""
        return self._live.now.settings.agents.defaults.steering

    @property
    def notice(self) -> str:
        """What a person should know about this model."""
        model = self._live.now.model
        return " ".join(filter(None, (model.notice, model.download.promise if model.download else "")))

    @property
    def advice(self) -> str:
        """How a better model is connected, where it is only the one of this machine that answers."""
        if self._live.now.model.download is None:
            return ""
        from ..providers.embedded import BETTER  # only whoever has no other model needs it

        return BETTER

    @property
    def unused(self) -> tuple[str, ...]:
        """What is set and does nothing yet, in sentences."""
        return self._live.now.unused

    @property
    def terminal(self) -> TerminalSection:
        """How a chat at a terminal is wanted."""
        return self._live.now.settings.terminal

    @property
    def workspace_folder(self) -> Path:
        """The owner's."""
        return workspace_of(self._live.now.settings, self._house.opened.home)

    def model_names(self) -> list[str]:
        """The presets by which a model can be chosen."""
        return self._live.names()

    def model_called(self, choice: str) -> str:
        """The provider/model that a name stands for; the usual one where there is none of this name any more."""
        with suppress(ModelMissing):
            return self._live.find(choice).name
        return self.model

    def persona_names(self, role: Role) -> Sequence[str]:
        """Those that someone of this role may choose."""
        return [*self._live.now.personas.open_to(role)]

    @property
    def problem(self) -> str:
        """Why the settings as they are by now are not in force, if that is so."""
        return self._live.problem

    def commands_for(self, role: Role) -> list[SlashCommand]:
        """The slash commands that someone of this role may use, those of plugins among them."""
        return self._house.commands.known(role)

    def tasks(self) -> list[TaskState]:
        """What runs for as long as the house is open, as it stands."""
        return self._house.supervisor.states()

    def supervise(self, name: str, work: Callable[[], Awaitable[object]]) -> Supervised:
        """Have something run beside everything else; what fails is begun again. Whoever calls this ends it."""
        return self._house.supervisor.start(name, work)
