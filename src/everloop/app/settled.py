"""Sections that stay as they are through a conversation: memory and skills (see SectionSource)."""

from collections import OrderedDict
from collections.abc import Sequence

from ..core.briefing import Situation
from ..core.people import Role
from ..core.prompt import Section
from ..ports import RevocableSource, SectionSource

CONVERSATIONS = 2000  # of which it is kept what they were told

_Key = tuple[str, str, Role]
_Mark = tuple[int, ...]  # what is covered by the last compaction, and what was revoked


class SettledSections:
    """Asks its sources once for each conversation, and again after a compaction. What another process was told is not
    known here: after a restart a conversation is told what is true then."""

    def __init__(
        self,
        sources: Sequence[SectionSource],
        revocable: Sequence[RevocableSource] = (),
        most: int = CONVERSATIONS,
    ) -> None:
        """What the `revocable` tell stands first, and is looked at in each turn."""
        self._sources = (*revocable, *sources)
        self._revocable = revocable
        self._most = most
        self._told: OrderedDict[_Key, tuple[_Mark, tuple[Section, ...]]] = OrderedDict()

    async def of(self, situation: Situation) -> tuple[Section, ...]:
        """Raises StoreError."""
        key = situation.thread, situation.principal, situation.role
        told = self._told.get(key)
        mark: _Mark = (situation.covered,)
        for source in self._revocable:
            mark += (await source.revocation(situation),)
        if told is None or told[0] != mark:
            asked = [await source.sections(situation) for source in self._sources]
            sections = asked[0] if len(asked) == 1 else tuple(section for each in asked for section in each)
            told = self._told[key] = mark, sections
            if len(self._told) > self._most:
                self._told.popitem(last=False)
        return told[1]
