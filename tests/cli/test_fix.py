"""``--fix`` and what goes with it."""

from __future__ import annotations

import json

import pytest

HAZARDS = """\
import torch


def load(n=1 << 20):
    host = torch.empty(n)
    return host.to("cuda", non_blocking=True)


def read(x):
    host = x.cuda().to("cpu", non_blocking=True)
    return host.numpy()
"""
WAIT = "    torch.cuda.current_stream().synchronize()\n    return host.numpy()\n"
SAFE = HAZARDS.replace("    return host.numpy()\n", WAIT)
BOTH = SAFE.replace("torch.empty(n)", "torch.empty(n, pin_memory=True)")
DIFF = """\
--- a.py
+++ a.py
@@ -8,4 +8,5 @@
{blank}
 def read(x):
     host = x.cuda().to("cpu", non_blocking=True)
+    torch.cuda.current_stream().synchronize()
     return host.numpy()

""".replace("{blank}", " ")


@pytest.fixture
def run(forked):
    return forked


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(HAZARDS)
    return path


def test_fixes_are_counted(run, source):
    done = run("check", "--output-format", "concise")
    assert [" [*] " in line for line in done.stdout.splitlines()] == [False, True]
    assert "[*] 1 fixable with --fix, 1 more with --unsafe-fixes\n" in done.stderr
    wide = run("check", "--output-format", "concise", "--unsafe-fixes")
    assert [" [*] " in line for line in wide.stdout.splitlines()] == [True, True]
    assert source.read_text() == HAZARDS
    assert run("check", "--statistics").stdout == "1\tSL001\t[*] unpinned-non-blocking\n1\tSL005\t[*] d2h-read-before-sync\n"


def test_fix_applies_what_is_safe(run, source):
    done = run("check", "--fix", "--output-format", "concise")
    assert (done.returncode, source.read_text()) == (1, SAFE)
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["unpinned-non-blocking"]
    assert done.stderr.endswith("1 file, 1 mentions CUDA, 1 finding (1 fixed)\n")


def test_unsafe_fixes_are_asked_for(run, source):
    done = run("check", "--fix", "--unsafe-fixes", "--show-fixes")
    assert (done.returncode, done.stdout, source.read_text()) == (0, "", BOTH)
    assert done.stderr == (
        "fixed:\n  a.py:\n    1 x SL001 (unpinned-non-blocking)\n    1 x SL005 (d2h-read-before-sync)\n"
        "1 file, 1 mentions CUDA, 0 findings (2 fixed)\n"
    )
    assert run("check", "--fix", "--exit-non-zero-on-fix").returncode == 0


def test_exit_non_zero_on_fix(run, source):
    assert run("check", "--fix", "--unsafe-fixes", "--exit-non-zero-on-fix").returncode == 1


def test_fix_only_tells_nothing_of_what_is_left(run, source):
    done = run("check", "--fix-only")
    assert (done.returncode, done.stdout, source.read_text()) == (0, "", SAFE)


def test_diff_writes_nothing(run, source):
    done = run("check", "--diff")
    assert (done.returncode, done.stdout, done.stderr) == (1, DIFF, "would fix 1 finding; 1 more with --unsafe-fixes\n")
    assert source.read_text() == HAZARDS
    source.write_text(SAFE)
    assert run("check", "--diff").returncode == 0


def test_standard_input_comes_back_fixed(run):
    done = run("check", "-", "--stdin-filename", "a.py", "--fix", input=HAZARDS)
    assert (done.returncode, done.stdout) == (1, SAFE)
    same = run("check", "-", "--stdin-filename", "a.py", "--fix", input="x = 1\n")
    assert (same.returncode, same.stdout) == (0, "x = 1\n")


def test_the_encoding_of_a_file_is_kept(run, tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes(b"\xef\xbb\xbf# \xc3\xa9\r\n" + HAZARDS.replace("\n", "\r\n").encode())
    run("check", "--fix", "--unsafe-fixes")
    assert path.read_bytes() == b"\xef\xbb\xbf# \xc3\xa9\r\n" + BOTH.replace("\n", "\r\n").encode()
    path.write_bytes(b"# coding: latin-1\n# \xe9\n" + HAZARDS.encode())
    run("check", "--fix", "--unsafe-fixes")
    assert path.read_bytes() == b"# coding: latin-1\n# \xe9\n" + BOTH.encode()


def test_what_is_suppressed_is_not_fixed(run, source):
    text = HAZARDS.replace("host.numpy()", "host.numpy()  # streamlint: ignore[SL005]")
    source.write_text(text)
    run("check", "--fix", "--unsafe-fixes", "--ignore", "SL001")
    assert source.read_text() == text


def test_machines_are_told_of_fixes(run, source):
    rows = json.loads(run("check", "--output-format", "json").stdout)
    assert [row["fix"]["applicability"] for row in rows] == ["unsafe", "safe"]
    (edit,) = rows[1]["fix"]["edits"]
    assert edit == {
        "content": "    torch.cuda.current_stream().synchronize()\n",
        "filename": "a.py",
        "cell": None,
        "location": {"row": 11, "column": 1},
        "end_location": {"row": 11, "column": 1},
    }


def test_a_fix_sees_the_files_around(run, tmp_path):
    """The loader is made in another file: its fix is not this file's."""
    (tmp_path / "loaders.py").write_text("from torch.utils.data import DataLoader\n\n\ndef make(data):\n    return DataLoader(data)\n")
    (tmp_path / "a.py").write_text(
        "import torch\nfrom loaders import make\n\n\ndef run(data, net):\n    for x in make(data):\n"
        '        net(x.to("cuda", non_blocking=True))\n'
    )
    rows = json.loads(run("check", "--output-format", "json").stdout)
    assert [(row["code"], row["fix"]) for row in rows] == [("SL001", None)]


TWICE = """\
import torch


def run(x, y, lane, log):
    with torch.cuda.stream(lane):
        a = x.cuda().to("cpu", non_blocking=True)
    b = y.cuda().to("cpu", non_blocking=True)
    log("copying")
    return a.numpy(), b.numpy()
"""


def test_diff_shows_what_fix_writes(run, source):
    """One pass does not do: both waits would have the same name."""
    source.write_text(TWICE)
    would = run("check", "--diff")
    assert (would.stderr, source.read_text()) == ("would fix 2 findings\n", TWICE)
    assert run("check", "--fix").returncode == 0
    added = [line[1:] for line in would.stdout.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert [line for line in source.read_text().splitlines() if line not in TWICE.splitlines()] == added
    assert len(added) == 4


def test_a_diff_names_the_option_for_unsafe_fixes(run, source):
    source.write_text(SAFE)
    done = run("check", "--fix", "--diff")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "would fix 0 findings; 1 more with --unsafe-fixes\n")
    assert run("check", "--diff", "--unsafe-fixes").stderr == "would fix 1 finding\n"
