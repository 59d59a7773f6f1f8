"""What the documentation says of ruff and of `noqa` comments with this linter's codes, asked of ruff itself."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(("settings", "left"), [("", "x = 1\n"), ('[lint]\nexternal = ["SL"]\n', "x = 1  # noqa: SL001\n")])
def test_ruff_leaves_our_codes_alone_where_it_is_told_to(tmp_path, settings, left):
    pytest.importorskip("ruff", reason="the extra dev brings it")
    (tmp_path / "ruff.toml").write_text(settings)
    (tmp_path / "a.py").write_text("x = 1  # noqa: SL001\n")
    words = ["check", "--no-cache", "--preview", "--select", "RUF100,RUF102", "--fix", "--quiet", "a.py"]
    subprocess.run([sys.executable, "-m", "ruff", *words], cwd=tmp_path, check=True)
    assert (tmp_path / "a.py").read_text() == left
