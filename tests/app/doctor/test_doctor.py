"""How the doctor goes about it: within limits, mending only what is safe, and completely written down."""

import asyncio
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from everloop.app.doctor import CHECKS, GROUPS, _looked, mend_all, patient_of
from everloop.app.doctor.check import Check, Patient, fine
from everloop.app.doctor.configuration import meant_by
from everloop.app.doctor.sandbox import how_to_allow_namespaces
from everloop.errors import StoreError
from everloop.net.trusted import TrustedHttp
from everloop.ports.doctor import Diagnosis, MakeFolder, RemoveStale, SetMode
from everloop.store.sqlite import SqliteStore
from tests.app.doctor.home import DoctoredHome, grave, process_with

LESS = "-dac_override,-dac_read_search"
DOCS = Path(__file__).parents[3] / "docs" / "doctor.md"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def nobody(home: Path) -> Patient:
    return Patient(home=home, environ={}, http=TrustedHttp)


async def looked(look, needs="", **patient) -> Diagnosis:
    (found,) = await _looked(Check("x", "x", look, needs, 0.01), nobody(Path("/nowhere")), **patient)
    return found


class TestEachCheck:
    async def test_one_that_does_not_end_is_told_and_left(self):
        async def endless(patient: Patient) -> list[Diagnosis]:
            await asyncio.Event().wait()
            return fine("never")

        found = await looked(endless)
        assert (found.verdict, found.what) == ("broken", "this has not ended within 0.01 s")

    async def test_one_that_fails_keeps_no_other_from_being_told(self):
        async def wrong(patient: Patient) -> list[Diagnosis]:
            raise ValueError("oh")

        async def away(patient: Patient) -> list[Diagnosis]:
            raise StoreError("it is away")

        assert (await looked(wrong)).what == "this could not be looked at (ValueError: oh)"
        assert (await looked(away)).what == "this could not be looked at: it is away"

    async def test_one_whose_ground_is_missing_is_skipped(self):
        async def never(patient: Patient) -> list[Diagnosis]:
            raise AssertionError

        assert (await looked(never, "settings")).verdict == "skipped"
        assert (await looked(never, "store")).verdict == "skipped"

    def test_each_has_a_name_of_its_own_and_stands_in_the_documentation(self):
        rows = re.findall(r"^\| `([a-z-]+)` \| (.+?) \|", DOCS.read_text(), re.MULTILINE)
        assert rows == [(check.name, check.about) for _, check in CHECKS]
        assert len(CHECKS) == len({check.name for _, check in CHECKS})
        assert all(f"### {group.capitalize()}" in DOCS.read_text() for group in GROUPS)


@pytest.mark.parametrize(
    "variable, meant",
    [
        ("EVERLOOP_AGENTS_DEFAULTS_MODEL", "EVERLOOP_AGENTS__DEFAULTS__MODEL"),
        ("EVERLOOP_GATEWAY_PROT", "EVERLOOP_GATEWAY__PORT"),
        ("EVERLOOP_FALLBACKS", "EVERLOOP_AGENTS__DEFAULTS__FALLBACKS"),
        ("EVERLOOP_WORKSPACE", ""),
        ("EVERLOOP_SOMETHING_ELSE", ""),
    ],
)
def test_a_variable_that_is_nearly_a_setting_is_recognised(variable: str, meant: str):
    assert meant_by(variable) == meant


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "1\n", "kernel.apparmor_restrict_unprivileged_userns=0"),
        ("user/max_user_namespaces", "0\n", "user.max_user_namespaces=15000"),
        ("kernel/unprivileged_userns_clone", "1\n", ""),
    ],
)
def test_what_of_the_kernel_forbids_namespaces_is_named(tmp_path: Path, name: str, text: str, told: str):
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(text)
    assert how_to_allow_namespaces(tmp_path) == (f"Allow user namespaces: sudo sysctl {told}. " if told else "")


class TestLookingIntoTheStore:
    async def test_what_would_write_is_refused(self, home: DoctoredHome):
        async with patient_of(home.path) as patient:
            with pytest.raises(StoreError):
                await patient.house.store.set_limit("owner", "day", None)

    async def test_what_a_running_process_has_just_written_is_seen(self, home: DoctoredHome):
        store = await SqliteStore.connect(home.path)
        try:
            before = home.listing()
            await store.keep_secret("owner", "secret:new", b"\x01box")
            async with patient_of(home.path) as patient:
                assert "secret:new" in await patient.house.vault.names()
            assert set(home.listing()) == set(before)
        finally:
            await store.close()


class TestMending:
    async def test_what_is_safe_is_mended_and_nothing_else(self, home: DoctoredHome):
        home.path.chmod(0o755)
        for path in (home.config, home.database, home.path / "vault.key"):
            path.chmod(0o644)
        (home.workspace / "memory" / "MEMORY.md").unlink()
        (home.workspace / "memory").rmdir()
        home.workspace.rmdir()
        async with process_with(home.path):
            alive = {path.name for path in (home.path / "run").iterdir()}
            (home.path / "run" / "999999-1-abcd").touch()
            mended = mend_all(await home.examine(), home.path)
            assert {path.name for path in (home.path / "run").iterdir()} == alive
            assert grave(await home.examine()) == []
        assert {each.check for each in mended} == {"file-modes", "vault-file", "workspace", "running"}
        assert [each for each in mended if each.failed] == []
        assert [mode_of(path) for path in (home.path, home.config, home.database)] == [0o700, 0o600, 0o600]

    def test_what_tells_the_next_start_to_look_through_a_damaged_file_stays(self, tmp_path: Path):
        left = tmp_path / "left"
        left.touch()
        stale = Diagnosis("advice", "x", "y", (RemoveStale(str(left)),), "running")
        assert mend_all([Diagnosis("broken", "damaged", check="store-pages"), stale], tmp_path) == []
        assert left.exists()

    def test_a_process_that_lives_keeps_its_file_and_a_link_keeps_its_end(self, tmp_path: Path):
        import fcntl

        held, linked, target = tmp_path / "held", tmp_path / "linked", tmp_path / "target"
        held.touch()
        target.touch(0o644)
        linked.symlink_to(target)
        with held.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            mends = (RemoveStale(str(held)), SetMode(str(linked), 0o600))
            done = mend_all([Diagnosis("advice", "x", "y", mends, "c")], tmp_path)
        assert (held.exists(), mode_of(target)) == (True, 0o644)
        assert [bool(each.failed) for each in done] == [False, True]

    @pytest.mark.parametrize("linked", [True, False])
    async def test_nothing_is_mended_behind_a_folder_that_is_a_link(
        self, home: DoctoredHome, tmp_path: Path, linked: bool
    ):
        outside = tmp_path / "outside"
        outside.mkdir()
        for name, left in (("logs", "everloop.log.erasing"), ("run", "999999-1-abcd")):
            folder = outside / name if linked else home.path / name
            folder.mkdir(exist_ok=True)
            if linked:
                shutil.rmtree(home.path / name, ignore_errors=True)
                (home.path / name).symlink_to(folder)
            (folder / left).touch()
            os.utime(folder / left, (0, 0))
        mended = mend_all(await home.examine(), home.path)
        assert [(each.check, bool(each.failed)) for each in mended] == [("leftovers", linked), ("running", linked)]
        assert {path.name for path in outside.rglob("*.erasing")} == ({"everloop.log.erasing"} if linked else set())
        assert (outside / "run" / "999999-1-abcd").exists() == linked
        below = home.path / "logs" / "made"
        (made,) = mend_all([Diagnosis("advice", "x", "y", (MakeFolder(str(below)),), "workspace")], home.path)
        assert (bool(made.failed), below.exists()) == (linked, not linked)

    async def test_a_home_that_is_a_link_to_a_folder_of_ours_is_closed(self, home: DoctoredHome, tmp_path: Path):
        real = home.path.rename(tmp_path / "real")
        home.path.symlink_to(real)
        real.chmod(0o755)
        (closed,) = mend_all(await home.examine(), home.path)
        assert (closed.check, closed.failed, mode_of(real)) == ("file-modes", "", 0o700)

    def test_what_cannot_be_mended_is_told(self, tmp_path: Path):
        (tmp_path / "file").touch()
        (done,) = mend_all(
            [Diagnosis("advice", "x", "y", (MakeFolder(str(tmp_path / "file" / "under")),), "c")], tmp_path
        )
        assert done.failed


def run(
    home: Path, *arguments: str, before: str = "", wrap: tuple[str, ...] = (), command: str = "doctor"
) -> subprocess.CompletedProcess[str]:
    """`everloop doctor` as people run it; `before` is Python that comes first."""
    kept = {name: os.environ[name] for name in ("PATH",)}
    code = f"{before}\nimport sys\nfrom everloop.cli import run\nsys.exit(run(['{command}', *sys.argv[1:]]))"
    return subprocess.run(
        [*wrap, sys.executable, "-c", code, *arguments],
        env={**kept, "EVERLOOP_HOME": str(home), "HOME": str(home.parent)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def as_one_of_many(*more: str) -> tuple[str, ...]:
    """What comes before a command so that root may not read and write everything, nor do `more`."""
    if os.getuid():
        return ()
    if not shutil.which("setpriv"):
        pytest.skip("root cannot be kept from reading without setpriv")
    less = ",".join((LESS, *(f"-{name}" for name in more)))
    return ("setpriv", f"--bounding-set={less}", f"--inh-caps={less}")


def may_mount() -> bool:
    return subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0


class TestTheCommand:
    async def test_a_home_that_is_well_ends_with_0_and_says_so(self, home: DoctoredHome):
        before = home.listing()
        ran = await asyncio.to_thread(run, home.path)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ran.stdout.startswith("All is well: ")
        assert home.listing() == before

    async def test_advice_alone_is_0_and_is_mended_when_asked(self, home: DoctoredHome):
        home.path.chmod(0o755)
        ran = await asyncio.to_thread(run, home.path)
        assert ran.returncode == 0
        assert "chmod 700" in ran.stdout
        assert mode_of(home.path) == 0o755
        fixed = await asyncio.to_thread(run, home.path, "--fix")
        assert fixed.returncode == 0
        assert "mended: " in fixed.stdout
        assert "All is well" in fixed.stdout
        assert mode_of(home.path) == 0o700

    async def test_what_is_broken_ends_with_1_also_as_json_and_without_a_traceback(self, home: DoctoredHome):
        home.write_config("[channels.webhook]\n")
        home.config.write_text(home.config.read_text() + "[nonsense]\n")
        ran = await asyncio.to_thread(run, home.path, "--json")
        told = json.loads(ran.stdout)
        assert (ran.returncode, ran.stderr, told["verdict"]) == (1, "", "broken")
        assert told["findings"][0]["check"] == "settings-file"
        assert "Traceback" not in ran.stdout

    async def test_an_extra_that_is_not_installed_is_named(self, home: DoctoredHome):
        home.write_config("[store]\nurl = 'postgresql://127.0.0.1:1/x'\n")
        blocked = "import sys\nsys.modules['asyncpg'] = None"
        ran = await asyncio.to_thread(run, home.path, "--json", before=blocked)
        found = {each["check"]: each for each in json.loads(ran.stdout)["findings"]}
        assert found["extras"]["todo"] == "pip install 'everloop[postgres]'"
        assert found["store"]["todo"] == "Install the extra: pip install 'everloop[postgres]'"

    async def test_a_port_that_is_roots_is_told_to_everybody_else(self, home: DoctoredHome):
        if int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 80:  # noqa: ASYNC240
            pytest.skip("on this machine everybody may listen at port 80")
        home.port = 80
        home.write_config()
        ran = await asyncio.to_thread(run, home.path, "--json", wrap=as_one_of_many("net_bind_service"))
        found = {each["check"]: each for each in json.loads(ran.stdout)["findings"]}
        assert found["gateway-listens"]["verdict"] == "broken"
        assert "may not listen at port 80" in found["gateway-listens"]["what"]
        assert "gateway.port" in found["gateway-listens"]["todo"]

    async def test_what_is_mine_and_shut_is_told_with_the_command_that_opens_it(self, home: DoctoredHome):
        (home.path / "logs").mkdir()
        (home.path / "logs" / "everloop.log").touch()
        shut = {
            "store": (home.database, 0o400, "chmod u+rw"),
            "vault-file": (home.path / "vault.key", 0, "chmod 600"),
            "memory-files": (home.workspace / "memory", 0, "chmod u+rwx"),
            "folders": (home.path / "logs" / "everloop.log", 0, "chmod u+rw"),
            "home": (home.path, 0o500, "chmod u+rwx"),
        }
        for path, mode, _ in shut.values():
            path.chmod(mode)
        try:
            ran = await asyncio.to_thread(run, home.path, "--json", wrap=as_one_of_many())
        finally:
            home.path.chmod(0o700)
            (home.workspace / "memory").chmod(0o700)
        found = {each["check"]: each for each in json.loads(ran.stdout)["findings"] if each["verdict"] == "broken"}
        assert {name: found[name]["todo"].split(",")[0] for name in shut if name in found} == {
            name: f"{opens} {path}" for name, (path, _, opens) in shut.items()
        }
        assert all(str(shut[name][0]) in found[name]["what"] for name in shut)

    async def test_a_home_that_is_anothers_is_told_in_sentences(self, home: DoctoredHome):
        wrap = as_one_of_many()
        if wrap:
            os.chown(home.path, 12345, 12345)
        else:
            home.path.chmod(0)
        try:
            ran = await asyncio.to_thread(run, home.path, "--json", wrap=wrap)
        finally:
            home.path.chmod(0o700)
        told = {each["check"] for each in json.loads(ran.stdout)["findings"] if each["verdict"] == "broken"}
        assert (ran.returncode, ran.stderr) == (1, "")
        assert {"settings-file", "home", "store"} <= told

    async def test_who_starts_on_a_full_disk_is_told_so(self, home: DoctoredHome, tmp_path: Path):
        (mounted := tmp_path / "mounted").mkdir()
        script = f"mount -t tmpfs -o size=2m,mode=700 none {mounted} && cp -a {home.path}/. {mounted} && "
        script += f'! cat /dev/zero 2>/dev/null > {mounted}/zeros && exec "$@"'
        if not may_mount():
            pytest.skip("this machine allows no user namespaces, in which a disk can be mounted")
        wrap = ("unshare", "-rm", "sh", "-c", script, "sh")
        ran = await asyncio.to_thread(run, mounted, wrap=wrap, command="sessions")
        told = f"everloop: the disk that holds {mounted}/everloop.db is full: make room and start again\n"
        assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", told)

    async def test_a_full_disk_of_the_workspace_is_found(self, home: DoctoredHome):
        if not may_mount():
            pytest.skip("this machine allows no user namespaces, in which a disk can be mounted")
        script = f'mount -t tmpfs -o size=64k,mode=700 none {home.workspace} && exec "$@"'
        ran = await asyncio.to_thread(run, home.path, "--json", wrap=("unshare", "-rm", "sh", "-c", script, "sh"))
        found = [each["what"] for each in json.loads(ran.stdout)["findings"] if each["check"] == "disk"]
        assert found[0].startswith(f"the disk of {home.workspace} has 0 MB left")

    async def test_a_full_disk_and_a_read_only_home_are_found(self, home: DoctoredHome, tmp_path: Path):
        mounted = tmp_path / "mounted"
        mounted.mkdir()
        script = f"mount -t tmpfs -o size=3m,nr_inodes=200,mode=700 none {mounted} && cp -a {home.path}/. {mounted} && "
        script += f'mount -o remount,ro {mounted} && exec "$@"'
        wrap = ("unshare", "-rm", "sh", "-c", script, "sh")
        if not may_mount():
            pytest.skip("this machine allows no user namespaces, in which a disk can be mounted")
        ran = await asyncio.to_thread(run, mounted, "--json", wrap=wrap)
        found = [each for each in json.loads(ran.stdout)["findings"] if each["verdict"] == "broken"]
        told = {(each["check"], each["what"].partition(str(mounted))[2]) for each in found}
        assert ("home", " is on a read-only file system") in told
        cures = {each["todo"] for each in found if each["check"] in ("folders", "store", "workspace", "memory-files")}
        assert cures == {"It is on a read-only file system: mount that for writing"}
        assert any(check == "disk" and "MB left" in what for check, what in told)
        assert any(check == "disk" and "inodes" in what for check, what in told)
