"""A conversation becomes part of the memory, in an open house: when it does, what it costs, and what comes of it."""

from pathlib import Path

from everloop.app import open_desk
from everloop.ports.memory import HISTORY, MEMORY
from everloop.testing import Shown

from .remembering import QuickClock, everything, extractions, fact, remembering, save, settled, turns


def about_places(shown: Shown):
    if "Oslo" in shown.asked.split("What is new:")[-1].split("The lines:")[-1]:
        return save("They moved to Oslo.", fact("The user lives in Oslo", 1, replaces=1))
    return save("They told where they live.", fact("The user lives in Rome", 1))


async def test_a_correction_is_what_the_next_conversation_knows(tmp_path: Path):
    model = remembering(about_places)
    async with open_desk(tmp_path / "home", provider=model, clock=QuickClock()) as agent:
        for text in ("I live in Rome", "/new", "I moved to Oslo", "/new"):
            await agent.ask(text, session="page:one")
            if text == "/new":
                await settled(agent.store)
        facts = await agent.store.facts("owner", ended=True)
        memory = (await agent.store.document("owner", MEMORY)).body
        history = (await agent.store.document("owner", HISTORY)).body
        await agent.ask("Where do I live?", session="page:one")
    assert sorted((each.text, bool(each.until)) for each in facts) == [
        ("The user lives in Oslo", False),
        ("The user lives in Rome", True),
    ]
    assert memory == "# Memory\n\n## Ann\n\n- The user lives in Oslo\n"
    assert [line.split("] ")[1].split(" (")[0] for line in history.splitlines()[2:]] == [
        "They told where they live.",
        "They moved to Oslo.",
    ]
    assert len(extractions(model)) == 2
    assert "Rome" not in everything(turns(model)[-1])
