"""The built-in embedder: what means the same lies close together, and it is loaded only for as long as it is needed."""

import asyncio
import subprocess
import sys

import pytest

from everloop.memory.built_in import MISSING, NAME, is_installed
from everloop.memory.minilm import MiniLM
from everloop.memory.scales import BUILT_IN, TEXTS, scale_of
from tests.store.conftest import cannot


@pytest.fixture
def model() -> MiniLM:
    if not is_installed():
        cannot(MISSING)
    return MiniLM(idle=0.05)


async def test_what_means_the_same_lies_closer_than_what_shares_words_and_vectors_have_length_one(model: MiniLM):
    made = await model.embed(["The cat sat on the mat.", "A kitten rested on the rug.", "The mat is on sale.", ""])
    cat, kitten, sale, empty = made.vectors
    assert (made.model, made.cost, len(cat), len(empty)) == (NAME, 0.0, 384, 384)
    assert _dot(cat, kitten) > _dot(cat, sale)
    assert _dot(cat, cat) == pytest.approx(1.0)


async def test_it_is_let_go_of_when_nobody_needs_it_and_comes_back_when_somebody_does(model: MiniLM):
    assert not model.is_loaded
    [first] = (await model.embed(["one"])).vectors
    assert model.is_loaded
    while model.is_loaded:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert (await model.embed(["one"])).vectors == [first]


async def test_its_scale_is_the_one_that_others_are_brought_to(model: MiniLM):
    found = scale_of((await model.embed(TEXTS)).vectors)
    assert (found.alike, found.apart) == (
        pytest.approx(BUILT_IN.alike, abs=0.01),
        pytest.approx(BUILT_IN.apart, abs=0.01),
    )


def test_an_open_house_without_facts_loads_neither_it_nor_what_it_needs():
    code = (
        "import asyncio, sys, tempfile, everloop\n"
        "from everloop.testing import Say, ScriptedModel\n"
        "async def main():\n"
        "    with tempfile.TemporaryDirectory() as home:\n"
        "        async with everloop.open(home, provider=ScriptedModel([Say('hi')])) as agent:\n"
        "            await agent.ask('hello')\n"
        "            await asyncio.sleep(0.1)\n"
        "asyncio.run(main())\n"
        "print([name for name in ('onnxruntime', 'numpy') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def _dot(one: list[float], other: list[float]) -> float:
    return sum(x * y for x, y in zip(one, other, strict=True))
