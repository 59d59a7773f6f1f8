"""What of the findings is told: baselines, changed lines, written comments, runs that repeat."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("streamlint")
STALL = """\
import torch


def load(n=1 << 20):
    host = torch.empty(n)
    return host.to("cuda", non_blocking=True)
"""
TWO = STALL + STALL.replace("import torch\n", "").replace("load", "other").replace("(n)\n", "(n, 4)\n")
CPP = """\
#include <cuda_runtime.h>

void load(float* out, size_t n, cudaStream_t stream) {
  float* host = (float*)malloc(1 << 24);
  cudaMemcpyAsync(out, host, n,
                  cudaMemcpyHostToDevice, stream);
}
"""


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def run(forked):
    return forked


@pytest.fixture
def repository(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_text(TWO)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "start")
    return tmp_path


def rows(done):
    return [(row["code"], row["filename"], row["location"]["row"]) for row in json.loads(done.stdout)]


# Baselines --------------------------------------------------------------------------------------------------------------------


def test_a_baseline_hides_what_was_there(run, repository):
    done = run("check", "--write-baseline", "known.json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "wrote 2 findings to known.json\n")
    again = run("check", "--baseline", "known.json")
    assert (again.returncode, again.stdout) == (0, "")
    assert again.stderr == "1 file, 1 mentions CUDA, 0 findings (2 more in the baseline)\n"


def test_a_baseline_goes_by_content(run, repository):
    run("check", "--write-baseline", "known.json")
    (repository / "a.py").write_text("# moved\n\n" + TWO.replace("n)\n    return", "n)\n\n    # a word\n    return"))
    assert run("check", "--baseline", "known.json").returncode == 0
    (repository / "a.py").write_text(TWO.replace("cuda", "cuda:1", 1))
    done = run("check", "--baseline", "known.json", "--output-format", "json")
    assert (done.returncode, rows(done)) == (1, [("SL001", "a.py", 6)])


def test_stale_entries_are_told(run, repository):
    run("check", "--write-baseline", "known.json")
    (repository / "a.py").write_text(STALL)
    done = run("check", "--baseline", "known.json")
    assert done.returncode == 0
    assert "warning: baseline known.json: 1 entry is stale; write it anew with --write-baseline\n  a.py: SL001 " in done.stderr
    assert "stale" not in run("check", "--baseline", "known.json", "--select", "SL005").stderr


def test_a_baseline_from_the_configuration(run, repository):
    (repository / "streamlint.toml").write_text('baseline = "known.json"\n')
    run("check", "--write-baseline", "known.json")
    assert run("check").returncode == 0
    assert run("check", "--write-baseline", "known.json").stderr == "wrote 2 findings to known.json\n"
    folder = repository / "sub"
    folder.mkdir()
    assert run("check", "../a.py", cwd=folder).returncode == 0


def test_a_baseline_of_a_part_keeps_the_rest(run, repository):
    (repository / "b.py").write_text(STALL)
    run("check", "--write-baseline", "known.json")
    assert run("check", "b.py", "--write-baseline", "known.json").stderr == "wrote 3 findings to known.json\n"
    (repository / "b.py").unlink()
    assert run("check", "a.py", "--write-baseline", "known.json").stderr == "wrote 2 findings to known.json\n"


@pytest.mark.parametrize("text", [None, "{", "[]", '{"streamlint-baseline": 2}', '{"streamlint-baseline": 1, "findings": [{}]}'])
def test_a_baseline_that_is_none(run, repository, text):
    if text is not None:
        (repository / "known.json").write_text(text)
    done = run("check", "--baseline", "known.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "known.json" in done.stderr


def test_baselined_findings_stay_in_sarif(run, repository):
    run("check", "--write-baseline", "known.json")
    (repository / "a.py").write_text(TWO.replace("cuda", "cuda:1", 1))
    done = run("check", "--baseline", "known.json", "--output-format", "sarif")
    results = json.loads(done.stdout)["runs"][0]["results"]
    assert [bool(row["suppressions"]) for row in results] == [False, True]


# Changed lines ----------------------------------------------------------------------------------------------------------------


def test_since_keeps_what_a_changed_line_touches(run, repository):
    assert run("check", "--since", "HEAD").returncode == 0
    (repository / "a.py").write_text(TWO.replace("torch.empty(n)\n", "torch.empty(n + 1)\n"))
    done = run("check", "--since", "HEAD", "--output-format", "json")
    assert (done.returncode, rows(done)) == (1, [("SL001", "a.py", 6)])  # the allocation is a step of its trail
    git(repository, "commit", "-qam", "more")
    assert run("check", "--since", "HEAD").returncode == 0
    assert run("check", "--since", "HEAD~1").returncode == 1


def test_since_takes_new_files_whole(run, repository):
    (repository / "new file.py").write_text(STALL)
    assert rows(run("check", "--since", "HEAD", "--output-format", "json")) == [("SL001", "new file.py", 6)]


def test_since_follows_renames(run, repository):
    git(repository, "mv", "a.py", "bé.py")
    assert run("check", "--since", "HEAD").returncode == 0
    (repository / "bé.py").write_text(TWO + "x = 1\n")
    assert run("check", "--since", "HEAD").returncode == 0
    (repository / "bé.py").write_text("import torch.cuda\n" + TWO.replace("cuda", "cuda:1", 1))
    assert rows(run("check", "--since", "HEAD", "--output-format", "json")) == [("SL001", "bé.py", 7)]


@pytest.mark.parametrize("revision", ["nonsense", "--output=x"])
def test_since_wants_a_revision(run, repository, revision):
    done = run("check", f"--since={revision}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--since: " in done.stderr


def test_since_wants_a_repository(run, tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n")
    done = run("check", "--since", "HEAD")
    assert done.returncode == 2
    assert "no git repository" in done.stderr


# Comments that are written ----------------------------------------------------------------------------------------------------


def test_add_ignore_writes_what_hides(run, repository):
    done = run("check", "--add-ignore")
    assert (done.returncode, done.stderr) == (0, "added comments for 2 findings\n")
    assert '    return host.to("cuda", non_blocking=True)  # streamlint: ignore[SL001]\n' in (repository / "a.py").read_text()
    assert run("check", "--extend-select", "SL900").returncode == 0


def test_add_ignore_with_a_reason(run, repository):
    run("check", "--add-ignore=runs once", "a.py")
    assert (repository / "a.py").read_text().count("# streamlint: ignore[SL001] runs once\n") == 2


def test_add_ignore_in_cpp_keeps_line_ends(run, tmp_path):
    (tmp_path / "a.cu").write_bytes(CPP.replace("\n", "\r\n").encode())
    assert run("check", "--select", "SL001", "--add-ignore").returncode == 0
    assert b"cudaMemcpyHostToDevice, stream);  // streamlint: ignore[SL001]\r\n" in (tmp_path / "a.cu").read_bytes()
    assert run("check", "--select", "SL001").returncode == 0


def test_add_ignore_joins_a_comment_that_is_there(run, tmp_path):
    (tmp_path / "a.py").write_text(STALL.replace("=True)", "=True)  # streamlint: ignore[SL005] small"))
    run("check", "--add-ignore")
    assert "# streamlint: ignore[SL005, SL001] small\n" in (tmp_path / "a.py").read_text()


def test_add_ignore_for_cpp_in_a_string(run, tmp_path):
    (tmp_path / "a.py").write_text(f'import cupy\nmodule = cupy.RawModule(code=r"""\n{CPP}// end\n""")\n')
    assert run("check", "--select", "SL001").returncode == 1
    assert run("check", "--select", "SL001", "--add-ignore").returncode == 0
    assert "stream);  // streamlint: ignore[SL001]\n" in (tmp_path / "a.py").read_text()
    assert run("check", "--select", "SL001").returncode == 0


# Again and again --------------------------------------------------------------------------------------------------------------


def test_watch_lints_again_after_a_change(tmp_path):
    (tmp_path / "a.py").write_text("import torch\n")
    command = [str(COMMAND), "check", "--watch", "--output-format", "concise", "."]
    env = {**os.environ, "WATCHFILES_FORCE_POLLING": "1", "WATCHFILES_POLL_DELAY_MS": "50"}
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        patience = threading.Timer(120, process.kill)
        patience.start()
        try:
            lines = iter(process.stderr.readline, "")
            assert next(line for line in lines if "watching" in line)
            (tmp_path / "a.py").write_text(STALL)
            os.utime(tmp_path / "a.py", (time.time() + 10, time.time() + 10))  # polling tells whole seconds apart
            assert process.stdout.readline().startswith("a.py:6:17: unpinned-non-blocking [SL001]")
        finally:
            patience.cancel()
            process.kill()


def test_watch_has_no_standard_input(run):
    done = run("check", "--watch", "-")
    assert (done.returncode, done.stderr) == (2, "streamlint: --watch cannot watch standard input\n")
