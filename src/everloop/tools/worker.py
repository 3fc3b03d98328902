"""Work that a stranger's pattern or document could make endless, done in a process of its own.

Python cannot stop a search or a parser that has begun, and while one runs nothing else does. A process can be ended,
and its memory and time can be limited. It is given no environment, no files but the descriptors that it is handed, and
reads its request from its standard input.
"""

import asyncio
import os
import sys
from collections.abc import Sequence

from msgspec import Struct

from ..errors import ToolError

# Paths are handed over: without `site`, and away from the working folder, a process begins in 20 ms. What imports
# numpy if it is there would spend its memory on that.
_BEGIN = """
import resource, sys
memory, seconds, files, module, *sys.path = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
if sys.platform == "linux":
    resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(files), int(files)))
sys.modules["numpy"] = None
sys.dont_write_bytecode = True
from importlib import import_module
import_module(module).main()
"""
_MEMORY = 1 << 30
_CHUNK = 256 * 1024


class WorkerResult(Struct, frozen=True):
    """What came of it. `late` says that it was ended; then `out` is what it had said until then."""

    out: bytes
    problem: str = ""
    late: bool = False


async def run_apart(
    module: str, request: bytes, *, seconds: float, fds: Sequence[int] = (), most: int = 64_000_000, writes: int = 0
) -> WorkerResult:
    """Run `main` of a module in a process of its own, which ends with this call, whatever happens. Raises ToolError.

    It may say `most` bytes, and write `writes` bytes into any one file.
    """
    process = await _begun(module, (_MEMORY, int(seconds) + 1, writes), fds)
    out, problem, late = bytearray(), bytearray(), False
    try:
        async with asyncio.timeout(seconds):
            async with asyncio.TaskGroup() as group:
                group.create_task(_feed(process, request))
                group.create_task(_read(process.stderr, problem, 100_000))
                group.create_task(_read(process.stdout, out, most))
            await process.wait()
    except TimeoutError:
        late = True
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == 0 or late:
        return WorkerResult(bytes(out), "", late)
    return WorkerResult(bytes(out), problem.decode("utf-8", "replace").strip() or "it ended in the middle of its work")


async def _begun(module: str, limits: Sequence[int], fds: Sequence[int]) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", "-X", "utf8", "-c", _BEGIN, *map(str, limits), module, *_paths(),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            pass_fds=tuple(fds), env={}, cwd="/",
        )  # fmt: skip
    except OSError as error:
        raise ToolError(f"this takes a process of its own, which could not be started ({error.strerror})") from error


def _paths() -> list[str]:
    return [path for path in sys.path if os.path.isabs(path)]


async def _feed(process: asyncio.subprocess.Process, request: bytes) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(request)
        await process.stdin.drain()
        process.stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        return  # it ended before it had read all; its exit says why


async def _read(stream: asyncio.StreamReader | None, into: bytearray, most: int) -> None:
    assert stream is not None
    while chunk := await stream.read(_CHUNK):
        into += chunk[: most - len(into)]
