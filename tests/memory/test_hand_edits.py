"""MEMORY.md is edited while a conversation goes on: what is taken out is told no longer, what is added is found."""

from pathlib import Path

from everloop.app import open_desk
from everloop.ports.memory import MEMORY, Fact, MemoryChange, MemoryDocument
from everloop.testing import Say, ScriptedModel

from .remembering import QuickClock, pass_time

BODY = "# Memory\n\n## Ann\n\n- Ann lives in Rome\n"
ROME = Fact("aaaa1111", "Ann lives in Rome", topic="Ann")


async def test_what_is_taken_out_is_told_no_longer_and_what_is_added_is_found_and_told_later(tmp_path: Path):
    model, clock = ScriptedModel(lambda shown: Say("ok")), QuickClock()
    file = tmp_path / "home" / "workspace" / "memory" / MEMORY
    async with open_desk(tmp_path / "home", provider=model, clock=clock) as agent:
        change = MemoryChange("", "learnt", facts=(ROME,), documents=(MemoryDocument(MEMORY, BODY),))
        assert await agent.store.change_memory("owner", change)
        await agent.ask("hi", session="page:one")
        file.write_text(f"{BODY}- Ann is a pilot\n")
        await pass_time(clock, 2)
        await agent.ask("go on", session="page:one")
        known = {fact.text for fact in await agent.store.facts("owner")}
        file.write_text(file.read_text().replace("Rome", "Oslo"))
        await pass_time(clock, 2)
        await agent.ask("and now?", session="page:one")
    told = [("Rome" in each.system, "Oslo" in each.system, "pilot" in each.system) for each in model.prompts]
    assert told == [(True, False, False), (True, False, False), (False, True, True)]
    assert known == {"Ann lives in Rome", "Ann is a pilot"}
