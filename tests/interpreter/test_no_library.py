"""Python that comes to no library of devices is not run: a file counts with all that it imports, however that is spelled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamlint import models
from streamlint.analysis import Analysis
from streamlint.checks.base import registry
from streamlint.config import Resolver
from streamlint.frontends import UnreadableSource
from streamlint.frontends.python import lower
from streamlint.interpreter.facts import FileFacts
from streamlint.interpreter.index import Program
from streamlint.linter import run
from streamlint.options import Options

DOCUMENTS = sorted((Path(__file__).parents[1] / "rules").glob("*.md"))
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IMPORT = re.compile(r"^( *)(?:import|from) .*$", re.MULTILINE)
FETCH = "import torch\n\ndef fetch(x):\n    return x.to('cpu', non_blocking=True)\n"


def analysis(files: dict[str, str], **more: str) -> Analysis:
    program = Program()
    for path, text in files.items():
        program.add(lower(path, text), models.builtin("python"))
    return Analysis(program, Options(codes=frozenset(registry()), **more))


def is_passed_over(text: str, **more: str) -> bool:
    """Whether a file is not run that stands beside a package with a library in it, and one without."""
    beside = {"pack/__init__.py": "", "pack/load.py": FETCH, "plain/__init__.py": "", "plain/words.py": "import json\nimport tqdm\n"}
    asked = analysis({"a.py": text, **beside}, **more)
    return asked._no_library.holds(asked.program.files["a.py"]) and all(map(asked._is_quiet, asked.roots(asked.program.files["a.py"])))


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return x.stream.cuda_graph(x)\n",
        "import json\nimport threading\n\ndef f(x):\n    threading.Thread(target=x).start()\n",
        "import plain.words\n\ndef f(x):\n    return plain.words.count(x)\n",
        "from plain import words\n\ndef f(x):\n    return words.count(x)\n",
        "import pack\n\ndef f(x):\n    return pack.name\n",
        "import unknown\n\ndef f(x):\n    with unknown.stream():\n        return x * 2\n",
        "class Held:\n    def __init__(self, x):\n        self.x = x\n\n    def stream(self):\n        return self.x.stream\n",
    ],
)
def test_what_comes_to_no_library_is_not_run(text: str) -> None:
    assert is_passed_over(text)


def test_every_loop_is_looked_at_on_request() -> None:
    text = "class Held:\n    def f(self, x):\n        return x.stream(x)\n"
    assert is_passed_over(text)
    assert not is_passed_over(text, hidden_sync="all-loops")


@pytest.mark.parametrize(
    "text",
    [
        "import torch\n\ndef f(x):\n    return x\n",
        "def f(x):\n    import cupy\n    return x\n",
        "import numpy as np\n\ndef f(x):\n    return x\n",
        "import transformers\n\ndef f(x):\n    return x\n",
        "from pack.load import fetch\n\ndef f(x):\n    return fetch(x)\n",
        "from pack import load\n\ndef f(x):\n    return load.fetch(x)\n",
        "import pack.load\n\ndef f(x):\n    return pack.load.fetch(x)\n",
        "import pack\n\ndef f(x):\n    return [pack][0].load.fetch(x)\n",
        "from .pack.load import fetch\n\ndef f(x):\n    return fetch(x)\n",
        "from . import pack\n\ndef f(x):\n    return pack.load.fetch(x)\n",
        "from pack.load import *\n\ndef f(x):\n    return fetch(x)\n",
        "def f(x):\n    return x.cuda()\n",
        "def f(xs, net):\n    for x in xs:\n        loss = net(x)\n        loss.backward()\n        print(float(loss))\n",
        "def f(x):\n    return torch.ones(x)\n",
        "def f(x):\n    return x.get(blocking=False)\n",
        "def f(x):\n    return x.__array_interface__\n",
    ],
)
def test_what_comes_to_a_library_is_run(text: str) -> None:
    assert not is_passed_over(text)


def test_a_library_may_stand_behind_any_number_of_imports() -> None:
    files = {f"m{number}.py": f"import m{number + 1}\n\ndef f(x):\n    return m{number + 1}.f(x)\n" for number in range(30)}
    for last, expected in (("import json\nimport m0\n", True), ("import torch\nimport m0\n", False)):
        asked = analysis({**files, "m30.py": last})
        assert {asked._no_library.holds(asked.program.files[path]) for path in files} == {expected}


def _unknown(statement: re.Match[str]) -> str:
    """Another import of the same names, from modules of which nothing is known."""
    names = [name.split(" as ")[-1].strip(" ()").partition(".")[0] for name in statement[0].rpartition("import ")[2].split(",")]
    return f"{statement[1]}from unknown import {', '.join(filter(None, names)) or 'nothing'}"


def without_imports() -> Iterator[tuple[str, str]]:
    """The Python of the rules' documents, where what it imports is out of view and not known."""
    for document in DOCUMENTS:
        for number, found in enumerate(FENCE.finditer(document.read_text(encoding="utf-8"))):
            yield f"{document.stem}-{number}", IMPORT.sub(_unknown, found[1])


def test_without_a_library_nothing_is_found_in_the_documents() -> None:
    count = 0
    for name, text in without_imports():
        try:
            asked = analysis({"a.py": text}, evidence="possible")
        except UnreadableSource:
            continue
        file = asked.program.files["a.py"]
        if not asked._no_library.holds(file):
            continue
        roots = list(asked.roots(file))
        count += len(roots)
        asked._is_quiet = lambda root: False  # type: ignore[method-assign]
        facts = FileFacts(file)
        assert [found.code for root in roots for found in asked._check_root(root, facts, asked.coverage)] == [], name
    assert count >= 500


def test_a_warm_run_sees_that_an_import_comes_to_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamlint.cache.store import Store

    monkeypatch.chdir(tmp_path)
    user = "from between import fetch\n\ndef total(x):\n    host = fetch(x.cuda_stream)\n    return host.numpy().sum()\n"
    Path("user.py").write_text(user)
    Path("between.py").write_text("from last import fetch\n\nSTREAM = 'cuda'\n")
    Path("last.py").write_text("def fetch(x):\n    return x.cuda\n")

    def found() -> list[tuple[str, str, int]]:
        report = run(["."], Resolver(None), store=Store(tmp_path / "cache"))
        return sorted((found.code, found.span.file, found.span.row) for found in report.findings)

    assert found() == []
    Path("last.py").write_text("import torch\n\ndef fetch(x):\n    return torch.ones(8, device='cuda').to('cpu', non_blocking=True)\n")
    warm = found()
    assert warm == sorted((found.code, found.span.file, found.span.row) for found in run(["."], Resolver(None)).findings)
    assert any(file == "user.py" for _, file, _ in warm) or any(code == "SL005" for code, _, _ in warm)
