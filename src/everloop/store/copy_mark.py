"""Whether anything may begin here by itself: nothing does in a restored copy that nobody has adopted.

It is asked where something is claimed (jobs, schedules, leases, answers that go out), so that whatever is done in the
background one day is covered, too. What follows from a person's word is claimed in a copy as elsewhere.
"""

from ..ports.backup import RESTORED
from ..ports.jobs import DELETE, ERASE
from ..ports.schedules import COMMAND

IS_ADOPTED = f"NOT EXISTS(SELECT 1 FROM jobs mark WHERE mark.id = '{RESTORED}' AND mark.state = 'held')"
# A command is there only if somebody has said `run`: its schedule is not fired in a copy. So it is with what speaks,
# such as the end of a question: it belongs to a turn that somebody has begun here, for those of before are held.
_ASKED_FOR = f"(session <> '' OR kind IN ('{DELETE}', '{ERASE}', '{COMMAND}'))"
MAY_BEGIN = f"({_ASKED_FOR} OR {IS_ADOPTED})"
