"""The front ends alone under atheris, whose mutations are guided by the lines that they reach.

    python -m venv fuzzing && fuzzing/bin/pip install -e . atheris
    fuzzing/bin/python benchmarks/fuzz_frontends.py cuda -max_total_time=600 build/atheris

The first word is the front end (``python``, ``cuda``, ``cython``), the others are libFuzzer's. The sections of the rules' documents and the
examples are the first inputs, the words of the models the dictionary. What is raised is a crash, but for what front ends may refuse.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
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


def try_cuda(data: bytes) -> None:
    cuda("a.cu", data.decode("utf-8", "replace"))


def try_cython(data: bytes) -> None:
    cython("a.pyx", data.decode("utf-8", "replace"))


def try_python(data: bytes) -> None:
    modules_in(python("a.py", data.decode("utf-8", "replace")))


TRIED = {"cuda": try_cuda, "cython": try_cython, "python": try_python}


def main() -> None:
    language = sys.argv.pop(1)
    work = TRIED[language]

    def one(data: bytes) -> None:
        with contextlib.suppress(UnreadableSource, RecursionError):
            work(data)

    with tempfile.TemporaryDirectory() as folder:
        begun = Path(folder, "begun")
        begun.mkdir()
        texts = sorted({file.text for files in seeds.programs() for file in files if file.language == language})
        for number, text in enumerate(texts):
            (begun / f"{number}.txt").write_text(text, encoding="utf-8")
        words = sorted({call.name for both in calls("cuda" if language == "cuda" else "python") for call in both if '"' not in call.name})
        Path(folder, "words").write_text("".join(f'"{word}"\n' for word in words), encoding="utf-8")
        own = [word for word in sys.argv[1:] if not word.startswith("-")]
        for path in own:
            os.makedirs(path, exist_ok=True)
        atheris.Setup([*sys.argv, str(begun), f"-dict={folder}/words", "-max_len=6000", "-timeout=30"], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
