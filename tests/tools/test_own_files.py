"""load_file brings one's own files into the workspace, send_file gives one back, what commands write comes along."""

import io
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import everloop
from everloop.core.people import Role
from everloop.core.tool import Effect
from everloop.ports.events import Answer
from everloop.readings.linked_files import linked_files
from everloop.testing import Call, Say, ScriptedModel
from everloop.tools.decorator import tool
from everloop.tools.produced import FILES

BYTES = bytes(range(256)) * 10


def named(data: bytes) -> str:
    return f"file:{sha256(data).hexdigest()[:12]}"


def results(model: ScriptedModel) -> list[str]:
    return [message.text for message in model.prompts[-1].messages if message.role == "tool"]


async def asked(home: Path, *lines: Any, files: tuple[Path, ...] = (), **given: Any) -> tuple[Answer, ScriptedModel]:
    model = ScriptedModel([*lines, Say("done")])
    settings = {"tools": {"approvals": "allow"}}
    async with everloop.open(home, settings, provider=model, **given) as agent:
        return await agent.ask("go on", files=files), model


def made(answer: Answer) -> list[str]:
    return [each.media.name for each in answer.files]


async def test_a_file_that_was_sent_is_worked_on_and_the_result_comes_back(tmp_path: Path):
    (tmp_path / "data.bin").write_bytes(BYTES)
    run = "data = open('data.bin','rb').read()\nopen('half.bin','wb').write(data[:len(data)//2])"
    answer, model = await asked(
        tmp_path / "home",
        Call("load_file", {"file": named(BYTES)}),
        Call("run_python", {"code": run}),
        files=(tmp_path / "data.bin",),
    )
    assert results(model)[0] == "data.bin is there now (2,560 bytes)."
    assert results(model)[1] == "[exit code 0]\n[with the answer go: half.bin]"
    assert made(answer) == ["half.bin"]
    assert (tmp_path / "home/workspace/data.bin").read_bytes() == BYTES


async def test_a_file_is_found_by_its_name_and_never_written_over_unasked(tmp_path: Path):
    (tmp_path / "data.bin").write_bytes(BYTES)
    home = tmp_path / "home"
    (home / "workspace").mkdir(parents=True)
    (home / "workspace/data.bin").write_text("mine")
    _, model = await asked(
        home,
        Call("load_file", {"file": "data.bin"}),
        Call("load_file", {"file": "data.bin", "path": "other.bin"}),
        Call("load_file", {"file": "data.bin", "path": "other.bin"}),
        Call("load_file", {"file": "data.bin", "replace": True}),
        Call("load_file", {"file": "nothing.bin"}),
        Call("load_file", {"file": "data.bin", "path": "../out.bin"}),
        files=(tmp_path / "data.bin",),
    )
    refused, first, again, replaced, unknown, outside = results(model)
    assert refused == ("Error: 'data.bin': there is a file of that name already; give another path, or replace=true")
    assert (first, again) == ("other.bin is there now (2,560 bytes).",) * 2
    assert replaced == "data.bin is there now (2,560 bytes)."
    assert unknown == (
        f"Error: there is no file 'nothing.bin' of this person; the latest are: data.bin ({named(BYTES)})"
    )
    assert outside.startswith("Error: '../out.bin': ")
    assert not (home / "out.bin").exists()


async def test_nobody_loads_another_ones_file(tmp_path: Path):
    """And whoever has it does: the same call, another person."""
    (tmp_path / "secret.bin").write_bytes(BYTES)
    calls = [Call("load_file", {"file": f"file:{sha256(BYTES).hexdigest()}"}), Say("done")]
    model = ScriptedModel([Say("kept"), *calls, Call("load_file", {"file": "secret.bin"}), Say("done"), *calls])
    roles = {"web:ann": Role.USER, "web:bob": Role.USER}
    async with everloop.open(tmp_path / "home", provider=model, roles=roles) as agent:
        await agent.user("web:ann").ask("keep it", files=(tmp_path / "secret.bin",))
        told = []
        for who in ("web:bob", "web:bob", "web:ann"):
            await agent.user(who).ask("load it")
            told.append(results(model)[-1])
    ref = f"file:{sha256(BYTES).hexdigest()}"
    assert told == [
        f"Error: there is no file '{ref}' of this person; the latest are: none",
        "Error: there is no file 'secret.bin' of this person; the latest are: none",
        "secret.bin is there now (2,560 bytes).",
    ]


async def test_a_guest_has_none_of_these_tools(tmp_path: Path):
    model = ScriptedModel([Say("hello")])
    async with everloop.open(tmp_path / "home", provider=model) as agent:
        await agent.user("web:guest").ask("hi")
    assert {"load_file", "send_file"} & set(model.prompts[0].tools) == set()


async def test_a_file_is_sent_on_purpose_as_it_was_then(tmp_path: Path):
    home = tmp_path / "home"
    (home / "workspace").mkdir(parents=True)
    (home / "workspace/film.mp4").write_bytes(b"\0\0\0\x18ftypisom")
    answer, model = await asked(
        home, Call("send_file", {"path": "film.mp4"}), Call("send_file", {"path": "../config.toml"})
    )
    assert results(model)[0] == "film.mp4 (12 bytes, video/mp4) goes with the answer."
    assert results(model)[1].startswith("Error: ")
    assert [(each.media.name, each.media.mime) for each in answer.files] == [("film.mp4", "video/mp4")]


async def test_of_many_files_some_come_along_and_the_rest_is_told(tmp_path: Path):
    answer, model = await asked(
        tmp_path / "home",
        Call(
            "exec",
            {"command": "mkdir -p out .hid; for n in $(seq 10 22); do echo $n > out/$n.txt; done; echo x > .hid/a"},
        ),
        Call("exec", {"command": "cat out/10.txt"}),
        Call("exec", {"command": "truncate -s 60M big.bin; echo 1 > out/10.txt"}),
    )
    first, nothing, large = results(model)
    sent = [f"out/{n}.txt" for n in range(10, 10 + FILES)]
    assert first == (
        f"[exit code 0]\n[with the answer go: {', '.join(sent)}; also written, and not sent: out/20.txt, out/21.txt, "
        "out/22.txt (send_file sends one)]"
    )
    assert nothing == "[exit code 0]\n10\n"
    assert large == (
        "[exit code 0]\n[with the answer go: out/10.txt; also written, and not sent: big.bin (send_file sends one)]"
    )
    assert sorted(made(answer)) == sent


async def test_a_bomb_is_kept_as_it_is_and_never_unpacked(tmp_path: Path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(50_000_000))
    (tmp_path / "bomb.zip").write_bytes(packed.getvalue())
    _, model = await asked(tmp_path / "home", Call("load_file", {"file": "bomb.zip"}), files=(tmp_path / "bomb.zip",))
    size = len(packed.getvalue())
    assert f"application/zip, {size:,} bytes; load_file" in model.prompts[0].messages[-1].text
    kept = [path.stat().st_size for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert size in kept
    assert max(kept) < 5_000_000


class TestAddresses:
    async def test_what_a_tool_tells_of_by_an_address_comes_along(self, tmp_path: Path):
        @tool(Effect.READ, permission=Role.USER)
        async def draw() -> str:
            """Draw."""
            return (
                '{"url": "https://a.example/1.png", "files": [{"url": "https://a.example/2", "filename": "../b"}, 3]}'
            )

        answer, _ = await asked(tmp_path / "home", Call("draw"), tools=[draw])
        assert [(each.media.file, each.media.name) for each in answer.files] == [
            ("https://a.example/1.png", "file"),
            ("https://a.example/2", "b"),
        ]

    def test_nothing_else_is_taken_for_one(self):
        for text in (
            '{"url": "javascript:alert(1)"}',
            '{"url": "file:///etc/shadow"}',
            '{"url": "https://a b"}',
            '{"url": 3, "files": "x"}',
            '[{"url": "https://a.example"}]',
            'see {"url": "https://a.example"}',
            '{"url": "https://a.example',
        ):
            assert linked_files(text) == ()


async def test_a_file_is_found_by_the_name_it_was_sent_under_after_a_tool_has_made_the_same_again(tmp_path: Path):
    (tmp_path / "pack.bin").write_bytes(BYTES)
    answer, model = await asked(
        tmp_path / "home",
        Call("load_file", {"file": "pack.bin"}),
        Call("run_python", {"code": "open('copy.bin','wb').write(open('pack.bin','rb').read())"}),
        Call("load_file", {"file": "pack.bin", "path": "again.bin"}),
        files=(tmp_path / "pack.bin",),
    )
    assert made(answer) == ["copy.bin"]
    assert results(model)[2] == "again.bin is there now (2,560 bytes)."
