"""What a channel promises beside answers, where it says that it can do it, and its platform tells what people see."""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import structs

from ..core.mail import Address
from ..errors import Undeliverable
from ..ports import Fetches, Previews
from ..ports.channel import Incoming, OutgoingFile, OutgoingPart, Reacts, Rendered, Replaces
from .platform import PATIENCE, Platform, Trial


async def check_skipped(trial: Trial) -> None:
    platform = trial.platform
    async with trial.house() as (first, _, agent):
        await platform.say("e1", "one")
        await platform.shown(1)
        _drain(first.skipped)  # a channel may have skipped before, as when it has begun
        if not await platform.pass_by():
            return
        async with asyncio.timeout(PATIENCE):
            skipped = {await first.skipped.get()}
            kept = await agent.store.resume(first.manifest.name)
            while kept not in skipped:  # where it goes on is kept, also when nothing was for us
                skipped.add(await first.skipped.get())
    skipped |= _drain(first.skipped)
    async with trial.house() as (second, _, _):
        assert second.last in skipped, f"and it goes on there: {second.last!r}"
        await platform.say("e2", "two")
        await platform.shown(2)
    assert platform.seen == ["you said one", "you said two"], f"nothing is lost or doubled: {platform.seen}"


async def check_files_out(trial: Trial) -> None:
    platform = trial.platform
    if platform.files() is None:
        return
    async with trial.met() as (channel, heard, address, _):
        traits = channel.manifest.traits
        assert traits.files, "a channel that sends files says how large they may be (traits.files)"
        files = [OutgoingFile(f"wishes {n}.txt", "text/plain", f"{n} wishes".encode()) for n in (1, 2)]
        groups = [tuple(files)] if traits.enclosed else [(file,) for file in files]
        for number, group in enumerate(groups):
            text = "as you wish" if traits.enclosed else ""
            part = _part(f"k{number}", address, heard, text)
            assert await channel.send(structs.replace(part, files=group)), "a file has a receipt"
        link = "https://files.example/large.bin"
        large = OutgoingFile("large.bin", "application/octet-stream", link=link)
        await channel.send(structs.replace(_part("k9", address, heard, "too large"), files=(large,)))
        await platform.shown(len(groups) + 1)
    wanted = [(file.name, file.data) for file in files]
    assert list(platform.files() or ()) == wanted, f"files arrive whole, by their names: {platform.files()}"
    assert link in platform.seen[-1], f"where a file lies that is too large is told in the text: {platform.seen[-1]}"


async def check_files_in(trial: Trial) -> None:
    name, data = "wishes.txt", b"three wishes"
    async with trial.met() as (channel, _, _, came):
        if not isinstance(channel, Fetches) or not await trial.platform.say_with_file("e2", "two", name, data):
            return
        async with asyncio.timeout(PATIENCE):
            heard = await came.get()
        assert (heard.text, len(heard.files)) == ("two", 1), f"a message comes with its file: {heard}"
        found = await channel.fetch(heard.files[0], 1000)
        assert found == (name, data), f"a file that came along is there to be fetched: {found}"
        try:
            await channel.fetch(heard.files[0], len(data) - 1)
        except Undeliverable:
            return
    raise AssertionError("a file with more bytes than are wanted is refused (Undeliverable)")


async def check_drafts(trial: Trial) -> None:
    platform = trial.platform
    async with trial.met() as (channel, heard, address, _):
        if not isinstance(channel, Previews) or platform.visible() is None:
            return
        assert channel.manifest.traits.preview, "a channel with previews says how often (traits.preview)"
        _see(platform)
        draft = await channel.preview(address, "", "Once upon", heard.reply_to)
        _see(platform, "Once upon")
        draft = await channel.preview(address, draft, "Once upon a time", heard.reply_to)
        _see(platform, "Once upon a time")
        await channel.send(structs.replace(_part("k1", address, heard, "They lived on."), draft=draft))
        _see(platform, "They lived on.")
        draft = await channel.preview(address, "", "Another", heard.reply_to)
        _see(platform, "They lived on.", "Another")
        await channel.preview(address, draft, "", heard.reply_to)
        _see(platform, "They lived on.")


async def check_changes(trial: Trial) -> None:
    platform = trial.platform
    async with trial.met() as (channel, heard, address, _):
        if not isinstance(channel, Replaces) or platform.visible() is None:
            return
        assert channel.manifest.traits.edits, "a channel on which what was sent can be changed says so (traits.edits)"
        first, second = [await channel.send(_part(key, address, heard, key)) for key in ("k1", "k2")]
        for _ in range(2):
            await channel.replace(address, first, Rendered("changed", "changed"))
        _see(platform, "changed", "k2")
        for _ in range(2):
            await channel.withdraw(address, second)
        _see(platform, "changed")


async def check_reactions(trial: Trial) -> None:
    platform = trial.platform
    async with trial.met() as (channel, heard, address, _):
        if not isinstance(channel, Reacts) or platform.reactions() is None:
            return
        await channel.react(address, heard.reply_to, "👍")
        found = list(platform.reactions() or ())
    assert found == ["👍"], f"people see how we react to what they said: {found}"


def _drain(queue: asyncio.Queue[str]) -> set[str]:
    return {queue.get_nowait() for _ in range(queue.qsize())}


def _part(key: str, address: Address, heard: Incoming, text: str) -> OutgoingPart:
    return OutgoingPart(key=key, address=address, text=text, plain=text, reply_to=heard.reply_to)


def _see(platform: Platform, *texts: str) -> None:
    """A draft may have a mark of its own behind its text."""
    visible = list(platform.visible() or ())
    alike = len(visible) == len(texts) and all(text in shown for text, shown in zip(texts, visible, strict=True))
    assert alike, f"people see {visible}, and should see {list(texts)}"


ABILITIES: dict[str, Callable[[Trial], Awaitable[None]]] = {
    "what is not for us is not heard again": check_skipped,
    "files arrive whole": check_files_out,
    "files are fetched": check_files_in,
    "a draft becomes the answer": check_drafts,
    "what was sent can be changed": check_changes,
    "reactions are seen": check_reactions,
}
