"""Not a test: what the large embedded model chooses and how soon it speaks, measured by hand, for it weighs 1.1 GB.

    python tests/providers/embedded_by_hand.py [folder for the weights]

Run it twice: the second time the prefix comes from the disk.
"""

import asyncio
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from everloop.core.message import Message, said
from everloop.core.prompt import Prompt, Transcript
from everloop.ports.provider import Delta, Reply
from everloop.providers.embedded import WEIGHTS, EmbeddedProvider
from everloop.tools.files import workspace_tools

SYSTEM = "You are everloop, a personal assistant that runs on the user's own computer. Be brief and honest."
SPOKEN = (
    "Hi! Could you tell me in one or two short sentences which planet is the biggest one in our solar system?",
    "Thanks. And which one is the smallest of them all, and how far away from the sun is it on average?",
)
CHOICES = (
    ("What is in the folder src?", "list_dir"),
    ("Show me the file notes.txt", "read_file"),
    ("Create a file hello.txt that says hello world", "write_file"),
    ("In config.toml replace port = 80 with port = 8080", "edit_file"),
    ("Hi! How are you?", "reply"),
    ("What is the capital of France?", "reply"),
    ("Read README.md and tell me what the project is about", "read_file"),
    ("Which files are in the current directory?", "list_dir"),
)


async def measure(folder: Path, begun: float) -> None:
    model = EmbeddedProvider(WEIGHTS["embedded"], folder)
    with TemporaryDirectory() as workspace:
        tools = tuple(tool.spec for tool in workspace_tools(Path(workspace), None))  # type: ignore[arg-type]

    async def ask(transcript: Transcript, since: float) -> tuple[Reply, float]:
        first = 0.0

        def show(delta: Delta) -> None:
            nonlocal first
            if delta.text:
                first = first or time.monotonic() - since

        return await model.reply(Prompt("embedded", SYSTEM, transcript, tools, conversation="c"), show), first

    transcript = Transcript()
    for question in SPOKEN:
        transcript.messages.append(Message("user", said(question)))
        reply, first = await ask(transcript, begun)
        transcript.messages.append(Message("assistant", said(reply.text), reply.calls))
        _say(f"{first:.2f} s to the first word, {await model.count(question)} tokens asked, {reply.usage}")
        begun = time.monotonic()
    for question, wanted in CHOICES:
        reply, _ = await ask(Transcript((Message("user", said(question)),)), time.monotonic())
        chosen = reply.calls[0].name if reply.calls else "reply"
        _say(f"{'right' if chosen == wanted else 'WRONG'} {question} -> {reply.calls or reply.text}")
    _say(f"load {os.getloadavg()}")
    await model.close()


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")


if __name__ == "__main__":
    home = Path(sys.argv[1]) if len(sys.argv) > 1 else Path.home() / ".cache" / "everloop-tests"
    asyncio.run(measure(home, time.monotonic()))
