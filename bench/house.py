"""What a newcomer pays for between the functions, counted from the source.

    python bench/house.py CHECKOUT …          a table with a column for each, and the bar

A CHECKOUT is a folder with a `src/everloop` of any commit. Nothing of it is run.

    --names       the class names that stand for several things
    --edges       which place imports which
    --ports       the largest ports: methods of their own, and with inherited ones
"""

import argparse
import ast
import gc
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

ROOMS = {
    "errors", "core", "ports", "readings", "runtime", "net", "providers", "tools", "memory", "store", "bus", "files",
    "channels", "gateway", "testing", "telemetry", "moving", "backup",
}  # fmt: skip
EVENTS = {  # when they were told apart by their names
    "taken", "thinking_started", "stream_start", "stream_chunk", "stream_end", "metrics", "compacting", "compacted",
    "tool_call", "tool_output", "tool_result", "approval_asked", "command", "warning", "thinking_finished", "answer",
}  # fmt: skip


_METHOD = ast.FunctionDef | ast.AsyncFunctionDef


class House:
    """The source of a checkout."""

    def __init__(self, checkout: Path) -> None:
        self.package = checkout / "src" / "everloop"
        self.trees = _parsed(sorted(self.package.rglob("*.py")))

    def place(self, file: Path) -> str:
        """The room, or the file or folder above the rooms, that it stands in."""
        return file.relative_to(self.package).parts[0].removesuffix(".py")

    @cached_property
    def edges(self) -> set[tuple[str, str]]:
        """From a room, or a file or folder above the rooms, to another that it imports, each pair once."""
        places = {self.place(file) for file in self.trees}
        found = set()
        for file, tree in self.trees.items():
            for name in self._imported(file, tree):
                target = name if name in places else "__init__"
                if target != self.place(file):
                    found.add((self.place(file), target))
        return found

    def _imported(self, file: Path, tree: ast.Module) -> Iterator[str]:
        above = ("everloop", *file.relative_to(self.package).parent.parts)
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom):
                continue
            base = [*above[: len(above) - node.level + 1]] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            if module == "everloop":
                yield from (alias.name for alias in node.names)
            elif module.startswith("everloop."):
                yield module.split(".")[1]

    @property
    def edges_above(self) -> int:
        return sum(source not in ROOMS for source, _ in self.edges)

    @cached_property
    def classes(self) -> dict[str, list[str]]:
        """Where each name of a class is used."""
        found: dict[str, list[str]] = defaultdict(list)
        for file, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(f"{file.relative_to(self.package)}:{node.lineno}")
        return found

    @cached_property
    def ports(self) -> dict[str, tuple[int, int]]:
        """The Protocols of the rooms: how many methods they have of their own, and with those that they inherit."""
        trees = [tree for file, tree in self.trees.items() if self.place(file) in ROOMS]
        nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        bases = {node.name: [ast.unparse(base) for base in node.bases] for node in nodes}
        own = {node.name: sum(isinstance(each, _METHOD) for each in node.body) for node in nodes}

        def every(name: str) -> int:
            return own.get(name, 0) + sum(map(every, bases.get(name, ())))

        return {name: (own[name], every(name)) for name, above in bases.items() if "Protocol" in above}

    def used(self, times: Callable[[int], bool]) -> int:
        return sum(times(len(places)) for places in self.classes.values())

    def slots(self) -> int:
        """What a Thread holds."""
        tree = self.trees[self.package / "core" / "thread.py"]
        thread = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == "Thread")
        return len(
            {
                node.attr
                for node in ast.walk(thread)
                if isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and isinstance(node.value, ast.Name)
                and node.value.id == "self"
            }
        )

    def lines(self, room: str) -> int:
        return sum(len(file.read_bytes().splitlines()) for file in self.trees if self.place(file) == room)

    def event_comparisons(self) -> int:
        """Each name of an event that something's `name` is compared with."""
        return sum(_compared(node) for tree in self.trees.values() for node in ast.walk(tree))

    @cached_property
    def matches(self) -> dict[str, list[bool]]:
        """By files, for each match over the entries of a log: whether it ends in assert_never."""
        return self._matches_over("core/log.py", "_Entry")

    @cached_property
    def event_matches(self) -> dict[str, list[bool]]:
        """The same over what clients are shown."""
        return self._matches_over("ports/events.py", "_Event")

    def _matches_over(self, file_of_kinds: str, base_of_kinds: str) -> dict[str, list[bool]]:
        tree = self.trees.get(self.package / file_of_kinds, ast.Module([], []))
        kinds = {
            node.name
            for node in tree.body
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == base_of_kinds for base in node.bases)
        }
        found: dict[str, list[bool]] = defaultdict(list)
        for file, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.Match) and _classes_in(node) & kinds:
                    found[file.relative_to(self.package).as_posix()].append(_is_closed(node))
        return dict(found)


def _parsed(files: list[Path]) -> dict[Path, ast.Module]:
    """Without the collector, which would look through a million nodes again and again and find none to be garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return {file: ast.parse(file.read_bytes()) for file in files}
    finally:
        if was_on:
            gc.enable()


def _compared(node: ast.AST) -> int:
    match node:
        case ast.Compare(left=ast.Attribute(attr="name"), comparators=compared):
            return _names_in(compared)
        case ast.Match(subject=subject, cases=cases) if "name" in ast.unparse(subject):
            return _names_in([case.pattern for case in cases])
    return 0


def _names_in(nodes: list[ast.AST]) -> int:
    constants = [each for node in nodes for each in ast.walk(node) if isinstance(each, ast.Constant)]
    return sum(each.value in EVENTS for each in constants if isinstance(each.value, str))


def _classes_in(node: ast.Match) -> set[str]:
    patterns = [each for case in node.cases for each in ast.walk(case.pattern)]
    return {ast.unparse(each.cls).rpartition(".")[2] for each in patterns if isinstance(each, ast.MatchClass)}


def _is_closed(node: ast.Match) -> bool:
    return "assert_never" in ast.unparse(node.cases[-1])


ROWS: dict[str, tuple[str, Callable[[House], object]]] = {
    "import edges above the rooms": ("≤ 45", lambda house: house.edges_above),
    "import edges between all places": ("", lambda house: len(house.edges)),
    "class names for two things": ("≤ 15", lambda house: house.used(lambda times: times == 2)),
    "class names for three or more": ("0", lambda house: house.used(lambda times: times > 2)),
    "slots of Thread": ("≤ 30", House.slots),
    "methods of the largest port, its own": ("≤ 10", lambda house: max(own for own, _ in house.ports.values())),
    "the same with what it inherits": ("", lambda house: max(every for _, every in house.ports.values())),
    "lines of core": ("≤ 3,000", lambda house: f"{house.lines('core'):,}"),
    "comparisons with an event's name": ("0", House.event_comparisons),
    "matches over entries": ("", lambda house: sum(map(len, house.matches.values()))),
    "of these, ending in assert_never": ("all", lambda house: sum(map(sum, house.matches.values()))),
    "matches over events": ("", lambda house: sum(map(len, house.event_matches.values()))),
    "of those, ending in assert_never": ("all", lambda house: sum(map(sum, house.event_matches.values()))),
    "files, lines": ("", lambda house: f"{len(house.trees)}, {sum(map(house.lines, _places(house))):,}"),
}


def _places(house: House) -> set[str]:
    return {house.place(file) for file in house.trees}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("names", "edges", "ports"):
        parser.add_argument(f"--{name}", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("checkouts", type=Path, nargs="+")
    wanted = parser.parse_args()
    houses = [House(checkout.resolve()) for checkout in wanted.checkouts]
    last = houses[-1]
    if wanted.names:
        for name, places in sorted(last.classes.items(), key=lambda each: (-len(each[1]), each[0])):
            if len(places) > 1:
                print(name, *places)
    elif wanted.edges:
        for place, targets in Counter(place for place, _ in last.edges).most_common():
            print(place, targets, *sorted(target for source, target in last.edges if source == place))
    elif wanted.ports:
        for port, methods in sorted(last.ports.items(), key=lambda each: -each[1][0])[:12]:
            print(port, *methods)
    else:
        print("| |", *(f" {checkout.resolve().name} |" for checkout in wanted.checkouts), " bar |", sep="")
        print("|---" * (len(houses) + 2), "|", sep="")
        for name, (bar, count) in ROWS.items():
            print("|", " | ".join([name, *(str(count(house)) for house in houses), bar]), "|")


if __name__ == "__main__":
    main()
