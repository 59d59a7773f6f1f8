"""The examples of docs/models.md: a finding that stands there appears with the row, and what the rows change is absent without them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamlint.commands.unused import unmatched
from streamlint.config.options import Options, Source
from streamlint.config.settings import Resolver, Settings, load
from streamlint.models import ModelError, builtin, with_user_rows
from streamlint.runner.engine import analyse
from streamlint.runner.linter import run

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"<!-- (?P<kind>rows|code): (?P<name>\w+) -->\n```\w+\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES: dict[str, dict[str, str]] = {}
for found in BLOCK.finditer(PAGE):
    EXAMPLES.setdefault(found["name"], {})[found["kind"]] = found["body"]

# What is found without the rows: nothing, but where the rows silence something.
WITHOUT = {"renamed": {(10, "SL005"), (19, "SL005")}, "traits": {(9, "SL020")}}


def marked(code: str) -> set[tuple[int, str]]:
    return {(row, mark[1]) for row, line in enumerate(code.splitlines(), 1) if (mark := re.search(r"# (SL\d{3})$", line))}


def lint(code: str, settings: Settings) -> set[tuple[int, str]]:
    report = analyse([Source("example.py", code, "python")], settings.options())
    assert not report.problems
    return {(finding.span.row, finding.code) for finding in report.findings}


def settings_with(folder: Path, rows: str) -> Settings:
    path = folder / "pyproject.toml"
    path.write_text(f"[tool.streamlint]\n\n{rows}", encoding="utf-8")
    return load(path)


def test_the_page_has_a_facade_and_a_helper() -> None:
    assert {name for name, parts in EXAMPLES.items() if set(parts) == {"rows", "code"}} == {"facade", "renamed", "helper", "traits"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_with_the_rows(name: str, tmp_path: Path) -> None:
    code = EXAMPLES[name]["code"]
    assert lint(code, settings_with(tmp_path, EXAMPLES[name]["rows"])) == marked(code)


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_row_is_met(name: str, tmp_path: Path) -> None:
    settings_with(tmp_path, EXAMPLES[name]["rows"])
    (tmp_path / "use.py").write_text(EXAMPLES[name]["code"])
    assert unmatched(run([tmp_path], Resolver())) == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_without_the_rows(name: str) -> None:
    assert lint(EXAMPLES[name]["code"], Settings()) == WITHOUT.get(name, set())


def test_the_row_that_pins_silences(tmp_path: Path) -> None:
    """Without it the arrays are taken for pageable, and what is refilled for memory that was staged."""
    rows = EXAMPLES["helper"]["rows"]
    head, _, rest = rows.partition("[[tool.streamlint.models.call]]")
    second = rest.partition("[[tool.streamlint.models.call]]")[2]
    code = EXAMPLES["helper"]["code"]
    without = lint(code, settings_with(tmp_path, f"{head}[[tool.streamlint.models.call]]{second}"))
    assert {code for _, code in without} == {"SL001"}
    assert len(without) == 3


def test_the_command_line_reads_a_file_that_names_only_the_wrapper(tmp_path: Path) -> None:
    """No word of ours stands in the file: the names of the rows make it worth reading."""
    settings_with(tmp_path, EXAMPLES["helper"]["rows"])
    (tmp_path / "use.py").write_text(
        "import numpy as np\nfrom acme.memory import upload\n\n\ndef table(rows):\n    return upload(np.zeros((rows, 1 << 16)))\n"
    )
    report = run([tmp_path], Resolver())
    assert [(finding.span.row, finding.code) for finding in report.findings] == [(6, "SL001")]


def test_rows_of_one_language_leave_the_other_alone() -> None:
    rows = (("mine", {"language": "cuda", "call": [{"names": "acme::sync", "effect": "synchronize", "of": "device"}]}),)
    assert with_user_rows("python", rows).calls == builtin("python").calls
    assert with_user_rows("cuda", rows).call("acme::sync") is not None
    assert builtin("cuda").call("acme::sync") is None


def test_a_users_row_wins() -> None:
    row = {"call": [{"names": "torch.cuda.synchronize", "effect": "none"}]}
    changed = with_user_rows("python", (("mine", row),)).call("torch.cuda.synchronize")
    assert changed is not None
    assert changed.effect == "none"
    shipped = builtin("python").call("torch.cuda.synchronize")
    assert shipped is not None
    assert shipped.effect == "synchronize"


def test_a_wrong_word_is_an_error() -> None:
    with pytest.raises(ModelError, match="did you mean 'namespace'"):
        with_user_rows("python", (("mine", {"call": [{"names": "acme.get", "effect": "namespce"}]}),))


def test_rows_of_cpp_count_in_cpp() -> None:
    code = (
        "#include <cuda_runtime.h>\nvoid read(float* device, cudaStream_t s) {\n  float* host;\n  cudaMallocHost(&host, 4096);\n"
        "  cudaMemcpyAsync(host, device, 4096, cudaMemcpyDeviceToHost, s);\n  acme::sync();\n  host[0] += 1;\n}\n"
    )
    rows = (("mine", {"language": "cuda", "call": [{"names": "acme::sync", "effect": "synchronize", "of": "device"}]}),)
    options = [Options(codes=frozenset({"SL005"}), user_models=given) for given in ((), rows)]
    found = [[finding.code for finding in analyse([Source("a.cu", code, "cuda")], each).findings] for each in options]
    assert found == [["SL005"], []]
