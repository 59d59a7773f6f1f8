"""The front ends alone under atheris, whose mutations are guided by the lines that they reach.

    python -m venv fuzzing && fuzzing/bin/pip install -e . atheris hypothesis
    fuzzing/bin/python benchmarks/fuzz_frontends.py cuda --minutes 60 [--seeds FOLDER …] [--out FOLDER] [-libFuzzer=option …]

The first word is the front end (``python``, ``cuda``, ``cython``). Minutes are of processor time. The sections of the rules' documents, the
examples, and the files of FOLDER that mention CUDA (larger ones in pieces) are the first inputs; the words of the models, of the language
and of its preprocessor the dictionary. What is raised, but for what front ends may refuse, and what takes more than ten seconds is
written to the folder, three of a kind, and the run goes on; a crash or a hang of native code ends it, with the input in the same folder.
What was found to reach new lines stays in the folder too, for the next run. Exit code 1 where something was found.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import atheris  # type: ignore[import-not-found]

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

with atheris.instrument_imports(include=["streamlint"]):
    from streamlint.frontends import UnreadableSource
    from streamlint.frontends.cuda import lower as cuda
    from streamlint.frontends.cython import lower as cython
    from streamlint.frontends.inline import modules_in
    from streamlint.frontends.python import lower as python

from fuzzing import seeds  # noqa: E402
from fuzzing.vocabulary import calls  # noqa: E402

from streamlint.models import builtin  # noqa: E402

MOST = 8_000  # characters of an input
SLOW = 10.0  # seconds of processor time
ALIKE = 3
SUFFIXES = {
    "python": {".py"},
    "cuda": {".cu", ".cuh", ".cpp", ".cc", ".h", ".hpp"},
    "cython": {".pyx", ".pxd", ".pxi"},
}
PYTHON = (
    "async def |await |lambda: |yield from |with |match x:\n case |except* |:= |@staticmethod\n|global |nonlocal |del |f'{x!r:>{w}}'|\\\n|"
    "'''|\"\"\"|**kwargs|*args, |/, |-> |...|# noqa|# streamlint: ignore[SL001]|type X = |[T: int]"
)
CYTHON = (
    'cdef |cpdef |ctypedef |cimport |nogil|with gil:|cdef extern from "a.h" nogil:\n|DEF A = 1|IF A:\n|ELSE:\n|include "a.pxi"\n|<float*>|'
    "&x[0]|[::1]|except +|except? -1|cdef struct |cdef enum |fused |cppclass "
)
CUDA = (
    "#if |#ifdef |#ifndef |#elif |#else\n|#endif\n|#define |#undef |#include |#pragma |defined(|__VA_ARGS__|__VA_OPT__(|##|#x|??/|"
    'template<|typename |<<<1, 2, 0, s>>>|[[nodiscard]]|operator()|extern "C" {|namespace {|R"x(|)x"|u8"|L\'|/*|*/|//|\\\n|__global__ |'
    "auto [a, b] = |co_await |requires |decltype(|sizeof...(|...|::*|->*|case 1: |goto |try {|} catch (...) {"
)
ANYWHERE = "\t|\f|\r|\r\n|\ufeff|\0"
SYNTAX = {"python": PYTHON, "cython": CYTHON, "cuda": CUDA}


def try_cuda(text: str) -> None:
    cuda("a.cu", text)


def try_cython(text: str) -> None:
    cython("a.pyx", text)


def try_python(text: str) -> None:
    modules_in(python("a.py", text))


TRIED = {"cuda": try_cuda, "cython": try_cython, "python": try_python}


def first_inputs(language: str, folders: list[Path]) -> list[str]:
    """The tests' own code, and that of these folders."""
    texts = {file.text for files in seeds.programs() for file in files if file.language == language}
    for path in (path for folder in folders for path in folder.rglob("*") if path.suffix in SUFFIXES[language] and path.is_file()):
        text = path.read_text(encoding="utf-8", errors="replace")
        if language == "cython" or re.search("cuda|hip|cupy|numba", text):
            texts.update(_pieces(text))
    return sorted(texts)


def _pieces(text: str) -> list[str]:
    """Whole lines, of at most so many characters."""
    found, piece = [], ""
    for line in text.splitlines(keepends=True):
        if len(piece) + len(line) > MOST:
            found.append(piece)
            piece = ""
        piece += line[:MOST]
    return [*found, piece]


def dictionary(language: str) -> str:
    """In libFuzzer's form: bytes that are not plain are escaped."""
    kind = "cuda" if language == "cuda" else "python"
    names = {call.name for both in calls(kind) for call in both} | set(builtin(kind).types)
    words = [*sorted(names), *f"{SYNTAX[language]}|{ANYWHERE}".split("|")]
    return "".join(f'"{"".join(map(_escaped, word.encode()))}"\n' for word in words if word)


def _escaped(byte: int) -> str:
    return f"\\x{byte:02x}" if byte in b'"\\' or not 32 <= byte < 127 else chr(byte)


class Campaign:
    """What is tried, and what was found."""

    def __init__(self, language: str, seconds: float, out: Path) -> None:
        self.work, self.seconds, self.out = TRIED[language], seconds, out
        self.begun, self.tried, self.refused = time.process_time(), 0, 0
        self.alike: Counter[str] = Counter()
        self.slowest = 0.0

    def one(self, data: bytes) -> None:
        """An input of atheris."""
        start = time.process_time()
        if start - self.begun > self.seconds:
            self.end()
        self.tried += 1
        try:
            self.work(data.decode("utf-8", "replace"))
        except (UnreadableSource, RecursionError):
            self.refused += 1
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            self.keep(f"{type(error).__name__} {Path(last.filename).name} {last.lineno}", data)
        took = time.process_time() - start
        self.slowest = max(self.slowest, took)
        if took > SLOW:
            self.keep("slow", data)

    def keep(self, mark: str, data: bytes) -> None:
        """Write down what went wrong, unless three like it are."""
        self.alike[mark] += 1
        if self.alike[mark] <= ALIKE:
            name = f"{mark.replace(' ', '-')}-{hashlib.sha256(data).hexdigest()[:8]}.txt"
            (self.out / name).write_bytes(data)
            print(f"{self.out / name}", flush=True)

    def end(self) -> None:
        """Say how it was, and leave: libFuzzer knows no other end."""
        minutes = (time.process_time() - self.begun) / 60
        print(
            f"{self.tried} inputs in {minutes:.0f} min of processor time, {self.refused} of them refused; "
            f"the slowest took {self.slowest:.1f} s; found: {dict(self.alike) or 'nothing'}",
            flush=True,
        )
        os._exit(1 if self.alike else 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("language", choices=sorted(TRIED))
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seeds", nargs="*", type=Path, default=[])
    parser.add_argument("--out", type=Path, default=Path("build/atheris"))
    words, others = parser.parse_known_args()
    reached = words.out / f"{words.language}-reached"
    reached.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        begun = Path(folder, "begun")
        begun.mkdir()
        texts = first_inputs(words.language, words.seeds)
        for number, text in enumerate(texts):
            (begun / f"{number}.txt").write_text(text, encoding="utf-8", errors="replace")
        Path(folder, "words").write_text(dictionary(words.language), encoding="ascii")
        print(f"{len(texts)} first inputs", flush=True)
        campaign = Campaign(words.language, words.minutes * 60, words.out)
        own = [f"-dict={folder}/words", f"-artifact_prefix={words.out}/", f"-max_len={MOST}", "-timeout=300", "-rss_limit_mb=4096"]
        atheris.Setup([sys.argv[0], str(reached), str(begun), *own, *others], campaign.one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
