"""C++ is parsed again where nothing that it was made of is as it was: the texts that it includes count."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlint.cache import open_store
from streamlint.config.options import Source
from streamlint.runner import parsing
from streamlint.runner.parsing import Parser

PYTHON = "import torch\n\n\ndef f(x, *, y=..., z=2j):\n    '''What it does.'''\n    return x[1:, None].to('cuda', non_blocking=True)\n"
KERNEL = '#include "size.h"\nvoid g(float* to) { cudaMemcpy(to, 0, SIZE, cudaMemcpyHostToDevice); }\n'
FILES = {"a.py": PYTHON, "k.cu": KERNEL, "size.h": '#include "deep.h"\n', "deep.h": "#define SIZE 12\n", "other.h": "#define SIZE 13\n"}


def parser(folder: Path, **edits: str) -> Parser:
    texts = {**FILES, **{path.replace("_", "."): text for path, text in edits.items()}}
    sources = [Source(path, text, "python" if path.endswith(".py") else "cuda") for path, text in texts.items()]
    return Parser(sources, open_store(folder))


def kept(folder: Path, **edits: str) -> set[str]:
    """The sources that need not be parsed."""
    made = parser(folder, **edits)
    return {source.path for source in made.sources if made._known(source) is not None}


@pytest.mark.parametrize(
    ("edit", "lost"),
    [
        ({"a_py": PYTHON + "x = 1\n"}, {"a.py"}),
        ({"deep_h": "#define SIZE 13\n"}, {"deep.h", "size.h", "k.cu"}),
        ({"other_h": "#define SIZE 14\n"}, {"other.h"}),
        ({"size_h": '#include "deep.h"\n#include "k.cu"\n'}, {"size.h", "k.cu"}),
    ],
)
def test_what_includes_a_changed_file_is_parsed_again(tmp_path: Path, edit: dict[str, str], lost: set[str]) -> None:
    assert parser(tmp_path).problems() == []
    assert kept(tmp_path) == FILES.keys()
    assert kept(tmp_path, **edit) == FILES.keys() - lost


def test_a_circle_of_includes_is_known_by_all_texts(tmp_path: Path) -> None:
    circle = {"size_h": '#include "deep.h"\n', "deep_h": '#include "size.h"\n#define SIZE 2\n'}
    parser(tmp_path, **circle).problems()
    assert "k.cu" in kept(tmp_path, **circle)
    assert "k.cu" not in kept(tmp_path, **circle, other_h="")


def test_an_include_that_is_written_oddly_counts(tmp_path: Path) -> None:
    odd = {"k_cu": KERNEL.replace('#include "', '# /* */ include \\\n"')}
    parser(tmp_path, **odd).problems()
    assert "k.cu" in kept(tmp_path, **odd)
    assert "k.cu" not in kept(tmp_path, **odd, deep_h="#define SIZE 13\n")


def test_what_lacked_a_parser_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = parsing.parsed

    def lacking(source: Source, headers: object) -> object:
        made = plain(source, headers)  # type: ignore[arg-type]
        made.problems = [((1, 1, 1, 1), "left out: no parser for C++")]  # type: ignore[union-attr, misc]
        return made

    monkeypatch.setattr(parsing, "parsed", lacking)
    parser(tmp_path).problems()
    assert kept(tmp_path) == set()
