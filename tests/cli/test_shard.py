"""Runs in shares, and their reports joined."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from streamlint.runner.shards import FORMAT, dealt

ROOT = Path(__file__).parents[2]
STALL = 'import torch\n\n\ndef load(n):\n    host = torch.empty(n)\n    return host.to("cuda", non_blocking=True)\n'
COPY = 'def send(host):\n    return host.to("cuda", non_blocking=True)\n'
ACROSS = "import torch\n\nfrom copying import send\n\n\ndef load(n):\n    return send(torch.empty(n)), torch.cuda.current_stream()\n"
HIDDEN = STALL.replace("=True)", "=True)  # streamlint: ignore[SL001] the test asks for it")
USELESS = STALL.replace("host = torch.empty(n)", "host = torch.empty(n, pin_memory=True)  # streamlint: ignore[SL001] nothing")
BROKEN = "import torch\ntorch.cuda.synchronize(\n"
FORMATS = ("full", "concise", "json", "json-lines", "sarif", "github", "gitlab", "junit", "rdjson", "pylint", "azure", "markdown")


@pytest.fixture
def run(forked):
    return forked


@pytest.fixture(autouse=True)
def tree(tmp_path, monkeypatch):
    """A small tree whose findings cross files, with comments and a file that does not parse."""
    monkeypatch.setenv("STREAMLINT_NO_CACHE", "1")
    texts = {"copying.py": "import torch\n\n\n" + COPY, "one.py": ACROSS, "two.py": ACROSS.replace("load", "feed"), "stall.py": STALL}
    texts |= {"hidden.py": HIDDEN, "useless.py": USELESS, "broken.py": BROKEN, "plain.py": "print(1)\n"}
    (tmp_path / "src").mkdir()
    for name, text in texts.items():
        (tmp_path / "src" / name).write_text(text)


def shards(run, count, *words):
    names = []
    for number in range(1, count + 1):
        names.append(f"shard-{number}-of-{count}.out")
        done = run("check", *words, "--shard", f"{number}/{count}", "-o", names[-1])
        assert done.returncode in (0, 1), done.stderr
    return names


def test_joined_shards_are_the_whole_run(run):
    words = ["src", "--extend-select", "SL900"]
    whole = {format: run("check", *words, "--output-format", format) for format in FORMATS}
    for count in (1, 2, 3, 20):
        names = shards(run, count, *words)
        for format in FORMATS if count == 2 else ("json", "sarif", "concise"):
            joined = run("merge", *reversed(names), "--output-format", format)
            assert (joined.stdout, joined.returncode) == (whole[format].stdout, 1)
            assert joined.stderr == whole[format].stderr
    assert all(done.stdout.count("SL001") > 1 and "SL900" in done.stdout for done in whole.values())


def test_examples(run, tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "programs")
    whole = {format: run("check", "programs", "--output-format", format) for format in ("json", "sarif", "concise")}
    for count in (1, 2, 3):
        names = shards(run, count, "programs")
        for format in whole if count == 2 else ("json",):
            joined, done = run("merge", *names, "--output-format", format), whole[format]
            assert (joined.stdout, joined.stderr, joined.returncode) == (done.stdout, done.stderr, 1)


def test_a_file_for_the_joined_report(run, tmp_path):
    names = shards(run, 2, "src")
    done = run("merge", *names, "--output-format", "json", "-o", "all.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert (tmp_path / "all.json").read_text() == run("check", "src", "--output-format", "json").stdout


def test_each_rule_is_of_one_shard(run, tmp_path):
    names = shards(run, 3, "src")
    groups = [json.loads((tmp_path / name).read_text())["groups"] for name in names]
    told = [{finding[0] for (group,) in [each] for part in group["parts"] for finding in part[0]} for each in groups]
    assert sum(map(len, told)) == len(set().union(*told)) > 0


def test_the_rules_are_dealt():
    codes = ["SL001", "SL002", "SL003", "SL004", "SL005"]
    shares = [dealt(codes, number, 2) for number in (1, 2)]
    assert shares == [dealt(reversed(codes), number, 2) for number in (1, 2)] == [{"SL001", "SL003", "SL005"}, {"SL002", "SL004"}]
    assert dealt(codes, 7, 20) == set()


def test_the_report_goes_to_stdout(run):
    done = run("check", "src", "--shard", "1/2", "--output-format", "json")
    assert json.loads(done.stdout)["streamlint-shard"] == FORMAT


def test_exit_codes(run, tmp_path):
    assert run("merge", *shards(run, 2, "src", "--exit-zero")).returncode == 0
    assert run("merge", "--exit-zero", *shards(run, 2, "src")).returncode == 0
    assert run("merge", *shards(run, 2, "src/hidden.py", "src/copying.py")).returncode == 0
    assert [run("check", "src/stall.py", "--shard", f"{number}/2").returncode for number in (1, 2)] == [1, 0]


def test_a_baseline(run):
    run("check", "src/one.py", "src/copying.py", "--write-baseline", "known.json")
    words = ["src", "--baseline", "known.json"]
    names = shards(run, 3, *words)
    whole, joined = run("check", *words), run("merge", *names)
    assert (joined.stdout, joined.stderr, joined.returncode) == (whole.stdout, whole.stderr, 1)


def test_changed_lines(run, tmp_path):
    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    git("add", "src")
    git("commit", "-m", "a")
    (tmp_path / "src" / "stall.py").write_text(STALL.replace("host.to", "host . to"))
    words = ["src", "--since", "HEAD", "--statistics"]
    whole, joined = run("check", *words), run("merge", *shards(run, 2, *words))
    assert (joined.stdout, joined.returncode) == (whole.stdout, 1)
    assert "SL001" in whole.stdout


@pytest.mark.parametrize("text", ["0/2", "3/2", "1/0", "1", "a/b", "-1/2", "1/2/3", ""])
def test_no_shard(run, text):
    done = run("check", "src", f"--shard={text}")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "--shard" in done.stderr


@pytest.mark.parametrize(
    "word", ["--fix", "--diff", "--watch", "--add-ignore", "--write-baseline=b", "--coverage", "--output-format=sarif"]
)
def test_what_needs_the_whole_run(run, word):
    done = run("check", "src", "--shard", "1/2", word)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("streamlint: --shard ")


def refused(run, *files):
    done = run("merge", *files)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    return done.stderr.removeprefix("streamlint: ").rstrip()


def test_missing_and_twice(run):
    one, two, three = shards(run, 3, "src")
    assert refused(run, one, three) == "missing shard 2/3"
    assert refused(run, two) == "missing shards 1/3, 3/3"
    assert refused(run, one, one, two, three) == f"shard 1/3 is there twice: {one} and {one}"


def test_other_runs(run, tmp_path):
    one, two = shards(run, 2, "src")
    report = json.loads((tmp_path / two).read_text())
    for key, value, told in (
        ("version", "0.0.1", "different versions of streamlint"),
        ("settings", "x", "different settings"),
        ("tree", "x", "different trees"),
        ("shards", 3, "different numbers of shards"),
        ("shard", 1, "there twice"),
    ):
        (tmp_path / "other").write_text(json.dumps({**report, key: value}))
        assert told in refused(run, one, "other")
    run("check", "src", "--select", "SL001", "--shard", "2/2", "-o", "other")
    assert "different settings" in refused(run, one, "other")
    (tmp_path / "src" / "stall.py").write_text(STALL + "\n")
    assert "the files here are not those of the shards" in refused(run, one, two)
    run("check", "src", "--shard", "2/2", "-o", "other")
    assert "different trees" in refused(run, one, "other")


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", "null", '{"streamlint-shard": 1}', "[" * 100_000])
def test_no_report(run, tmp_path, text):
    (tmp_path / "other").write_text(text)
    assert refused(run, "other") == "other: no report of a shard; `streamlint check --shard K/N -o FILE` writes one"


def test_a_report_that_is_not_there(run):
    assert "nowhere" in refused(run, "nowhere")


def test_a_report_changes_no_file(run, tmp_path):
    (name,) = shards(run, 1, "src")
    report = json.loads((tmp_path / name).read_text())
    (tmp_path / name).write_text(json.dumps({**report, "arguments": ["src", "--fix", "--unsafe-fixes"]}))
    assert "--fix" in refused(run, name)
    (tmp_path / name).write_text(json.dumps({**report, "groups": []}))
    assert "do not fit together" in refused(run, name)


def test_the_same_split_under_any_hash_seed(installed, tmp_path):
    texts = set()
    for seed in ("1", "2"):
        installed("check", "src", "--shard", "1/2", "-o", "a.out", env={**os.environ, "PYTHONHASHSEED": seed})
        texts.add((tmp_path / "a.out").read_text())
    assert len(texts) == 1
