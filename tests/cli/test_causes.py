"""Findings with one cause: one block for people, with all places; each place by itself for programs, comments, baselines and fixes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

LOOP = """#include <cuda_runtime.h>

void grow(int n) {
  for (int i = 0; i < n; i++) {
    float *a, *b, *c;
    cudaMalloc(&a, 4 * n);
    cudaMalloc(&b, 4 * n);
    cudaMalloc(&c, 4 * n);
    cudaFree(a);
    cudaFree(b);
    cudaFree(c);
  }
}
"""
ROWS = [6, 7, 8]


@pytest.fixture
def run(forked):
    return forked


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    path = tmp_path / "a.cu"
    path.write_text(LOOP, encoding="utf-8")
    return path


def blocks(done) -> list[tuple[str, str]]:
    """The place of each block, and what it says of further ones."""
    lines = [line.strip() for line in done.stdout.splitlines()]
    found: list[tuple[str, str]] = []
    for line in lines:
        if line.startswith("--> "):
            found.append((line.removeprefix("--> "), ""))
        elif line.startswith("= also at: "):
            found[-1] = found[-1][0], line.removeprefix("= also at: ")
    return found


def rows(done) -> list[int]:
    return [finding["location"]["row"] for finding in json.loads(done.stdout)]


def test_places_of_one_cause_share_a_block(run, loop):
    assert blocks(run("check", "a.cu")) == [("a.cu:6:5", "7:5, 8:5 (same cause)")]


def test_programs_get_each_place(run, loop):
    found = run("check", "a.cu", "--output-format", "json")
    assert rows(found) == ROWS
    assert {finding["trail"][0]["location"]["row"] for finding in json.loads(found.stdout)} == {4}  # the loop, by which they are one
    assert run("check", "a.cu", "--output-format", "concise").stdout.count("[SL003]") == 3


@pytest.mark.parametrize(("hidden", "left"), [(6, ("7:5", "8:5")), (7, ("6:5", "8:5")), (8, ("6:5", "7:5"))])
def test_a_comment_hides_one_place(run, loop, hidden, left):
    lines = LOOP.splitlines()
    lines[hidden - 1] += "  // streamlint: ignore[SL003] once a run"
    loop.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert blocks(run("check", "a.cu")) == [(f"a.cu:{left[0]}", f"{left[1]} (same cause)")]
    assert rows(run("check", "a.cu", "--output-format", "json")) == [row for row in ROWS if row != hidden]


def test_a_baseline_knows_each_place(run, loop):
    run("check", "a.cu", "--write-baseline", "known.json")
    assert run("check", "a.cu", "--baseline", "known.json").returncode == 0
    fourth = LOOP.replace("*c;", "*c, *d;").replace("    cudaFree(a);", "    cudaMalloc(&d, 8 * n);\n    cudaFree(a);\n    cudaFree(d);")
    loop.write_text(fourth, encoding="utf-8")
    assert blocks(run("check", "a.cu", "--baseline", "known.json")) == [("a.cu:9:5", "")]


def test_other_functions_and_loops_have_blocks_of_their_own(run, loop):
    loop.write_text(LOOP + LOOP.replace("grow", "other").partition("\n")[2], encoding="utf-8")
    assert [place for place, _ in blocks(run("check", "a.cu"))] == ["a.cu:6:5", "a.cu:18:5"]


def test_each_place_is_fixed(run, loop):
    run("check", "a.cu", "--fix", "--unsafe-fixes")
    assert loop.read_text(encoding="utf-8").count("cudaMallocAsync(") == 3


def test_a_step_of_two_rounds_is_told_once(run, tmp_path):
    text = (Path(__file__).parents[2] / "examples" / "default_stream_mix.cu").read_text(encoding="utf-8")
    (tmp_path / "mix.cu").write_text(text, encoding="utf-8")
    found = json.loads(run("check", "mix.cu", "--output-format", "json").stdout)
    steps = [[(step["message"], str(step["location"])) for step in finding["trail"]] for finding in found]
    assert any(steps)
    assert all(len(set(trail)) == len(trail) for trail in steps)


def test_a_file_without_text_has_no_source_lines(run, tmp_path):
    (tmp_path / "a.py").write_bytes(b"import torch.cuda\n\xff\n")
    shown = run("check", "a.py").stdout
    assert "--> a.py:" in shown
    assert "|" not in shown
