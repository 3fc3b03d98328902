"""One name, one thing: the classes of the package, counted as bench/house.py counts them."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from bench.house import House

CLASSES = cache(lambda: House(Path(__file__).parents[1]).classes)
SHARED = 15  # names that may stand for two things: those that users import, and Protocols beside what fulfils them


def names_for(times: int, classes: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The names of classes that stand for so many things, or more, and where."""
    return {name: places for name, places in classes.items() if len(places) >= times}


def test_no_class_name_stands_for_three_things():
    assert names_for(3, CLASSES()) == {}


def test_few_class_names_stand_for_two():
    shared = names_for(2, CLASSES())
    assert len(shared) <= SHARED, shared


def test_names_that_stand_for_several_things_are_seen(tmp_path: Path):
    for room, names in (("a", "Kept Found"), ("b", "Kept Found"), ("c", "Kept Lone")):
        file = tmp_path / "src" / "everloop" / room / "__init__.py"
        file.parent.mkdir(parents=True)
        file.write_text("".join(f"class {name}: ...\n" for name in names.split()))
    classes = House(tmp_path).classes
    everywhere = ["a/__init__.py:1", "b/__init__.py:1", "c/__init__.py:1"]
    assert names_for(3, classes) == {"Kept": everywhere}
    assert names_for(2, classes) == {"Kept": everywhere, "Found": ["a/__init__.py:2", "b/__init__.py:2"]}
