"""The plug-in for flake8, made and run as flake8 does it."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from streamlint.commands.flake8 import Plugin
from streamlint.support.errors import StreamlintError

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[import-not-found, no-redef]

RACE = 'import torch\n\n\ndef f(x):\n    host = x.to("cpu", non_blocking=True)\n    é = 1; return host.numpy()\n'


@pytest.fixture
def told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(text, name="a.py"):
        return list(Plugin(ast.parse("x = 1"), name, text.splitlines(keepends=True)).run())

    return run


@pytest.mark.parametrize("head", ["", "# coding: latin-1\n"])
def test_a_finding_has_its_row_and_column(told, head):
    ((row, column, text, kind),) = told(head + RACE)
    line = (head + RACE).splitlines()[row - 1]
    assert line[column:].startswith("numpy()")
    assert text.startswith("SL005 host read before the asynchronous device-to-host copy completes")
    assert kind is Plugin


def test_comments_and_settings_hold(told):
    assert told(RACE.replace("numpy()", "numpy()  # noqa: SL005")) == []
    Path("streamlint.toml").write_text('ignore = ["SL005"]\n')
    assert told(RACE) == []
    Path("streamlint.toml").write_text("ignor = []\n")
    with pytest.raises(StreamlintError, match="did you mean 'ignore'"):
        told(RACE)


def test_what_cannot_be_read_is_told(told):
    ((row, column, text, _),) = told("import torch\ns = torch.cuda.Stream(\n")
    assert (row >= 1, column >= 0, text.split()[0]) == (True, True, "SL000")


def test_flake8_finds_it_and_leaves_it_off():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ((prefix, place),) = project["entry-points"]["flake8.extension"].items()
    module, _, name = place.partition(":")
    assert (prefix, getattr(importlib.import_module(module), name)) == ("SL", Plugin)
    assert Plugin.off_by_default
