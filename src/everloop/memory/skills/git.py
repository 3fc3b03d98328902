"""A skill from a git repository: one commit is fetched, and what it holds is unpacked as any archive is.

git runs apart, with none of anybody's settings: no hooks, no submodules, no filters, no questions, and only over https,
ssh or from a folder that was named as one. Nothing is checked out.
"""

import asyncio
import os
import re
import signal
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from ...errors import MailRefused
from .unpack import ARCHIVE

SECONDS = 120.0
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]{0,199}")
_SCP = re.compile(r"(?:([A-Za-z0-9_][\w.-]*)@)([A-Za-z0-9][A-Za-z0-9.-]*):([^-/:][^:]*)")
_PASSED = (
    *("PATH", "SSH_AUTH_SOCK", "USER", "LOGNAME", "SSL_CERT_FILE", "GIT_SSL_CAINFO"),
    *("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"),
)
_BLOCKS = 204_800  # of 1024 bytes or 512, as shells count: no file becomes larger


class GitSource(Struct, frozen=True):
    """`ref` is a commit, a branch or a tag; "": where the repository points."""

    url: str
    ref: str = ""

    @property
    def is_pinned(self) -> bool:
        return _COMMIT.fullmatch(self.ref) is not None


def git_source(text: str) -> GitSource | None:
    """What a source says of a repository; None if it is none. Raises MailRefused for one that is not read."""
    text = text.removeprefix("git+")
    if scp := _SCP.fullmatch(text):
        path, _, ref = scp[3].partition("@")
        text = f"ssh://{scp[1]}@{scp[2]}/{path}{'@' + ref if ref else ''}"
    scheme = text.partition("://")[0].lower() if "://" in text else ""
    if not scheme:
        if "::" in text:
            raise MailRefused(f"{text[:100]!r}: repositories are read over https, ssh or from a folder (file://…)")
        return None
    if scheme not in ("https", "ssh", "file"):
        raise MailRefused(f"{scheme}:// is not read; repositories are read over https, ssh or from a folder (file://…)")
    head, at, ref = text.rpartition("@")
    if not at or "/" not in head.partition("://")[2]:  # an @ before the host is a user
        head, ref = text, ""
    return GitSource(_checked_url(head), _checked_ref(ref))


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, password = parts.hostname or "", parts.password
    except ValueError as error:
        raise MailRefused(f"{url[:100]!r} is no address") from error
    if password is not None or (parts.scheme == "https" and parts.username):
        raise MailRefused("put no password into the address: it would be kept; let git's ssh keys do it")
    if any(not letter.isprintable() or letter.isspace() for letter in url) or parts.query or parts.fragment:
        raise MailRefused(f"{url[:100]!r} is no address of a repository")
    if parts.scheme == "file" and (host or not parts.path.startswith("/")):
        raise MailRefused("a folder is named as file:///path/to/it")
    if parts.scheme != "file" and (not host or host.startswith("-") or (parts.username or "").startswith("-")):
        raise MailRefused(f"{url[:100]!r} is no address of a repository")
    return url


def _checked_ref(ref: str) -> str:
    if ref and (not _REF.fullmatch(ref) or ".." in ref):
        raise MailRefused(f"{ref[:60]!r} is no commit, branch or tag")
    return ref


async def fetched(source: GitSource) -> tuple[str, bytes]:
    """The commit, and what it holds as a tar file. Raises MailRefused."""
    with tempfile.TemporaryDirectory(prefix="everloop-skill-") as folder:
        git = _Git(Path(folder), source.url)
        await git.run("init", "-q", "--bare", "repository")
        try:
            await git.run("fetch", "-q", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", *git.of(source.ref))
            wanted = "FETCH_HEAD"
        except MailRefused:
            if not source.is_pinned:
                raise
            # Not every server gives a commit by its name: then all branches are fetched, and it is among them or not.
            await git.run("fetch", "-q", "--no-recurse-submodules", "--", source.url, "+refs/heads/*:refs/heads/*")
            wanted = source.ref
        commit = (await git.run("rev-parse", "--verify", "-q", f"{wanted}^{{commit}}")).decode().strip()
        if source.is_pinned and commit != source.ref:
            raise MailRefused(f"the repository gave {commit[:12]} in place of {source.ref[:12]}")
        return commit, await git.run("archive", "--format=tar", commit)


class _Git:
    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._url = url
        self._file = url.startswith("file:")

    def of(self, ref: str) -> tuple[str, str]:
        return self._url, ref or "HEAD"

    async def run(self, *words: str, most: int = ARCHIVE) -> bytes:
        where = () if words[0] == "init" else ("--git-dir", "repository")
        argv = ("/bin/sh", "-c", f'ulimit -f {_BLOCKS}; exec "$@"', "sh", "git", *where, *self._options(), *words)
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=self._folder,
                env=self._environment(os.environ),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise MailRefused(f"git cannot be started ({error.strerror})") from error
        try:
            async with asyncio.timeout(SECONDS):
                said, wrong = await asyncio.gather(_read(process.stdout, most), _read(process.stderr, 100_000))
                code = await process.wait()
        except TimeoutError as error:
            raise MailRefused(f"git has not ended within {SECONDS:.0f} seconds") from error
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if code == 127:
            raise MailRefused("git is not installed here; install it, or give a folder or an archive")
        if code:
            lines = [line for line in wrong.decode(errors="replace").split("\n") if line.strip()]
            raise MailRefused(f"git {words[0]} failed: {' '.join(lines[-2:])[:300] or f'exit code {code}'}")
        return said

    def _options(self) -> tuple[str, ...]:
        settings = {
            "core.hooksPath": "/dev/null",
            "core.fsmonitor": "false",
            "protocol.allow": "never",
            "protocol.https.allow": "always",
            "protocol.ssh.allow": "always",
            "protocol.file.allow": "always" if self._file else "never",
            "submodule.recurse": "false",
            "credential.helper": "",
            "http.followRedirects": "false",
            "gc.auto": "0",
            "fetch.fsckObjects": "true",
            "transfer.bundleURI": "false",
        }
        return tuple(word for key, value in settings.items() for word in ("-c", f"{key}={value}"))

    def _environment(self, outside: Mapping[str, str]) -> dict[str, str]:
        """Nobody's settings, and no way to ask. ssh finds the keys of whoever runs this by itself."""
        known = {name: outside[name] for name in _PASSED if name in outside}
        return {
            "PATH": os.defpath,
            **known,
            "HOME": str(self._folder),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "/bin/false",
            "SSH_ASKPASS": "/bin/false",
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=20",
            "GIT_ALLOW_PROTOCOL": "https:ssh:file" if self._file else "https:ssh",
            "GIT_LFS_SKIP_SMUDGE": "1",
        }


async def _read(stream: asyncio.StreamReader | None, most: int) -> bytes:
    assert stream is not None
    pieces, size = [], 0
    while piece := await stream.read(65_536):
        size += len(piece)
        if size > most:
            raise MailRefused(f"the repository holds more than {most:,} bytes")
        pieces.append(piece)
    return b"".join(pieces)
