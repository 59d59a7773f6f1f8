"""The pages on adding a rule, a model and an effect, followed to the letter in a copy of the package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streamlint_docs import DOCS, ROOT

STEP = re.compile(
    r"^<!-- (?P<what>write|append|insert): (?P<path>\S+)(?: after: (?P<line>.+?))? -->\n\n?(?P<fence>`{3,})\w+\n(?P<body>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package, and of the tests what runs the rules' documents."""
    shutil.copytree(ROOT / "streamlint", tmp_path / "streamlint")  # with what is compiled: times are kept
    (tmp_path / "tests" / "rules").mkdir(parents=True)
    for name in (
        "pyproject.toml",
        "tests/conftest.py",
        "tests/documents.py",
        "tests/rename.py",
        "tests/thorough.py",
        "tests/wording.py",
        "tests/rules/test_documents.py",
    ):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tests" / "rules" / "sl001.md").write_text("# SL001 unpinned-non-blocking\n\n## what there was\n")
    (tmp_path / "tests" / "rules" / "sl006.md").write_text("# SL006 cross-stream-use-without-wait\n\n## what there was\n")
    return tmp_path


def follow(page: str, folder: Path) -> list[Path]:
    """Writes what a page says into a copy of the repository."""
    paths = []
    for step in STEP.finditer((DOCS / page).read_text(encoding="utf-8")):
        path = folder / step["path"]
        assert path.exists() is (step["what"] != "write")
        path.write_text(written(step, path.read_text(encoding="utf-8") if path.exists() else ""), encoding="utf-8")
        paths.append(path)
    return paths


def written(step: re.Match[str], before: str) -> str:
    """A file as it is after a step."""
    if step["what"] == "insert":
        assert before.count(f"\n{step['line']}\n") == 1
        return before.replace(f"\n{step['line']}\n", f"\n{step['line']}\n{step['body']}")
    return f"{before}\n{step['body']}" if step["what"] == "append" else step["body"]


def passed(folder: Path, name: str) -> re.Match[str] | None:
    """Whether the documents of a name pass; of the folders of other runs nothing is asked."""
    apart = ("-p", "no:cacheprovider", "--basetemp", str(folder / "temporary"))
    done = run(folder, "pytest", "-q", *apart, "tests/rules", "-k", name)
    assert done.returncode == 0, done.stdout + done.stderr
    return re.search(r"\d passed", done.stdout)


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")} | {"PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, "-m", *words], cwd=folder, env=env, capture_output=True, text=True, timeout=300)


def test_a_rule(copy):
    assert len(follow("adding-a-rule.md", copy)) == 3
    assert passed(copy, "sl099")
    page = run(copy, "streamlint", "rule", "repeated-synchronize")
    assert page.stdout.startswith("# repeated-synchronize (SL099)\n")
    ask = "from streamlint.checks.base import HEADINGS, registry\nprint(tuple(registry()['SL099'].documentation())[1:] == HEADINGS)\n"
    (copy / "ask.py").write_text(ask)
    assert run(copy, "ask").stdout == "True\n"


def test_a_model(copy):
    (row, document) = follow("adding-a-model.md", copy)
    assert passed(copy, "slipway")
    (copy / "a.py").write_text(re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL)[-1])
    assert run(copy, "streamlint", "check", "a.py", "--isolated", "--output-format", "concise").stdout.startswith("a.py:7:20: unpinned")
    row.write_text(row.read_text().replace('"transfer"', '"transfers"'))
    wrong = run(copy, "streamlint", "check", "a.py", "--isolated")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "streamlint: slipway.toml: slipway.upload: effect 'transfers' is unknown; did you mean 'transfer'?\n"


def test_a_call_of_a_users_row_counts_whatever_its_name(copy):
    follow("adding-a-model.md", copy)
    (copy / "a.py").write_text("import slipway\nimport torch\n\n\ndef show(rows):\n    return slipway.upload(torch.rand(rows, 1 << 16))\n")
    assert run(copy, "streamlint", "check", "a.py", "--isolated").returncode == 1


def test_an_effect(copy):
    assert len(follow("adding-an-effect.md", copy)) == 6
    assert passed(copy, "slipway")
    assert "slipway.meet" in run(copy, "streamlint", "models").stdout
    row = copy / "streamlint" / "models" / "slipway.toml"
    row.write_text(row.read_text().replace('other = "1:other"\n', ""))
    (copy / "a.py").write_text("import slipway\nimport torch\n\ntorch.cuda.Stream()\n")
    wrong = run(copy, "streamlint", "check", "a.py", "--isolated")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("streamlint: slipway.toml: slipway.meet: effect 'meet' needs 'other': a place in the call")
