"""The options of ``check``, over an engine that flags the word ``misuse``."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from streamlint import cli

MISUSE = "import torch.cuda\nmisuse = torch.cuda.Stream()\n"


@pytest.fixture(autouse=True)
def project(fake_engine, monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    Path("src").mkdir()
    Path("src/a.py").write_text(MISUSE)
    return fake_engine


def check(capsys, *words):
    code = cli.main(["check", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_scorers_call(capsys):
    code, out, _ = check(capsys, "src", "--output-format", "json", "--no-cache", "--isolated", "--exit-zero", "--select", "ALL")
    (finding,) = json.loads(out)
    assert (code, finding["filename"], finding["location"]) == (0, "src/a.py", {"row": 2, "column": 1})


def test_options_between_paths(capsys):
    Path("b.py").write_text("# another\n" + MISUSE)
    _, out, _ = check(capsys, "src", "--output-format", "concise", "b.py")
    assert [line.split(":")[0] for line in out.splitlines()] == ["b.py", "src/a.py"]


def test_select_all_is_the_widest_form(capsys, project):
    check(capsys)
    check(capsys, "--select", "ALL")
    check(capsys, "--preview")
    assert [options.hidden_sync for options in project] == ["hot-loops", "all-loops", "all-loops"]


def test_ignored_rules_do_not_show(capsys):
    assert check(capsys, "--ignore", "SL0")[0] == 0


def test_per_file_ignores(capsys):
    assert check(capsys, "--per-file-ignores", "src/*.py:SL001")[0] == 0
    assert check(capsys, "--per-file-ignores", "!src/*.py:SL001")[0] == 1
    assert check(capsys, "--per-file-ignores", "lib/*.py:unpinned-non-blocking")[0] == 1


def test_exclude(capsys):
    Path("b.py").write_text("x = 1\n")
    assert check(capsys, "--exclude", "src") == (0, "", "1 file, 0 mention CUDA, 0 findings\n")
    assert check(capsys, "--extend-exclude", "src/a.py")[0] == 0
    assert check(capsys, "--exclude", "src", "src/a.py")[0] == 1
    assert check(capsys, "--exclude", "src", "--force-exclude", "src/a.py")[0] == 0


def test_several_formats_with_a_file_each(capsys):
    _, out, _ = check(capsys, "--output-format", "json:out.json", "--output-format", "concise", "--color", "always")
    assert "\x1b[" in out
    assert json.loads(Path("out.json").read_text())[0]["code"] == "SL001"


def test_an_output_file_has_no_colours(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, out, _ = check(capsys, "-o", "out.txt")
    assert out == ""
    assert "SL001" in Path("out.txt").read_text()
    assert "\x1b" not in Path("out.txt").read_text()


def test_an_output_file_that_cannot_be_written(capsys):
    code, _, err = check(capsys, "-o", "missing/out.txt")
    assert (code, err) == (2, "streamlint: cannot write missing/out.txt: No such file or directory\n")


def test_statistics(capsys):
    assert check(capsys, "--statistics")[:2] == (1, "1\tSL001\t[ ] unpinned-non-blocking\n")
    assert json.loads(check(capsys, "--statistics", "--output-format", "json")[1])[0]["count"] == 1


def test_standard_input(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MISUSE.encode())))
    code, out, err = check(capsys, "-", "--stdin-filename", "lib/new.py", "--output-format", "concise")
    assert (code, out) == (1, "lib/new.py:2:1: unpinned-non-blocking [SL001] made up\n")
    assert err.startswith("1 file, ")


def test_excluded_standard_input(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MISUSE.encode())))
    assert check(capsys, "-", "--stdin-filename", "tests/new.py", "--force-exclude")[:2] == (0, "")


def test_quiet(capsys):
    code, out, err = check(capsys, "-q")
    assert (code, err) == (1, "")
    assert "SL001" in out


def test_verbose_names_the_configuration(capsys):
    Path("streamlint.toml").write_text("")
    assert f"configuration: {Path.cwd()}/streamlint.toml\n" in check(capsys, "-v")[2]
    assert "configuration: none\n" in check(capsys, "-v", "--isolated")[2]


def test_coverage(capsys):
    assert "coverage:\n  roots: 1\n" in check(capsys, "--coverage")[2]
    check(capsys, "--coverage-file", "coverage.json")
    assert json.loads(Path("coverage.json").read_text()) == {"roots": 1}


def test_timings(capsys):
    assert "  parse         500.0 ms\n" in check(capsys, "--timings")[2]


def test_show_files(capsys):
    Path("tests").mkdir()
    Path("tests/b.py").write_text("x = 1\n")
    assert check(capsys, "--show-files") == (0, "src/a.py\n", "")
    assert check(capsys, "--show-files", "--no-default-excludes")[1] == "src/a.py\ntests/b.py\n"
    assert check(capsys, "--show-files", "tests")[1] == "tests/b.py\n"


def test_show_settings(capsys):
    Path("streamlint.toml").write_text('default-stream = "legacy"\nextend-exclude = ["x"]\n')
    out = check(capsys, "--show-settings")[1]
    assert "# settings for src/a.py\n" in out
    assert "default-stream = 'legacy'\n" in out
    assert f"extend-exclude = ['x' in {Path.cwd()}]\n" in out


def test_inline_configuration(capsys, project):
    check(capsys, "--config", 'default-stream = "per-thread"')
    assert project[-1].default_stream == "per-thread"


def test_a_configuration_by_name(capsys, project):
    Path("other.toml").write_text('target-device = "cuda"\n')
    check(capsys, "--config", "other.toml")
    assert project[-1].target_device == "cuda"
    assert check(capsys, "--config", "other.toml", "--isolated")[0] == 2


def test_color(capsys, monkeypatch):
    assert "\x1b" not in check(capsys)[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" in check(capsys)[1]
    assert "\x1b" not in check(capsys, "--color", "never")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in check(capsys)[1]


def test_verify_is_not_imported_by_check():
    code = "import sys; from streamlint import cli; cli.main(['check', '.']); print('streamlint.verify' in sys.modules, file=sys.stderr)"
    Path("src/a.py").write_text("x = 1\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.endswith("False\n")


def test_start_up_imports_no_parser():
    code = "import sys; from streamlint import cli; cli.main(['check', '.']); print(sorted(sys.modules), file=sys.stderr)"
    Path("src/a.py").write_text("x = 1\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name in (
        "tree_sitter",
        "rich",
        "click",
        "pathspec",
        "streamlint.runner.engine",
        "streamlint.checks.base",
        "streamlint.discovery.seams",
        "tomllib",
    ):
        assert f"'{name}'" not in done.stderr


def test_a_log_has_whole_source_lines(capsys):
    """A terminal has columns, a log has none."""
    Path("src/a.py").write_text(f"import torch.cuda\nmisuse = torch.cuda.Stream()  # {'x' * 200}\n")
    assert f"# {'x' * 200}\n" in check(capsys)[1]
    check(capsys, "-o", "out.txt")
    assert f"# {'x' * 200}\n" in Path("out.txt").read_text()
