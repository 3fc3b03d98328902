"""Images and documents are shown as they are, or smaller if they have to be; or it is said why not."""

import io
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageSequence

from everloop.files.pictures import MOST, AttachedFile, fit, looked_at
from everloop.readings.media import LARGEST_DOCUMENT, kind_of

PDF = b"%PDF-1.7\n1 0 obj\nendobj\n%%EOF\n"


def picture(kind: str, size: tuple[int, int] = (30, 20), mode: str = "RGB", **more: Any) -> bytes:
    """A white picture with a dark left half."""
    image = Image.new("L", size, 255)
    ImageDraw.Draw(image).rectangle((0, 0, size[0] // 2 - 1, size[1]), fill=0)
    out = io.BytesIO()
    image.convert(mode).save(out, kind, **more)
    return out.getvalue()


def noise(kind: str, size: tuple[int, int], mode: str = "RGB", seed: int = 7, **more: Any) -> bytes:
    """A picture that no compression makes small."""
    random = Random(seed)
    image = Image.frombytes(mode, size, random.randbytes(size[0] * size[1] * len(Image.new(mode, (1, 1)).getbands())))
    if mode == "P":
        image.putpalette(random.randbytes(768))
    out = io.BytesIO()
    image.save(out, kind, **more)
    return out.getvalue()


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


@pytest.mark.parametrize(
    "data, mime",
    [
        (picture("png"), "image/png"),
        (picture("jpeg"), "image/jpeg"),
        (picture("gif"), "image/gif"),
        (picture("webp"), "image/webp"),
        (PDF, "application/pdf"),
        (b"GIF89a is how an old kind of image begins", ""),
        (b"RIFF is a container", ""),
        (b"\x89PNG\r\n\x1a\n", ""),
        (b"BM\x1e\x00\x00\x00", ""),
        (b"", ""),
    ],
)
async def test_a_file_is_what_its_content_says(data: bytes, mime: str):
    assert kind_of(data) == mime
    if mime:
        assert await looked_at("any.txt", data) == AttachedFile("any.txt", data, mime)


@given(st.text())
def test_no_text_is_taken_for_an_image(text: str):
    assert kind_of(text.encode()) in ("", "application/pdf")


async def test_a_text_is_attached_as_text():
    assert await looked_at("notes.md", "süß\n".encode()) == AttachedFile("notes.md", "süß\n".encode())


class TestWhatIsNotShown:
    async def test_binary_data(self):
        data = b"\x7fELF\0"
        assert await looked_at("a.bin", data) == AttachedFile("a.bin", data, kind="application/x-executable")

    async def test_a_document_that_no_host_would_take(self):
        data = PDF.ljust(LARGEST_DOCUMENT + 1)
        why = "it has 14,000,001 bytes; a document may have 14,000,000"
        assert await looked_at("a.pdf", data) == AttachedFile("a.pdf", data, kind="application/pdf", why=why)

    @pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
    async def test_an_image_that_is_cut_off(self, kind: str):
        data = noise(kind, (300, 200))[:9000]
        found = await looked_at("half", data)
        assert found == AttachedFile("half", data, kind=f"image/{kind}", why="the image is cut off")

    async def test_the_end_of_the_small_image_within_a_photo_is_not_the_end_of_the_photo(self):
        small = picture("jpeg", (16, 16))
        exif = Image.Exif()
        exif[0x9286] = small  # a comment; a camera's preview stands in the same segment
        photo = noise("jpeg", (300, 200), exif=exif)
        assert small in photo
        assert await fit(photo, "image/jpeg") == photo
        with pytest.raises(ValueError, match="the image is cut off"):
            await fit(photo[:-2000], "image/jpeg")

    async def test_an_image_that_is_not_what_it_is_called(self):
        with pytest.raises(ValueError, match="it is not image/png"):
            await fit(picture("jpeg"), "image/png")
        with pytest.raises(ValueError, match=r"it is not image/svg\+xml"):
            await fit(b"<svg/>", "image/svg+xml")

    async def test_more_pixels_than_there_is_memory_for(self):
        bomb = bytearray(picture("png"))
        bomb[16:24] = (100_000).to_bytes(4, "big") * 2
        with pytest.raises(ValueError, match="it has 10,000,000,000 pixels; at most 80,000,000 are taken"):
            await fit(bytes(bomb), "image/png")

    async def test_a_large_image_that_cannot_be_decoded(self):
        broken = bytearray(noise("png", (2000, 700)))
        broken[60:2_000_060] = bytes(2_000_000)
        with pytest.raises(ValueError, match="it is too large, and cannot be made smaller"):
            await fit(bytes(broken), "image/png")


class TestWhatIsMadeSmaller:
    async def test_what_is_small_enough_stays_the_same_to_the_byte(self):
        for kind in ("png", "jpeg", "gif", "webp"):
            data = picture(kind, (1200, 900))
            assert await fit(data, f"image/{kind}") == data
        assert await fit(PDF.ljust(5_000_000), "application/pdf") == PDF.ljust(5_000_000)

    @pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp"])
    @pytest.mark.parametrize("size, fitted", [((8100, 100), (2000, 25)), ((100, 8100), (25, 2000))])
    async def test_a_long_image_becomes_a_shorter_one_of_the_same_kind(
        self, kind: str, size: tuple[int, int], fitted: tuple[int, int]
    ):
        data = picture(kind, size, "P" if kind == "gif" else "RGB")
        small = await fit(data, f"image/{kind}")
        assert (kind_of(small), opened(small).size) == (f"image/{kind}", fitted)

    async def test_a_line_is_still_one_pixel_high(self):
        assert opened(await fit(picture("png", (9000, 10)), "image/png")).size == (2000, 2)
        assert opened(await fit(picture("png", (9000, 1)), "image/png")).size == (2000, 1)

    @pytest.mark.parametrize(
        "kind, mode",
        [
            ("png", "RGB"),
            ("png", "RGBA"),
            ("png", "LA"),
            ("png", "P"),
            ("jpeg", "RGB"),
            ("jpeg", "CMYK"),
            ("webp", "RGBA"),
        ],
    )
    async def test_a_heavy_image_becomes_a_light_one_of_the_same_kind(self, kind: str, mode: str):
        heavy = {"quality": 100} if kind == "jpeg" else {"lossless": True, "method": 0} if kind == "webp" else {}
        data = noise(kind, (2600, 1900), mode, **heavy)
        assert len(data) > MOST
        small = await fit(data, f"image/{kind}")
        assert kind_of(small) == f"image/{kind}"
        assert len(small) <= MOST
        assert max(opened(small).size) in (1000, 2000)
        assert opened(small).has_transparency_data == (mode in ("RGBA", "LA"))

    @pytest.mark.parametrize(
        "kind, mode", [("png", "P"), ("png", "1"), ("png", "I;16"), ("jpeg", "CMYK"), ("gif", "P")]
    )
    async def test_dark_stays_dark_and_light_stays_light(self, kind: str, mode: str):
        data = picture(kind, (8100, 100), "L" if mode == "I;16" else mode)
        if mode == "I;16":
            out = io.BytesIO()
            opened(data).convert("I").point(lambda grey: grey * 257).convert("I;16").save(out, "png")
            data = out.getvalue()
            assert opened(data).mode == "I;16"
        small = opened(await fit(data, f"image/{kind}")).convert("L")
        assert small.getpixel((500, 12)) < 10
        assert small.getpixel((1500, 12)) > 245

    async def test_a_photo_stays_the_right_way_up(self):
        exif = Image.Exif()
        exif[0x0112] = 6  # to be turned by a quarter
        data = picture("jpeg", (8400, 4200), exif=exif)
        small = opened(await fit(data, "image/jpeg"))
        assert (small.size, small.getexif().get(0x0112)) == ((1000, 2000), None)
        assert small.convert("L").getpixel((500, 100)) < 10

    async def test_of_an_animation_that_is_too_large_the_first_picture_is_shown(self):
        frames = [opened(noise("png", (900, 900), "P", seed)) for seed in range(6)]
        out = io.BytesIO()
        frames[0].save(out, "gif", save_all=True, append_images=frames[1:])
        assert len(out.getvalue()) > MOST
        small = await fit(out.getvalue(), "image/gif")
        assert len([*ImageSequence.Iterator(opened(small))]) == 1
        assert (kind_of(small), len(small) <= MOST) == ("image/gif", True)

    async def test_the_same_image_becomes_the_same_bytes(self):
        data = noise("png", (2000, 700))
        assert await fit(data, "image/png") == await fit(data, "image/png")

    async def test_a_file_is_attached_as_it_will_be_shown(self):
        attached = await looked_at("a.png", noise("png", (2000, 700)))
        assert attached == AttachedFile("a.png", await fit(attached.data, "image/png"), "image/png")
        assert opened(attached.data).size == (1000, 350)


def test_without_pillow_a_small_image_is_shown_and_of_a_large_one_is_said_why_not(tmp_path: Path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "PIL.py").write_text("raise ImportError")
    (tmp_path / "small.png").write_bytes(picture("png"))
    (tmp_path / "long.png").write_bytes(picture("png", (9000, 10)))
    code = """
import asyncio, sys
from pathlib import Path
from everloop.files.pictures import looked_at
for path in sys.argv[1:]:
    found = asyncio.run(looked_at(path, Path(path).read_bytes()))
    print(found.mime or f"{found.kind}: {found.why}")
"""
    ran = subprocess.run(
        [sys.executable, "-c", code, "small.png", "long.png"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "lib")},
    )
    assert (ran.stdout.splitlines(), ran.stderr) == (
        [
            "image/png",
            "image/png: it is too large, and Pillow, which makes it smaller, is not installed (extra [images])",
        ],
        "",
    )
