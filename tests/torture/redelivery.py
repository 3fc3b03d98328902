"""Platforms that deliver everything several times, at once and out of order: one event is one turn."""

import asyncio
import random
from collections import Counter
from pathlib import Path

import everloop
from everloop.app.user import inbound_of
from everloop.core.log import UserSaid
from everloop.core.message import text_of
from everloop.testing import Say, ScriptedModel

from .invariants import Report

TIMES = 5
SESSIONS = 100


async def redeliver(folder: Path, events: int, seed: int, url: str = "") -> Report:
    """Each event five times, shuffled within the batches that a platform delivers side by side."""
    rng = random.Random(seed)
    model = ScriptedModel(lambda shown: Say(f"answer to {shown.asked}"))
    threads: set[str] = set()
    mails: Counter[tuple[str, int]] = Counter()
    known = {f"user{number}": everloop.Role.USER for number in range(events)}  # guests have few calls a day
    opened = everloop.open(folder, {"store": {"url": url}}, provider=model, roles=known)
    async with opened as agent:

        async def deliver(number: int) -> None:
            inbound = inbound_of(f"m{number}", f"api:{number % SESSIONS}", f"event{number}", f"user{number}")
            receipt = await agent.tell(inbound)
            threads.add(receipt.thread)
            mails[f"event{number}", receipt.id] += 1

        for start in range(0, events, 200):
            batch = [*range(start, min(start + 200, events))] * TIMES
            rng.shuffle(batch)
            await asyncio.gather(*map(deliver, batch))
        for session in range(SESSIONS):
            await agent.finish(f"api:{session}")
        logs = [await agent.store.read(thread) for thread in threads]
    heard = Counter(text_of(entry.parts) for log in logs for entry in log if isinstance(entry, UserSaid))
    report = Report()
    report.seen.update(events=events, deliveries=mails.total(), turns=heard.total(), letters=len(mails))
    report.seen["model calls"] = model.calls
    if len(mails) != events or heard != Counter(f"m{number}" for number in range(events)) or model.calls != events:
        report.wrong.append(f"{events} events became {len(mails)} letters, {heard.total()} turns, {model.calls} calls")
    return report
