"""What the command line tells about itself: help, completion, schemas; and the library beside it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import streamlint
from streamlint import cli
from streamlint.commands import check_options, completion, init, models, rule, rules, schema
from streamlint.config.settings import KEYS

ROOT = Path(__file__).parents[2]
STALL = 'import torch\n\n\ndef load(n):\n    host = torch.empty(n, 1 << 16)\n    return host.to("cuda", non_blocking=True)\n'


@pytest.mark.parametrize("command", [[], *([name] for name in cli.COMMANDS)], ids=" ".join)
def test_help(run, command):
    done = run(*command, "--help", env={**os.environ, "COLUMNS": "80"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: streamlint")
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("module", "name"),
    [(check_options, "check"), (init, "init"), (models, "models"), (rule, "rule"), (rules, "rules")],
)
def test_examples_are_command_lines(module, name):
    for command, _ in module.EXAMPLES:
        words = shlex.split(command.rpartition("| ")[2])
        assert words[:2] == ["streamlint", name]
        module.build_parser().read(words[2:])


def test_the_module_is_the_command(tmp_path):
    done = subprocess.run([sys.executable, "-m", "streamlint", "--version"], capture_output=True, text=True)
    assert done.stdout == f"streamlint {streamlint.__version__}\n"


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_completion(run, shell):
    done = run("generate-shell-completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(word in done.stdout for word in ("explain-silence", "litmus", "output-format"))


def test_fish_completes(capsys, tmp_path):
    """Each command and option stands in a line of its own; where there is a fish, it is asked as well."""
    assert cli.main(["generate-shell-completion", "fish"]) == 0
    script = capsys.readouterr().out
    lines = script.splitlines()
    assert all(any(line.startswith("complete -c streamlint ") and name in line for line in lines) for name in cli.COMMANDS)
    options = [line for line in lines if line.startswith("complete -c streamlint ") and "explain-silence" in line]
    assert len(options) == 1
    assert options[0].endswith("-d 'say why no finding stands at a line (nb.ipynb:cell 3:2)'")
    if shell := shutil.which("fish"):
        (tmp_path / "script").write_text(script)
        ask = 'source ./script; complete -C "streamlint check --expl"'
        done = subprocess.run([shell, "-N", "-c", ask], cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout.startswith("--explain-silence"), done.stderr


def test_powershell_completes(capsys, tmp_path):
    """The commands, and the options of one; where there is a PowerShell, it is asked as well."""
    assert cli.main(["generate-shell-completion", "powershell"]) == 0
    script = capsys.readouterr().out
    (commands,) = re.findall(r"^    '_shtab_streamlint' = @\((.*?'check'.*)\)$", script, re.MULTILINE)
    assert commands == ", ".join(f"'{name}'" for name in cli.COMMANDS)
    (options,) = re.findall(r"^    '_shtab_streamlint_rules' = @\((.*'--enabled'.*)\)$", script, re.MULTILINE)
    assert {"'--preview'", "'--no-preview'", "'--format'"} <= set(options.split(", "))
    assert "Register-ArgumentCompleter -Native -CommandName" in script
    if shell := shutil.which("pwsh"):
        (tmp_path / "script.ps1").write_text(script)
        ask = ". ./script.ps1; (TabExpansion2 'streamlint check --expl' 23).CompletionMatches.CompletionText"
        done = subprocess.run([shell, "-NoProfile", "-Command", ask], cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout.strip() == "--explain-silence", done.stderr


def test_bash_completes(run, tmp_path):
    (tmp_path / "script").write_text(run("generate-shell-completion", "bash").stdout)
    ask = 'source ./script; COMP_WORDS=(streamlint check --expl); COMP_CWORD=2; _shtab_streamlint; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", ask], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "--explain-silence\n"


def test_completion_of_an_unknown_shell(run):
    assert run("generate-shell-completion", "dos").returncode == 2


# Schemas ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", schema.SCHEMAS)
def test_published_schemas_are_current(name):
    published = (ROOT / "docs" / "schemas" / f"{name}.json").read_text()
    assert published == schema.text_of(name), f"write it anew: python -m streamlint.commands.schema {name} > docs/schemas/{name}.json"


def test_each_key_is_described():
    assert set(schema.TELLS) == set(KEYS)


def test_what_is_written_fits_the_schema_of_findings(run, tmp_path):
    import jsonschema

    (tmp_path / "a.py").write_text(STALL)
    (tmp_path / "b.py").write_text("import torch\ns = torch.cuda.Stream(\n")
    rows = json.loads(run("check", "--output-format", "json").stdout)
    assert [row["code"] for row in rows] == ["SL001", "SL000"]
    jsonschema.validate(rows, schema.findings())


# The library ------------------------------------------------------------------------------------------------------------------


def test_the_library(tmp_path):
    (tmp_path / "a.py").write_text(STALL)
    report = streamlint.lint([tmp_path], streamlint.Settings.of(select=["unpinned-non-blocking"]))
    assert isinstance(report, streamlint.Report)
    assert [(found.code, found.span.row, bool(found.fingerprint)) for found in report.findings] == [("SL001", 6, True)]
    assert (ROOT / "streamlint" / "py.typed").is_file()


def test_the_library_raises_what_the_command_line_prints(tmp_path):
    with pytest.raises(streamlint.StreamlintError, match="no such file or folder"):
        streamlint.lint([tmp_path / "missing.py"])
    with pytest.raises(streamlint.StreamlintError, match="did you mean 'select'"):
        streamlint.Settings.of(selct=["SL001"])


def test_the_version_needs_no_heavy_import():
    heavy = ("tree_sitter", "argparse", "json", "shtab", "watchfiles", "pathspec", "dataclasses", "typing")
    ask = f"import sys; from streamlint import cli; cli.main(['--version']); print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-S", "-c", ask], env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.stdout.splitlines()[1:] == ["[]"]
