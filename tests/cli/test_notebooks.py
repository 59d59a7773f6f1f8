"""Notebooks on the command line: places, formats, fixes, comments, baselines, and files that are none."""

from __future__ import annotations

import json
import subprocess

import pytest
from made_notebooks import code, notebook, text_of

LOAD = code("%matplotlib inline\nimport torch\nhost = torch.empty(1 << 24)")
TRAIN = code("%%time\n!nvidia-smi\ndevice = host.to('cuda', non_blocking=True)")
READ = code("copy = device.to('cpu', non_blocking=True)\nprint(copy.numpy())")
WORDS = {"cell_type": "markdown", "metadata": {}, "source": "host.numpy()"}
DATA = notebook(WORDS, LOAD, code("%%cuda\nint main() {}"), TRAIN, READ)
PINNED = DATA.replace(b"1 << 24)", b"1 << 24, pin_memory=True)")
UPLOAD = "nb.ipynb:cell 4:3:15: unpinned-non-blocking [SL001] asynchronous copy from pageable memory; the host may block\n"


@pytest.fixture
def run(forked, tmp_path):
    (tmp_path / "nb.ipynb").write_bytes(DATA)
    return forked


def lines_with(tmp_path, text):
    return [row for row, line in enumerate((tmp_path / "nb.ipynb").read_text().split("\n"), 1) if text in line]


def test_a_finding_names_its_cell(run):
    done = run("check", "--select", "SL001", "--output-format", "concise")
    assert (done.returncode, done.stdout) == (1, UPLOAD)
    assert done.stderr.endswith("1 file, 1 mentions CUDA, 1 finding\n")
    shown = run("check", "--select", "SL001").stdout
    assert " --> nb.ipynb:cell 4:3:15\n  |\n3 | device = host.to('cuda', non_blocking=True)\n" in shown
    assert " ::: nb.ipynb:cell 2:3:14\n  |\n3 | host = torch.empty(1 << 24)\n" in shown


def test_json_counts_rows_in_cells(run):
    (row,) = json.loads(run("check", "--select", "SL001", "--output-format", "json").stdout)
    assert (row["cell"], row["location"], row["end_location"]) == (4, {"row": 3, "column": 15}, {"row": 3, "column": 17})
    assert [(step["cell"], step["location"]["row"]) for step in row["trail"]] == [(2, 3)]
    assert [(edit["cell"], edit["location"]) for edit in row["fix"]["edits"]] == [(2, {"row": 3, "column": 27})]


def test_formats_of_whole_files_count_rows_in_the_file(run, tmp_path):
    """Those that stand beside the lines of a file: the columns of its JSON are nobody's."""

    def asked(format):
        return run("check", "--select", "SL001", "--output-format", format).stdout

    (there,), (origin,) = lines_with(tmp_path, "device = host.to"), lines_with(tmp_path, "torch.empty")
    place = "nb.ipynb:cell 4:3:15"
    assert f",file=nb.ipynb,line={there},endLine={there}::{place}: " in asked("github")
    (issue,) = json.loads(asked("gitlab"))
    assert (issue["location"]["lines"], issue["description"].partition("(")[2]) == ({"begin": there, "end": there}, "cell 4:3:15)")
    (result,) = json.loads(asked("sarif"))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": there, "endLine": there}
    assert result["message"]["text"].endswith("\nat cell 4:3:15")
    assert "fixes" not in result
    (told,) = json.loads(asked("rdjson"))["diagnostics"]
    assert told["location"]["range"] == {"start": {"line": there}, "end": {"line": there}}
    assert told["related_locations"][0]["location"]["range"]["start"] == {"line": origin}
    assert "suggestions" not in told
    message = "asynchronous copy from pageable memory; the host may block (cell 4:3:15)\n"
    assert asked("pylint") == f"nb.ipynb:{there}: [SL001] {message}"
    assert asked("azure") == f"##vso[task.logissue type=warning;sourcepath=nb.ipynb;linenumber={there};code=SL001;]{message}"
    assert f"{place}: unpinned-non-blocking" in asked("junit")
    assert "| `nb.ipynb:cell 4:3` |" in asked("markdown")
    assert asked("grouped").startswith("nb.ipynb:\n  cell 4:3:15  unpinned-non-blocking")


def test_a_fix_changes_the_source_of_its_cell_alone(run, tmp_path):
    assert run("check", "--select", "SL001", "--unsafe-fixes", "--diff").stdout == (
        "--- nb.ipynb:cell 2\n+++ nb.ipynb:cell 2\n@@ -1,3 +1,3 @@\n %matplotlib inline\n import torch\n"
        "-host = torch.empty(1 << 24)\n\\ No newline at end of file\n"
        "+host = torch.empty(1 << 24, pin_memory=True)\n\\ No newline at end of file\n\n"
    )
    assert (tmp_path / "nb.ipynb").read_bytes() == DATA
    assert run("check", "--select", "SL001", "--unsafe-fixes", "--fix").stdout == ""
    assert (tmp_path / "nb.ipynb").read_bytes() == PINNED


def test_a_fix_that_puts_a_line_in_front(run, tmp_path):
    run("check", "--select", "SL005", "--fix", "--unsafe-fixes")
    (row,) = lines_with(tmp_path, "synchronize")
    assert lines_with(tmp_path, "print(copy.numpy())") == [row + 1]
    assert text_of((tmp_path / "nb.ipynb").read_bytes(), 4).startswith(READ["source"].split("\n")[0] + "\n")
    assert run("check", "--select", "SL005").returncode == 0


def test_standard_input(run):
    words = ("check", "--select", "SL001", "--stdin-filename", "in/other.ipynb", "-")
    told = run(*words, "--output-format", "concise", input=DATA.decode())
    assert told.stdout == UPLOAD.replace("nb.ipynb", "in/other.ipynb")
    mended = run(*words, "--fix", "--unsafe-fixes", input=DATA.decode())
    assert mended.stdout == PINNED.decode()
    untouched = run(*words, "--fix", input=DATA.decode())
    assert (untouched.stdout, untouched.returncode) == (DATA.decode(), 1)


def test_comments_hide_findings(run, tmp_path):
    run("check", "--select", "SL001", "--add-ignore=small")
    data = (tmp_path / "nb.ipynb").read_bytes()
    assert data == DATA.replace(b'non_blocking=True)"', b'non_blocking=True)  # streamlint: ignore[SL001] small"', 1)
    assert run("check", "--select", "SL001,SL900").returncode == 0
    (tmp_path / "nb.ipynb").write_bytes(data.replace(b"1 << 24", b"1"))
    unused = run("check", "--select", "SL001,SL900", "--output-format", "concise").stdout
    assert unused.startswith("nb.ipynb:cell 4:3:46: unused-suppression [SL900]")
    (tmp_path / "nb.ipynb").write_bytes(notebook(code("# streamlint: ignore-file[SL001]"), LOAD, TRAIN))
    assert run("check", "--select", "SL001").returncode == 0


def test_a_comment_ends_with_its_cell(run, tmp_path):
    """The last line of a cell is not the line above the next one's first."""
    (tmp_path / "nb.ipynb").write_bytes(notebook(LOAD, code("x = 1\n# streamlint: ignore[SL001]"), code(TRAIN["source"][20:])))
    assert run("check", "--select", "SL001").returncode == 1


def test_configuration_and_baseline(run, tmp_path):
    assert run("check", "--select", "SL001", "--write-baseline", "known.json").returncode == 0
    (tmp_path / "nb.ipynb").write_bytes(notebook(code("x = 1"), LOAD, code("y = 1\nz = 1"), TRAIN, READ))
    assert run("check", "--select", "SL001", "--baseline", "known.json").stderr.endswith("0 findings (1 more in the baseline)\n")
    assert run("check", "--select", "SL001", "--per-file-ignores", "*.ipynb:SL001").returncode == 0
    assert run("check", "--exclude", "*.ipynb").returncode == 2


def test_since(run, tmp_path):
    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "a")
    (tmp_path / "nb.ipynb").write_bytes(DATA.replace(b"print(copy", b"print(1, copy"))
    told = run("check", "--select", "SL001,SL005", "--since", "HEAD", "--output-format", "concise").stdout
    assert told.startswith("nb.ipynb:cell 5:2:")
    assert told.count("\n") == 1


def test_explain_silence(run):
    assert run("check", "--explain-silence", "nb.ipynb:cell 4:3").stdout.startswith(
        "nb.ipynb:cell 4:3: device = host.to('cuda', non_blocking=True)\n  SL001: this line is not silent"
    )
    told = json.loads(run("check", "--explain-silence", "nb.ipynb:5:1", "--output-format", "json").stdout)
    assert (told["cell"], told["row"], told["source"]) == (5, 1, READ["source"].split("\n")[0])
    assert any(reason["message"].startswith("line 1 of cell 5 is a copy from the device") for reason in told["reasons"])
    for place, why in (("nb.ipynb:3", "expected NOTEBOOK:cell NUMBER:LINE"), ("nb.ipynb:cell 1:1", "no such line of Python")):
        done = run("check", "--explain-silence", place)
        assert (done.returncode, why in done.stderr) == (2, True)


def test_what_is_no_notebook_costs_no_other_file(run, tmp_path):
    (tmp_path / "empty.ipynb").touch()
    (tmp_path / "old.ipynb").write_bytes(b'{"nbformat": 3, "worksheets": []}')
    (tmp_path / "syntax.ipynb").write_bytes(notebook(code("import torch"), code("x = = 1\ntorch.cuda.synchronize()")))
    done = run("check", "--select", "SL001", "--output-format", "concise")
    empty, first, old, syntax = done.stdout.splitlines(keepends=True)
    assert (done.returncode, first) == (1, UPLOAD)
    assert empty == "empty.ipynb:1:1: unreadable-source [SL000] no notebook: the file is empty\n"
    assert old.startswith("old.ipynb:1:1: unreadable-source [SL000] a notebook of nbformat 3; only nbformat 4 is read")
    assert syntax.startswith("syntax.ipynb:cell 2:1:5: unreadable-source [SL000]")


def test_other_languages_are_passed_over(run, tmp_path):
    (tmp_path / "r.ipynb").write_bytes(notebook(code("x <- torch::torch_ones(1)"), metadata={"language_info": {"name": "R"}}))
    done = run("check", "-v", "r.ipynb")
    assert (done.returncode, done.stdout) == (0, "")
    assert "skipped r.ipynb: a notebook in R\n" in done.stderr
    assert "skipped" not in run("check", "r.ipynb").stderr


def test_a_kept_run_names_the_cells_as_they_are(run, tmp_path):
    """The cells of outputs, and of words, may come and go without a change of the program."""
    words = ("check", "--select", "SL001", "--output-format", "concise", "--cache-dir", "kept")
    env = {"STREAMLINT_NO_CACHE": None}
    assert run(*words, env=env).stdout == UPLOAD
    assert run(*words, env=env).stdout == UPLOAD
    (tmp_path / "nb.ipynb").write_bytes(notebook(WORDS, WORDS, LOAD, TRAIN, READ))
    assert run(*words, env=env).stdout == UPLOAD
    (tmp_path / "nb.ipynb").write_bytes(notebook(LOAD, TRAIN, READ))
    assert run(*words, env=env).stdout == UPLOAD.replace("cell 4", "cell 2")
