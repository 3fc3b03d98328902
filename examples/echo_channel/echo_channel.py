"""A channel in a small file: a folder is the platform. `in.jsonl` has what people say, `out.jsonl` the answers."""

import asyncio
import json
from pathlib import Path

from everloop.errors import SettingsError
from everloop.ports import Deliver
from everloop.ports.channel import Incoming, Manifest, OutgoingPart, Traits


class Folder:
    manifest = Manifest("echo", Traits(once=True, text_limit=2000))

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def run(self, deliver: Deliver, resume: str) -> None:
        """`resume` is the number of lines that were heard: it is committed with the line that it counts."""
        heard = int(resume or 0)
        while True:
            file = self._folder / "in.jsonl"
            lines = file.read_text().splitlines() if file.exists() else []
            for line in lines[heard:]:
                said = json.loads(line)
                heard += 1
                message = Incoming(event=said["id"], chat="folder", account=said["by"], text=said["text"])
                await deliver(message, str(heard))
            await asyncio.sleep(0.02)

    def render(self, outbound) -> tuple[str, ...]:
        text = outbound.text
        return tuple(text[at : at + 1900] for at in range(0, len(text), 1900)) or ("",)

    async def send(self, part: OutgoingPart) -> str:
        """Whoever reads the file knows the keys, so that a line may stand there twice."""
        with (self._folder / "out.jsonl").open("a") as file:
            file.write(json.dumps({"key": part.key, "text": part.text}) + "\n")
        return part.key


def open_channel(settings, http) -> Folder:
    if not settings.get("folder"):
        raise SettingsError("channels.echo.folder says which folder it is")
    return Folder(Path(settings["folder"]))
