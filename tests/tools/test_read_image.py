"""read_file shows images and PDFs, by their content, from inside the workspace and nowhere else."""

import io
from pathlib import Path

import pytest
from PIL import Image

from everloop.core.people import Role
from everloop.errors import ToolError
from everloop.files.folder import Folder
from everloop.ports.tools import CallContext, Picture, Shown, Tool
from everloop.readings.media import LARGEST_DOCUMENT, LARGEST_IMAGE
from everloop.tools.read_file import read_file_tool
from everloop.tools.workspace import Workspace

CONTEXT = CallContext(key="t:1:0", thread="t", session="cli:direct", user="ann", role=Role.USER)
PDF = b"%PDF-1.7\n%%EOF\n"


def png(width: int = 3, height: int = 2) -> bytes:
    out = io.BytesIO()
    Image.effect_noise((width, height), 90).save(out, "png")
    return out.getvalue()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def files(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "files")


@pytest.fixture
def read(root: Path, files: Folder) -> Tool:
    return read_file_tool(Workspace(root), files, 8000)


async def refusal(tool: Tool, path: str) -> str:
    with pytest.raises(ToolError) as caught:
        await tool.run({"path": path}, CONTEXT)
    return str(caught.value)


async def test_a_small_image_is_shown_with_its_kind_and_size(root: Path, read: Tool):
    data = png()
    (root / "sub").mkdir()
    (root / "sub" / "photo.png").write_bytes(data)
    assert await read.run({"path": "sub/photo.png"}, CONTEXT) == Shown(
        f"photo.png: image/png, {len(data)} bytes",
        (Picture(data, "image/png", "photo.png"),),
        origin="sub/photo.png",
        public=True,
    )


async def test_a_large_one_is_shown_as_a_whole(root: Path, read: Tool):
    data = png(1000, 900)
    (root / "photo.png").write_bytes(data)
    assert await read.run({"path": "photo.png", "offset": 5, "limit": 1}, CONTEXT) == Shown(
        f"photo.png: image/png, {len(data):,} bytes",
        (Picture(data, "image/png", "photo.png"),),
        origin="photo.png",
        public=True,
    )


async def test_its_content_counts_and_not_its_name(root: Path, read: Tool):
    (root / "notes.txt").write_bytes(PDF)
    (root / "photo.png").write_text("not yet painted\n")
    shown = await read.run({"path": "notes.txt"}, CONTEXT)
    assert isinstance(shown, Shown)
    assert shown.text.startswith("notes.txt: application/pdf, 15 bytes")
    assert shown.pictures == (Picture(PDF, "application/pdf", "notes.txt"),)
    assert await read.run({"path": "photo.png"}, CONTEXT) == Shown("not yet painted\n", origin="photo.png")


async def test_a_stored_image_is_shown_by_its_reference_to_its_owner_alone(files: Folder, read: Tool):
    data = png()
    ref = await files.put("ann", data, "photo.png")
    assert await read.run({"path": ref}, CONTEXT) == Shown(
        f"{ref}: image/png, {len(data)} bytes", (Picture(data, "image/png", ref),), origin=ref[:17]
    )
    other = await files.put("bob", png(4, 4), "secret.png")
    assert await refusal(read, other) == f"there is no stored result {other}"


async def test_what_is_too_large_is_refused_without_being_read(root: Path, read: Tool):
    for name, data, largest in (("a.png", png(), LARGEST_IMAGE), ("a.pdf", PDF, LARGEST_DOCUMENT)):
        with open(root / name, "wb") as file:  # noqa: ASYNC230
            file.write(data)
            file.truncate(largest)
        assert isinstance(await read.run({"path": name}, CONTEXT), Shown)
        with open(root / name, "ab") as file:  # noqa: ASYNC230
            file.truncate(300 * 1024**3)
    assert await refusal(read, "a.png") == (
        "'a.png' has 322,122,547,200 bytes; of image/png at most 20,000,000 can be shown"
    )
    assert await refusal(read, "a.pdf") == (
        "'a.pdf' has 322,122,547,200 bytes; of application/pdf at most 14,000,000 can be shown"
    )


async def test_an_image_outside_of_the_workspace_stays_unseen(root: Path, read: Tool):
    (root.parent / "secret.png").write_bytes(png())
    (root / "link.png").symlink_to("../secret.png")
    for path in ("../secret.png", str(root.parent / "secret.png"), "link.png"):
        assert "workspace" in await refusal(read, path)


async def test_a_damaged_head_is_binary_data(root: Path, read: Tool):
    (root / "a.png").write_bytes(png()[:20])
    assert await refusal(read, "a.png") == "'a.png' is not text but binary data (20 bytes)"
