"""Who is answered on each channel, from its table in the settings and from what is usual for one of its kind."""

from collections.abc import Callable, Container, Mapping

from ..core.people import Strangers
from ..ports import Channel, Clock, Store
from ..ports.policy import USUAL_POLICY, ChannelPolicy
from ..readings.keys import author_of
from ..runtime.admission import AdmitPeople
from ..runtime.pace import Pace
from ..runtime.policy import USUAL, AdmitByPolicy, Usual
from ..settings import Settings
from ..settings.channel_policy import split

AT_ONCE = Usual("always", 0.0)


def policy_of(settings: Settings, name: str) -> ChannelPolicy:
    """What the settings say of a channel that holds for all. Raises SettingsError."""
    table = settings.channels.get(name) if isinstance(settings.channels, Mapping) else None
    return split(name, table).policy if isinstance(table, Mapping) else USUAL_POLICY


class PolicyRules:
    def __init__(
        self,
        store: Store,
        strangers: Callable[[], Strangers | None],
        given: Container[str],
        clock: Clock,
    ) -> None:
        """`strangers` says what becomes of them where a channel's own settings do not; `given` are those of whom a
        program has said who they are."""
        self._store = store
        self._strangers = strangers
        self._given = given
        self._clock = clock

    def admission(self, channel: Channel, policy: ChannelPolicy, *, brought: bool = False) -> AdmitByPolicy:
        """With `brought`, a program has opened the channel itself, and speaks for who writes there."""
        name, traits = channel.manifest.name, channel.manifest.traits
        people = AdmitPeople(
            self._store,
            lambda: policy.strangers or self._strangers(),
            "guest" if brought else "pair",
            self._given,
        )
        bots = frozenset(author_of(name, each) for each in policy.bots)
        pace = Pace(self._store, name, self._clock, bots)
        usual = AT_ONCE if brought or traits.addressed else USUAL
        return AdmitByPolicy(people, policy, pace, self._clock, usual)
