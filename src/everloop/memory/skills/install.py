"""Installing a skill: from a folder, an archive or a repository into a folder of the home, known by a hash.

Nothing of a skill is ever run for it. It is put in its place in one step, or not at all.
"""

import os
import secrets
import shutil
import stat
import time
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from ...errors import HomeError, MailRefused
from ...ports.skills import SkillReview
from .review import asked_for, warnings_of
from .skill import FILE, Skill, is_name, parse
from .unpack import ARCHIVE, DEEPEST, ENTRIES, LARGEST, UNPACKED, SkillContent, Tree, checked_path, unpacked

ALL_BYTES, ALL_FILES = 200_000_000, 20_000  # of what one person has installed
_SKIPPED = {".git", ".hg", ".svn", "__pycache__", ".DS_Store", "__MACOSX"}


class SkillPin(Struct, frozen=True):
    """What an installed skill is known by. `pin` is `sha256:…` of its archive, `git:…` of its commit, or `tree:…` of
    its files; `tree` is always the last."""

    source: str
    pin: str
    tree: str
    at: float = 0.0
    by: str = ""


class FetchedSkill(Struct, frozen=True):
    """A skill that was fetched and is not installed yet."""

    skill: Skill
    tree: Tree
    pin: SkillPin


def tree_hash(tree: Tree) -> str:
    """Of all its files: their paths, what they hold, and which can be run."""
    files = sorted(tree.items())
    lines = [f"{path}\0{int(file.executable)}\0{sha256(file.content).hexdigest()}" for path, file in files]
    return sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def from_archive(data: bytes, source: str, path: str = "", pin: str = "") -> FetchedSkill:
    """Raises MailRefused."""
    return _fetched(unpacked(data), source, path, pin or f"sha256:{sha256(data).hexdigest()}")


def from_file(file: Path, path: str = "") -> FetchedSkill:
    """Raises MailRefused."""
    try:
        with open(file, "rb") as opened:
            data = opened.read(ARCHIVE + 1)
    except OSError as error:
        raise MailRefused(f"{file} cannot be read ({error.strerror})") from error
    return from_archive(data, str(file), path)


def from_folder(folder: Path, path: str = "") -> FetchedSkill:
    """Raises MailRefused."""
    tree: Tree = {}
    try:
        _gather(folder, "", tree, [UNPACKED])
    except OSError as error:
        raise MailRefused(f"{error.filename or folder} cannot be read ({error.strerror})") from error
    return _fetched(tree, str(folder), path, "", folder.resolve().name)


def _gather(folder: Path, above: str, tree: Tree, room: list[int]) -> None:
    with os.scandir(folder) as found:
        entries = sorted((each for each in found if each.name not in _SKIPPED), key=lambda each: each.name)
    for entry in entries:
        path, mode = checked_path(f"{above}{entry.name}"), entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode) and path.count("/") < DEEPEST:
            _gather(Path(entry.path), f"{path}/", tree, room)
            continue
        if not stat.S_ISREG(mode):
            raise MailRefused(f"{path!r} is a link or a device; a skill holds plain files")
        fd = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            content = file.read(LARGEST + 1)
        room[0] -= len(content)
        if len(content) > LARGEST or room[0] < 0 or len(tree) >= ENTRIES:
            raise MailRefused(f"{folder} holds more, or larger files, than a skill has; name the skill's own folder")
        tree[path] = SkillContent(content, bool(mode & 0o100))


def _fetched(tree: Tree, source: str, path: str, pin: str, called: str = "") -> FetchedSkill:
    """The skill in a tree: at `path`, or where the one SKILL.md is."""
    kept = {name: file for name, file in tree.items() if not _SKIPPED.intersection(name.split("/"))}
    root = path.strip("/") if path else _root(kept)
    inner = {name[len(root) + 1 :] if root else name: file for name, file in kept.items() if _is_in(name, root)}
    if FILE not in inner:
        raise MailRefused(f"there is no {FILE} in {path}" if path else f"there is no {FILE} in it")
    name = _name_in(inner[FILE].content) or root.rpartition("/")[2] or called
    skill = parse(name, inner[FILE].content)
    if skill.wrong:
        raise MailRefused(f"{skill.name[:64] or 'it'} cannot be installed: {skill.wrong}")
    hashed = tree_hash(inner)
    return FetchedSkill(skill, inner, SkillPin(source, pin or f"tree:{hashed}", hashed, time.time()))


def _is_in(name: str, root: str) -> bool:
    return not root or name.startswith(f"{root}/")


def _root(tree: Tree) -> str:
    """The folder of the one skill. Raises MailRefused where there are several, or none."""
    if FILE in tree:
        return ""
    roots = sorted(name.removesuffix(f"/{FILE}") for name in tree if name.endswith(f"/{FILE}"))
    if not roots:
        raise MailRefused(f"there is no {FILE} in it")
    if len(roots) > 1:
        shown = ", ".join(roots[:10])
        raise MailRefused(f"there are {len(roots)} skills in it: name the folder of one with --path ({shown})")
    return roots[0]


def _name_in(content: bytes) -> str:
    """What the frontmatter says, if it says anything; `parse` tells what is wrong with the rest."""
    from .frontmatter import FrontmatterError, read, split

    try:
        head, _ = split(content.decode("utf-8", "replace"))
        name = read(head).get("name") if head else ""
    except FrontmatterError:
        return ""
    return name if isinstance(name, str) and is_name(name) else ""


class InstalledSkills:
    """The skills that somebody has installed: a folder for each, and beside it what it is known by."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def pin(self, name: str) -> SkillPin | None:
        try:
            return msgspec.json.decode((self._folder / f".{name}.json").read_bytes(), type=SkillPin)
        except (OSError, msgspec.DecodeError):
            return None

    def files(self, name: str) -> Tree:
        """What lies there now. Raises MailRefused."""
        folder = self._place(name)
        if not folder.is_dir() or folder.is_symlink():
            raise MailRefused(f"there is no installed skill {name!r}")
        tree: Tree = {}
        try:
            _gather(folder, "", tree, [UNPACKED])
        except OSError as error:
            raise MailRefused(f"{error.filename} cannot be read ({error.strerror})") from error
        return tree

    def has(self, name: str) -> bool:
        return self._place(name).is_dir()

    def is_changed(self, name: str) -> bool:
        """Whether its files are not those that were installed."""
        pin = self.pin(name)
        return pin is not None and tree_hash(self.files(name)) != pin.tree

    def review(self, fetched: FetchedSkill) -> SkillReview:
        name, has = fetched.skill.name, self.has(fetched.skill.name)
        return SkillReview(
            name=name,
            description=fetched.skill.description,
            pin=fetched.pin.pin,
            files=len(fetched.tree),
            size=sum(len(file.content) for file in fetched.tree.values()),
            asks=asked_for(fetched.skill, fetched.tree),
            warnings=warnings_of(fetched.tree),
            changes=changes(self.files(name), fetched.tree) if has else (),
            installed=has,
        )

    def put(self, fetched: FetchedSkill, by: str, *, replace: bool) -> str:
        """Put it in its place; says what was done. Raises MailRefused, HomeError."""
        name, pin = fetched.skill.name, msgspec.structs.replace(fetched.pin, by=by)
        if self.has(name):
            before = self.pin(name)
            if before and before.tree == pin.tree and not self.is_changed(name):
                return f"{name} is installed already, as {pin.pin}."
            if not replace:
                known = before.pin if before else "something that was put there by hand"
                raise MailRefused(
                    f"{name} is installed as {known}, and this is {pin.pin}: look at what differs, then replace it"
                )
        self._check_room(fetched)
        try:
            self._put(name, fetched.tree, pin)
        except OSError as error:
            raise HomeError(f"{error.filename or self._folder} cannot be written ({error.strerror})") from error
        return f"{name} is installed, known by {pin.pin}. New conversations know it."

    def _check_room(self, fetched: FetchedSkill) -> None:
        """One person's skills do not fill the disk of all. Raises MailRefused."""
        files = [Path(above, name) for above, _, names in os.walk(self._folder) for name in names]
        size = sum(path.lstat().st_size for path in files) + sum(len(file.content) for file in fetched.tree.values())
        if size > ALL_BYTES or len(files) > ALL_FILES:
            raise MailRefused(
                f"all installed skills together have at most {ALL_BYTES:,} bytes in {ALL_FILES:,} files; remove one"
            )

    def remove(self, name: str) -> str:
        """Raises MailRefused, HomeError."""
        if not is_name(name) or not self.has(name) or self._place(name).is_symlink():
            raise MailRefused(f"there is no installed skill {name[:64]!r}")
        try:
            aside = self._folder / f".old-{secrets.token_hex(4)}"
            os.rename(self._place(name), aside)
            (self._folder / f".{name}.json").unlink(missing_ok=True)
            shutil.rmtree(aside)
        except OSError as error:
            raise HomeError(f"{error.filename} cannot be removed ({error.strerror})") from error
        return f"{name} is removed."

    def _place(self, name: str) -> Path:
        if not is_name(name):
            raise MailRefused(f"there is no skill {name[:64]!r}")
        return self._folder / name

    def _put(self, name: str, tree: Tree, pin: SkillPin) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._folder / f".new-{secrets.token_hex(4)}"
        draft.mkdir(mode=0o755)
        try:
            for path, file in tree.items():
                _write(draft / path, file)
            note = self._folder / f".{name}.json"
            (draft.with_suffix(".json")).write_bytes(msgspec.json.encode(pin))
            aside = self._folder / f".old-{secrets.token_hex(4)}"
            if self._place(name).exists():
                os.rename(self._place(name), aside)
            os.rename(draft, self._place(name))
            os.rename(draft.with_suffix(".json"), note)
            shutil.rmtree(aside, ignore_errors=True)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            draft.with_suffix(".json").unlink(missing_ok=True)


def _write(path: Path, file: SkillContent) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o755 if file.executable else 0o644)
    with open(fd, "wb") as opened:
        opened.write(file.content)


def changes(before: Tree, after: Tree) -> list[str]:
    """The files in which two differ."""
    gone = [f"gone: {path}" for path in before if path not in after]
    new = [f"new: {path}" for path in after if path not in before]
    other = [f"changed: {path}" for path in after if path in before and before[path] != after[path]]
    return [*other, *new, *gone]
