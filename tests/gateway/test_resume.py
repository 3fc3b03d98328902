"""However often the line breaks, a client that resumes from the last position it saw ends up with the log itself."""

import random

import pytest

from everloop.testing import Call, Calls, Pause, Say, ScriptedModel, Think

TURN = [
    (Think(["I ", "look. "]), Say(["Let ", "me ", "see."]), Pause(0.01), Call("list_dir", {"path": "."})),
    Calls(Call("list_dir", {"path": "."}), Call("write_file", {"path": "a.txt", "content": "x"})),
    (Pause(0.01), Say(["It ", "is ", "all "]), Pause(0.01), Say(["done", "."])),
]


class Client:
    """What a client keeps over its connections: the entries and the drafts, by the rules of docs/websocket.md."""

    def __init__(self) -> None:
        self.entries: dict[int, dict] = {}
        self.thread: str | None = None
        self.seq = 0
        self.drafts: dict[str, str] = {}
        self.whole: dict[str, str] = {}
        self.responses: list[tuple[str | None, str]] = []

    def take(self, frame: dict) -> None:
        match frame["type"]:
            case "history_result":
                for entry in frame["entries"]:
                    assert self.entries.setdefault(entry["seq"], entry) == entry
                if not frame["entries"] or frame["more"]:
                    return
            case "stream_start":
                self.drafts[frame["msg"]] = ""
            case "stream_chunk":
                self.drafts[frame["msg"]] += frame["delta"]
            case "stream_end" if frame["kept"]:
                self.whole[frame["msg"]] = self.drafts.pop(frame["msg"])
            case "response":
                self.responses.append((frame["id"], frame["content"]))
        if frame["thread"] and not frame["type"].startswith("stream_"):
            self.thread = frame["thread"]

    def note(self) -> None:
        """Where to go on from: the last entry that is here, for what was only streamed is not kept."""
        self.seq = max(self.entries, default=0)
        self.drafts.clear()


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_breaks_the_client_has_the_log_once_and_the_answer(openings, seed):
    chosen = random.Random(seed)
    door = await openings(ScriptedModel(TURN))
    token = await door.token()
    client = Client()
    async with door.socket(token) as wire:
        await wire.send("message", id="m1", session="api:r", content="go")
        for _ in range(chosen.randrange(1, 6)):
            client.take(await wire.next())
    answered = False
    while not answered:
        client.note()
        async with door.socket(token) as wire:
            await wire.send("resume", session="api:r", thread=client.thread, after=client.seq)
            for _ in range(chosen.randrange(1, 25)):
                frame = await wire.next()
                client.take(frame)
                answered = bool(client.responses) or _is_over(client)
                if answered:
                    break
    async with door.socket(token) as wire:
        await wire.send("resume", session="api:r", after=max(client.entries, default=0))
        client.take(await wire.next())
        await wire.send("history", session="api:r", limit=500)
        log = (await wire.next())["entries"]
        again = await wire.ask("go", "m1", "api:r")
    assert [client.entries[seq] for seq in sorted(client.entries)] == log
    said = {f"{client.thread}:{entry['seq'] - 1}": entry["text"] for entry in log if entry["kind"] == "model_said"}
    assert {msg: said[msg] for msg in client.whole} == client.whole
    assert set(client.responses) <= {("m1", "It is all done.")}
    assert len(client.responses) <= 1
    assert [(frame["type"], frame.get("content")) for frame in again] == [
        ("ack", None),
        ("response", "It is all done."),
    ]


def _is_over(client: Client) -> bool:
    return any(entry["kind"] == "model_said" and not entry.get("calls") for entry in client.entries.values())


@pytest.mark.parametrize("seed", range(12))
async def test_a_client_that_goes_by_the_frames_positions_has_seen_every_answer(openings, seed):
    """It keeps what was streamed whole, and asks for what follows the position of the last frame."""
    chosen = random.Random(seed)
    door = await openings(ScriptedModel(TURN))
    token = await door.token()
    client, seq, over = Client(), 0, False
    async with door.socket(token) as wire:
        await wire.send("message", id="m1", session="api:r", content="go")
        for _ in range(chosen.randrange(1, 9)):
            frame = await wire.next()
            client.take(frame)
            seq = frame["seq"]
    while not over:
        client.drafts.clear()
        async with door.socket(token) as wire:
            await wire.send("resume", session="api:r", thread=client.thread, after=seq)
            for _ in range(chosen.randrange(1, 25)):
                frame = await wire.next()
                client.take(frame)
                seq = frame["seq"]
                over = bool(client.responses) or _is_over(client)
                if over:
                    break
    async with door.socket(token) as wire:
        await wire.send("history", session="api:r", limit=500)
        log = (await wire.next())["entries"]
    said = {entry["seq"] - 1: entry["text"] for entry in log if entry["kind"] == "model_said"}
    streamed = {int(msg.rpartition(":")[2]): text for msg, text in client.whole.items()}
    read = {entry["seq"] - 1: entry["text"] for entry in client.entries.values() if entry["kind"] == "model_said"}
    assert {**read, **streamed} == said
