"""llama.cpp in this process, through xllamacpp. Everything here blocks and belongs to one thread.

Loaded on first use: importing it loads 100 MB of native code. The library's server also listens on a socket, which is
the only way to save and restore the state of what was read; it gets a Unix socket that no other user can reach.
"""

import hashlib
import http.client
import os
import socket
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import xllamacpp

from ...errors import BadRequest, ContextOverflow, HostFailed, ModelMissing

_STATES_KEPT = 4
_BATCH = 64  # tokens; how often it tells of its progress and can be stopped. Larger is no faster on a CPU.
_CACHE_MIB = 256  # for other conversations; the library's own default is 8 GiB

Hear = Callable[[dict[str, Any]], bool]
"""Called with each event of a completion; returns whether to stop."""


class Llama:
    def __init__(self, path: Path, sha256: str, window: int, threads: tuple[int, int], states: Path) -> None:
        """`threads` are those to write and those to read with. Raises ModelMissing."""
        self._sha256, self._states = sha256, states
        self._primed: set[str] = set()
        self._folder = TemporaryDirectory(prefix="everloop-")  # only its owner may enter
        self._socket = f"{self._folder.name}/llama.sock"
        states.mkdir(parents=True, exist_ok=True)
        try:
            self._server = xllamacpp.Server(_params(path, window, threads, self._socket, states))
        except RuntimeError as error:
            self._folder.cleanup()
            raise ModelMissing(f"The embedded model in {path} cannot be loaded: {error}") from error

    def complete(self, request: dict[str, Any], hear: Hear) -> None:
        """Run one completion; `hear` gets its events. Raises ContextOverflow, BadRequest, HostFailed."""
        failure: dict[str, Any] = {}

        def listen(event: dict[str, Any]) -> bool:
            if "error" in event:
                failure.update(event["error"])
                return True
            return hear(event)

        self._server.handle_completions({"stream": True, "return_progress": True, **request}, listen)
        if failure:
            raise _error(failure)

    def prime(self, prefix: str, hear: Hear) -> None:
        """Have the prefix read: from the disk when it has been read before, else by the model, and then saved."""
        key = hashlib.sha256(f"{xllamacpp.__version__}\0{self._sha256}\0{prefix}".encode()).hexdigest()[:32]
        if key in self._primed:
            return
        if not self._restore(key):
            stopped = False

            def listen(event: dict[str, Any]) -> bool:
                nonlocal stopped
                stopped = hear({"prompt_progress": event.get("prompt_progress")})  # nothing is answered yet
                return stopped

            self.complete({"prompt": prefix, "n_predict": 0, "cache_prompt": True}, listen)
            if stopped:
                return
            self._save(key)
        self._primed.add(key)

    def _restore(self, key: str) -> bool:
        """A state carries its own hash in its name: the library ends the process when one is cut short."""
        for state in self._states.glob(f"{key}-*.state"):
            if state.name == _state_name(key, state):
                os.utime(state)
                return bool(self._post("/slots/0?action=restore", {"filename": state.name}).get("n_restored"))
            state.unlink(missing_ok=True)
        return False

    def _save(self, key: str) -> None:
        draft = self._states / f"{key}-{os.getpid()}.draft"
        if self._post("/slots/0?action=save", {"filename": draft.name}).get("n_saved"):
            draft.rename(self._states / _state_name(key, draft))
        else:  # a full disk; only the next start is slower for it
            draft.unlink(missing_ok=True)
        states = sorted(self._states.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in states[_STATES_KEPT:]:
            old.unlink(missing_ok=True)

    def count(self, text: str) -> int:
        """How many tokens a rendered text has."""
        return len(self._post("/tokenize", {"content": text, "parse_special": True})["tokens"])

    def close(self) -> None:
        del self._server  # which waits for its threads
        self._folder.cleanup()

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        connection = _UnixConnection(self._socket)
        try:
            connection.request("POST", path, msgspec.json.encode(body))
            return msgspec.json.decode(connection.getresponse().read(), type=dict[str, Any])
        finally:
            connection.close()


def _state_name(key: str, state: Path) -> str:
    with state.open("rb") as file:
        return f"{key}-{hashlib.file_digest(file, 'sha256').hexdigest()[:32]}.state"


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _params(path: Path, window: int, threads: tuple[int, int], address: str, states: Path) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel = window, 1
    params.n_batch = params.n_ubatch = _BATCH
    params.cpuparams.n_threads, params.cpuparams_batch.n_threads = threads
    params.cpuparams.poll = params.cpuparams_batch.poll = 0
    params.cache_ram_mib = _CACHE_MIB
    params.hostnames = [address]
    params.slot_save_path = f"{states}/"
    params.ui = False
    params.verbosity = -1
    # Repacked weights write a fifth faster, but take 0.6 GB more and one to two seconds at each start.
    params.no_extra_bufts = True
    params.fit_params = params.warmup = False
    return params


def _error(failure: dict[str, Any]) -> Exception:
    message = str(failure.get("message", "unknown"))
    if failure.get("type") == "exceed_context_size_error":
        return ContextOverflow(f"The conversation is too long for the embedded model: {message}.")
    if failure.get("code", 500) < 500:
        return BadRequest(f"The embedded model refuses the request: {message}.")
    return HostFailed(f"The embedded model failed: {message}.")
