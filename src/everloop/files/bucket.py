"""Files in a bucket of S3, laid out as in a folder: `<prefix>/<owner>/<aa>/<sha256>`, written once and never changed.

An upload is written to this machine's disk first: where it belongs is known by its hash, which is known at its end.
What is put again after a while is written again, so that its time says so: what nothing names is removed some time
after that.
"""

import errno
import math
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import S3Store

from ..errors import StoreFull
from ..ports import KeptFile
from .draft import HashedDraft, finish
from .names import LEAST, digits_in, folder_of, is_digest, ref_of, the_one

CHUNK = 5 << 20  # bytes of a part of an upload, the smallest there may be: they go one after the other
PAGE = 1000
FRESH = timedelta(minutes=10)  # for so long what is there need not be written again; nothing younger is ever removed
COUNTED = 30.0  # seconds for which the size of all that someone has is known


def connect(bucket: str, prefix: str, **given: str) -> S3Store:
    """`given`: endpoint, region, access_key_id, secret_access_key, session_token; what is left out, the machine's
    environment says."""
    plain = given.get("endpoint", "").startswith("http://")
    retries: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
    options: Any = {"timeout": "60s", "connect_timeout": "5s", "allow_http": plain}
    config: Any = given
    return S3Store(bucket, prefix=prefix or None, config=config, client_options=options, retry_config=retries)


class Bucket:
    """The ports Files and FileShelves. `drafts` is a folder of this machine."""

    def __init__(self, store: S3Store, drafts: Path, counted_for: float = COUNTED, fresh: timedelta = FRESH) -> None:
        self._store = store
        self._fresh = fresh
        self._drafts = drafts
        self._counted_for = counted_for
        self._sizes: dict[str, tuple[float, int]] = {}  # when it was counted, and how much it was

    async def put(self, owner: str, content: bytes, name: str) -> str:
        digest = sha256(content).hexdigest()
        with _storing(name):
            if not await self._is_there(owner, digest, len(content)):
                await obstore.put_async(self._store, _place(owner, digest), content, use_multipart=False)
                self._count(owner, len(content))
        return ref_of(digest)

    async def keep(self, owner: str, pieces: AsyncIterable[bytes], name: str) -> KeptFile:
        self._drafts.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = HashedDraft(self._drafts / f"upload-{secrets.token_hex(8)}")
        try:
            with _storing(name):
                async for piece in pieces:
                    await finish(partial(draft.write, piece))
                if not await self._is_there(owner, draft.digest, draft.size):
                    place = _place(owner, draft.digest)
                    await obstore.put_async(self._store, place, draft.path, chunk_size=CHUNK, max_concurrency=1)
                    self._count(owner, draft.size)
        finally:
            draft.close()
        return KeptFile(owner, ref_of(draft.digest), draft.size, time.time())

    async def get(self, owner: str, ref: str) -> bytes:
        digest = await self._whole(owner, ref)
        with _reading(ref):
            found = await obstore.get_async(self._store, _place(owner, digest))
            content = bytes(await found.bytes_async())
        if sha256(content).hexdigest() != digest:
            raise OSError(errno.EIO, "the file is damaged", ref)
        return content

    @asynccontextmanager
    async def open(self, owner: str, ref: str) -> "AsyncGenerator[BucketFile]":
        digest = await self._whole(owner, ref)
        with _reading(ref):
            meta = await obstore.head_async(self._store, _place(owner, digest))
        yield BucketFile(self._store, _place(owner, digest), meta["size"], meta["last_modified"].timestamp())

    async def used(self, owner: str) -> int:
        at, size = self._sizes.get(owner, (0.0, 0))
        if time.monotonic() - at >= self._counted_for:
            with _reading(owner):
                size = sum([max(file.size, LEAST) async for file in self._listed(folder_of(owner))])
            self._sizes[owner] = time.monotonic(), size
        return size

    async def files(self) -> list[KeptFile]:
        with _reading("the bucket"):
            found = [file async for file in self._listed("")]
        return sorted(found, key=lambda file: (-file.size, file.ref, file.owner))

    async def beginning(self, digits: Collection[str]) -> list[KeptFile]:
        wanted = tuple(f"file:{each}" for each in digits)
        with _reading("the bucket"):
            owners = await obstore.list_with_delimiter_async(self._store)
            folders = [f"{owner}/{part}" for owner in owners["common_prefixes"] for part in {d[:2] for d in digits}]
            found = [file for folder in folders async for file in self._listed(folder)]
        return [file for file in found if file.ref.startswith(wanted)]

    async def remove(self, files: Iterable[KeptFile], before: float) -> AsyncIterator[KeptFile]:
        """Between the look and the removal there is a moment in which another process may find the file and not write
        it again; only what was written within the last minutes is found so, and that is never removed."""
        for file in files:
            digest = file.ref.removeprefix("file:")
            place = f"{file.owner}/{digest[:2]}/{digest}"
            try:
                with _reading(file.ref):
                    meta = await obstore.head_async(self._store, place)
                    if not self._is_old(meta["last_modified"], before):
                        continue
                    await obstore.delete_async(self._store, place)
            except FileNotFoundError:
                continue
            self._sizes.clear()
            yield file

    async def _is_there(self, owner: str, digest: str, size: int) -> bool:
        try:
            meta = await obstore.head_async(self._store, _place(owner, digest))
        except (NotFoundError, FileNotFoundError):
            return False
        fresh: bool = datetime.now(UTC) - meta["last_modified"] < self._fresh
        return meta["size"] == size and fresh

    def _is_old(self, changed: datetime, before: float) -> bool:
        if before == math.inf:  # somebody wants it gone
            return True
        return changed.timestamp() < before and datetime.now(UTC) - changed >= self._fresh

    def _count(self, owner: str, size: int) -> None:
        if owner in self._sizes:
            at, known = self._sizes[owner]
            self._sizes[owner] = at, known + max(size, LEAST)

    async def _whole(self, owner: str, ref: str) -> str:
        digits = digits_in(ref)
        if len(digits) == 64:
            return digits
        with _reading(ref):
            listed = [file.ref.removeprefix("file:") async for file in self._listed(f"{folder_of(owner)}/{digits[:2]}")]
        return the_one(digits, [each for each in listed if each.startswith(digits)])

    async def _listed(self, folder: str) -> AsyncIterator[KeptFile]:
        async for page in obstore.list(self._store, f"{folder}/" if folder else None, chunk_size=PAGE):
            for meta in page:
                owner, _, rest = meta["path"].partition("/")
                digest = rest.rpartition("/")[2]
                if is_digest(digest):
                    yield KeptFile(owner, ref_of(digest), meta["size"], meta["last_modified"].timestamp())


class BucketFile:
    """The OpenFile port."""

    def __init__(self, store: S3Store, place: str, size: int, changed: float) -> None:
        self._store = store
        self._place = place
        self.size = size
        self.changed = changed
        self.tag = place.rpartition("/")[2]

    async def read(self, at: int, most: int) -> bytes:
        length = min(most, self.size - at)
        if length <= 0:
            return b""
        with _reading(self._place):
            return bytes(await obstore.get_range_async(self._store, self._place, start=at, length=length))


def _place(owner: str, digest: str) -> str:
    return f"{folder_of(owner)}/{digest[:2]}/{digest}"


@contextmanager
def _storing(name: str) -> Iterator[None]:
    try:
        yield
    except BaseError as error:
        raise StoreFull(f"{name or 'A file'} cannot be kept in the bucket ({_reason(error)})") from error


@contextmanager
def _reading(what: str) -> Iterator[None]:
    try:
        yield
    except (NotFoundError, FileNotFoundError) as error:
        raise FileNotFoundError(errno.ENOENT, "no such file of this owner", what) from error
    except BaseError as error:
        raise OSError(errno.EIO, f"the bucket cannot be read: {_reason(error)}", what) from error


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
