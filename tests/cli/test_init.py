"""``streamlint init``: what it finds in a project, what it writes, and what it leaves alone."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml
from made_notebooks import code, notebook

from streamlint import cli
from streamlint.commands.init_text import NO_DEFAULT
from streamlint.config.settings import WORDS, Settings, load

ROOT = Path(__file__).parents[2]

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[import-not-found, no-redef]

TORCH = "import torch\n\ns = torch.cuda.Stream()\n"
CUDA = "void f(cudaStream_t s) { cudaStreamSynchronize(s); }\n"
OTHERS = '[project]\nname = "x"  # mine\n\n[tool.ruff]\nline-length = 100\n'
OPTION = re.compile(r"^# (?=[a-z-]+ = )", re.MULTILINE)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Python and CUDA, a vendored folder, a submodule, tests within and outside of folders for them."""
    monkeypatch.chdir(tmp_path)
    texts = {
        "pkg/a.py": TORCH,
        "pkg/plain.py": "x = 1\n",
        "csrc/k.cu": CUDA,
        "csrc/external/e.cu": CUDA,
        "tests/test_a.py": TORCH,
        "pkg/test_b.py": TORCH,
        "core/sub.cu": CUDA,
        "pkg/demo/__init__.py": "",
        "pkg/demo/d.py": TORCH,
        "docs/plain.py": "x = 1\n",
        ".gitmodules": '[submodule "core"]\n\tpath = core\n\turl = x\n',
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def init(capsys, *words, code=0):
    assert cli.main(["init", *words]) == code
    return capsys.readouterr()


def test_a_file_of_its_own(project, capsys):
    told = init(capsys).out
    text = (project / "streamlint.toml").read_text()
    assert tomllib.loads(text) == {"extend-exclude": ["/core/", "/csrc/external/", "test_*.py"]}
    assert '    "/core/",  # a git submodule\n    "/csrc/external/",  # code of others\n    "test_*.py",  # tests\n' in text
    assert "# Files that can be linted: 7 of Python, 3 of C++. Files that use CUDA, by library: PyTorch (2), CUDA runtime (1).\n" in text
    assert "# Left out by default: tests/." in text
    assert told.startswith("wrote streamlint.toml; 10 files in Python, Cython or C++, libraries: PyTorch, CUDA runtime, excluded: /core/, ")
    assert "  streamlint check --write-baseline known.json  accept it" in told
    assert yaml.safe_load(told[told.index("\nrepos:") :]) == {"repos": [{"repo": "local", "hooks": [published() | {"language": "system"}]}]}


def published():
    """The hook that the repository offers, less what pre-commit asks of repositories alone."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (hook,) = [hook for hook in hooks if hook["id"] == "streamlint"]
    return {key: hook[key] for key in ("id", "name", "entry", "types_or", "require_serial")}


def test_what_is_excluded_is_not_linted(project, capsys):
    init(capsys)
    assert cli.main(["check", "--show-files"]) == 0
    assert capsys.readouterr().out.split() == [
        "csrc/k.cu",
        "docs/plain.py",
        "pkg/a.py",
        "pkg/demo/__init__.py",
        "pkg/demo/d.py",
        "pkg/plain.py",
    ]


def test_options_that_are_comments_show_the_defaults(project, capsys):
    init(capsys)
    path = project / "streamlint.toml"
    active = OPTION.sub("", path.read_text())
    keys = tomllib.loads(active)
    assert {"preview", "ignore", "baseline", "include", *WORDS} <= set(keys)
    path.write_text(active)
    settings = load(path)
    shown = {key.replace("-", "_") for key in keys} - {"extend_exclude", "include", "extend_select", "ignore", *NO_DEFAULT}
    plain = Settings()
    assert {key: getattr(settings, key) for key in shown} == {key: getattr(plain, key) for key in shown}
    assert settings.codes == plain.codes
    assert keys["include"] == ["*.cu", "*.py"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_pyproject_gets_a_table_and_nothing_else_changes(project, capsys, end):
    path = project / "pyproject.toml"
    old = OTHERS.replace("\n", end).encode()
    path.write_bytes(old)
    assert init(capsys).out.startswith("wrote [tool.streamlint] to pyproject.toml; ")
    new = path.read_bytes()
    assert new.startswith(old + f"{end}[tool.streamlint]{end}# All keys".encode())
    assert new.replace(b"\r\n", b"").count(b"\n") == (0 if end == "\r\n" else new.count(b"\n"))
    assert len(load(path).extend_exclude) == 3


def test_a_table_is_replaced_only_when_that_is_asked(project, capsys):
    path = project / "pyproject.toml"
    ours = '[tool.streamlint]\npreview = true\n\n[[tool.streamlint.models]]\nlibrary = "m"\n'
    old = f'[project]\nname = "x"\n\n{ours}\n# of ruff\n[tool.ruff]\nline-length = 9\n'
    path.write_text(old)
    told = init(capsys, code=2).err
    assert told == "streamlint: pyproject.toml: [tool.streamlint] is there already; --force replaces it\n"
    assert path.read_text() == old
    init(capsys, "--force")
    new = path.read_text()
    assert new.startswith('[project]\nname = "x"\n\n[tool.streamlint]\n# All keys')
    assert new.endswith("\n\n# of ruff\n[tool.ruff]\nline-length = 9\n")
    assert not load(path).preview
    init(capsys, "--force")
    assert path.read_text() == new


@pytest.mark.parametrize("name", ["streamlint.toml", ".streamlint.toml"])
def test_a_file_is_replaced_only_when_that_is_asked(project, capsys, name):
    (project / name).write_text("preview = true\n")
    (project / "pyproject.toml").write_text(OTHERS)
    assert init(capsys, code=2).err == f"streamlint: {name}: is there already; --force replaces it\n"
    init(capsys, "--force")
    assert not load(project / name).preview
    assert (project / "pyproject.toml").read_text() == OTHERS


def test_dry_run_writes_nothing(project, capsys):
    (project / "pyproject.toml").write_text(OTHERS)
    told = init(capsys, "--dry-run")
    assert told.err == "streamlint: would write pyproject.toml\n"
    assert told.out.startswith("[tool.streamlint]\n# All keys")
    assert (project / "pyproject.toml").read_text() == OTHERS
    init(capsys)
    assert (project / "pyproject.toml").read_text() == f"{OTHERS}\n{told.out}"
    assert "--force is needed" in init(capsys, "--dry-run").err


def test_standalone_beside_a_pyproject(project, capsys):
    (project / "pyproject.toml").write_text(OTHERS)
    init(capsys, "--standalone")
    assert (project / "streamlint.toml").exists()
    (project / "streamlint.toml").unlink()
    (project / "pyproject.toml").write_text("[tool.streamlint]\n")
    assert "would hide; take it out first" in init(capsys, "--standalone", "--force", code=2).err


def test_a_folder_below_another_configuration(project, capsys):
    (project / "pyproject.toml").write_text("[tool.streamlint]\npreview = true\n")
    init(capsys, "csrc")
    text = (project / "csrc" / "streamlint.toml").read_text()
    assert 'So far "../pyproject.toml" held here.\n# extend = "../pyproject.toml"\n' in text
    assert "target-device" not in text, "no Python is there"
    (project / "csrc" / "streamlint.toml").write_text(OPTION.sub("", text).replace("preview = false", ""))
    assert load(project / "csrc" / "streamlint.toml").preview


def test_many_folders_of_one_name_are_one_pattern(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "abcd":
        (tmp_path / name / "vendor").mkdir(parents=True)
        (tmp_path / name / "vendor" / "k.cu").write_text(CUDA)
    init(capsys)
    assert tomllib.loads((tmp_path / "streamlint.toml").read_text()) == {"extend-exclude": ["vendor/"]}


@pytest.mark.skipif(os.name == "nt", reason="such names are POSIX's")
def test_a_folder_with_an_odd_name(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    odd = os.path.join(os.fsencode(tmp_path), b'a[b]*"\xff', b"vendor")
    os.makedirs(odd)
    with open(os.path.join(odd, b"k.cu"), "w") as file:
        file.write(CUDA)
    init(capsys)
    assert tomllib.loads((tmp_path / "streamlint.toml").read_text()) == {"extend-exclude": [r'/a\[b\]\*"?/vendor/']}
    assert cli.main(["check", "--show-files"]) == 2  # nothing is left


def test_a_notebook_is_read_for_its_libraries(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nb.ipynb").write_bytes(notebook(code(TORCH)))
    assert "1 file in Python, Cython or C++, libraries: PyTorch, " in init(capsys).out
    assert '# include = ["*.ipynb"]\n' in (tmp_path / "streamlint.toml").read_text()


def test_an_empty_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "0 files in Python, Cython or C++, libraries: none, excluded: nothing more than by default" in init(capsys).out
    assert load(tmp_path / "streamlint.toml").codes == Settings().codes


@pytest.mark.parametrize(
    ("words", "text", "told"),
    [
        (["gone"], None, "gone: no such file or folder"),
        (["pyproject.toml"], "", "pyproject.toml: not a folder"),
        (["--forc"], None, "unknown option '--forc'; did you mean '--force'?"),
        ([], "[project\n", "pyproject.toml: "),
        ([], "tool = { x = 1 }\n", "pyproject.toml: a table [tool.streamlint] cannot be written here; use --standalone"),
        (["--force"], "[tool]\nstreamlint = { preview = true }\n", "pyproject.toml: a table [tool.streamlint] cannot be written here"),
        (["--force"], '[tool.streamlint]\nignore = ["""\n[x]\n"""]\n', "pyproject.toml: "),
    ],
)
def test_mistakes_change_nothing(tmp_path, capsys, monkeypatch, words, text, told):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "pyproject.toml"
    if text is not None:
        path.write_text(text)
    assert told in init(capsys, *words, code=2).err
    assert [name.name for name in tmp_path.iterdir()] == (["pyproject.toml"] if text is not None else [])
    assert text is None or path.read_text() == text


def test_a_file_that_cannot_be_written(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def refuse(path, data):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("streamlint.commands.reporting.write_output", refuse)
    assert init(capsys, code=2).err == "streamlint: cannot write streamlint.toml: Permission denied\n"
