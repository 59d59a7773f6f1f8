"""The model against this machine's GPU, where there is one."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import pytest

from streamlint.litmus import command


@pytest.mark.gpu
def test_the_gpu_does_what_the_model_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The program of each fact, then random ones for 20 seconds."""
    pytest.importorskip("cupy", reason="CuPy is not installed", exc_type=ImportError)
    if shutil.which("nvidia-smi") is None:
        pytest.skip("no NVIDIA driver here")
    found = tmp_path / "found.json"
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    code = command.run(parser.parse_args(["--seconds", "20", "--output-format", "json", "-o", str(found)]))
    said = capsys.readouterr().err
    if code == 2 and "litmus needs an NVIDIA GPU" in said:
        pytest.skip(f"no usable GPU: {said.strip()}")
    report = json.loads(found.read_text(encoding="utf-8"))
    assert [fact for fact, shown in report["facts"].items() if not shown] == []
    assert report["disagreements"] == []
    assert code == 0
    assert report["runs"] > 200
    assert report["agreement"] > 0.99
