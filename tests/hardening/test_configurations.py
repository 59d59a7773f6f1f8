"""Every key of a configuration and of a model's rows with values of every kind, and model files that cannot be read."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hardening.groups import as_anyone
from hardening.inputs import MISUSE

from streamlint import cli
from streamlint.config.settings import KEYS, Resolver
from streamlint.models.effects import EFFECTS
from streamlint.models.keys import HEAD, ROUND, ROWS, STEP, TRAIT, TYPE, Key
from streamlint.support.errors import ConfigError

PACKAGE = Path(__file__).parents[2] / "streamlint"
ODD = '"\\u001b[31m\\n::error::x\\u2028"'
VALUES = [
    *("1", "-1", "1.5", "inf", "nan", "true", "99999999999999999999999", "2024-01-01", "2024-01-01T00:00:00Z", '""', '"x"', ODD),
    *('"*"', '"["', '"!"', '"\\u0000"', '"~nobody-at-all/x"', '"/"', '"."'),
    *("[]", "[1]", '["x"]', "[[]]", "[{}]", '["\\u0000"]', '["!"]', '["["]', '["**"]', f"[{ODD}]"),
    *("{}", "{a = 1}", "{a = {}}", '{"\\u0000" = ["SL001"]}', '{"[" = ["SL001"]}', '{"x" = []}', f'{{"x" = [{ODD}]}}'),
    *(f"{{{ODD} = []}}", f'{{{ODD} = ["z"]}}'),
]
SHORT = ["1", "-1", "true", '"0"', '"*"', '"self"', ODD, "[]", '["x"]', "[[]]", "{}", "2024-01-01", '["99999999999999999999"]']
RIGHT = {
    "names": '["a.b"]',
    "kind": '"buffer"',
    "effect": '"factory"',
    "value": '"h2d"',
    "methods": '["m"]',
    "does": '"backward"',
    "traits": '"to-host"',
}
TABLES = {
    "type": (("names", "kind"), [key.name for key in TYPE]),
    "call": (("names", "effect"), ()),
    "attribute": (("names", "effect"), ("type",)),
    "constant": (("names", "value"), ()),
    "step": (("names", "methods"), [key.name for key in STEP]),
    "round": (("names", "does"), [key.name for key in ROUND]),
    "trait": (("names", "traits"), [key.name for key in TRAIT]),
}
SOURCE = """import torch, lib
x = torch.empty(9, device="cuda")
y = lib.call(x, x, x, key=1)
z = y.to("cpu", non_blocking=True)
z.numpy()
a.b(y)
"""


def of_keys() -> Iterator[str]:
    yield from (f"{key} = {value}\n" for key in KEYS for value in VALUES)


def of_models() -> Iterator[str]:
    yield from (f"models = [{{{key} = {value}}}]\n" for key in (*(key.name for key in HEAD), *ROWS) for value in VALUES)
    for table, (needed, more) in TABLES.items():
        for key in dict.fromkeys((*needed, *more)):
            for value in VALUES:
                row = {**{one: RIGHT[one] for one in needed}, key: value}
                yield f"models = [{{{table} = [{{{', '.join(f'{one} = {said}' for one, said in row.items())}}}]}}]\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _is_right(folder: Path, text: str) -> bool:
    (folder / "streamlint.toml").write_text(text)
    try:
        Resolver().of_folder(folder)
    except ConfigError as error:
        assert str(folder) in str(error), text  # noqa: PT017
        return False
    return True


def _lint(capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.main(["check", "--no-cache", "--output-format", "concise", "."])
    errors = capsys.readouterr().err
    assert (code in (0, 1, 2), "internal error" in errors) == (True, False), errors


@pytest.mark.parametrize(("kind", "share"), [(of_keys, 3), (of_models, 8)], ids=["keys", "models"])
def test_any_value(kind: Callable[[], Iterator[str]], share: int, tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused with the name of its file, or source is linted by it (by a share of them, always the same)."""
    (tree / "a.py").write_text(SOURCE)
    right = 0
    for number, text in enumerate(kind()):
        if _is_right(tree, text):
            right += 1
            if number % share == 0:
                _lint(capsys)
    assert 0 < right < number


def test_any_value_of_a_row(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is not refused stands in one configuration; each row is called in a function of its own."""
    rows: list[str] = []
    for effect in EFFECTS.values():
        for key, value in itertools.product(effect.keys, SHORT):
            needed = "".join(f", {one.name} = {_any_of(one)}" for one in effect.keys if one.needed and one != key)
            row = f'{{names = ["lib.f{len(rows)}"], effect = "{effect.name}", {key.name} = {value}{needed}}}'
            if _is_right(tree, f'models = [{{library = "torch", call = [{row}]}}]\n'):
                rows.append(row)
    assert len(rows) > 550
    (tree / "streamlint.toml").write_text(f'models = [{{library = "torch", call = [{", ".join(rows)}]}}]\n')
    body = "    x = torch.empty(9, device='cuda')\n    y = lib.f%(x, x, x, key=1)\n    y.to('cpu', non_blocking=True).numpy()\n"
    (tree / "a.py").write_text("import torch, lib\n" + "".join(f"def g{n}():\n{body.replace('%', str(n))}" for n in range(len(rows))))
    _lint(capsys)


def _any_of(key: Key) -> str:
    """A value that a key accepts."""
    return f'"{key.words[0]}"' if key.words else '"torch.cuda"' if key.kind == "module" else '"0"'


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, which may be broken."""
    return Path(shutil.copytree(PACKAGE, tmp_path_factory.mktemp("site") / "streamlint"))


BROKEN = ["gone", "all-gone", "locked", "a-folder", "a-pipe", "a-device", "no-text", "huge", "no-toml", "another-word", "deep"]


@pytest.mark.parametrize("what", BROKEN)
def test_model_files_of_an_installation(what: str, installed: Path, tmp_path: Path) -> None:
    """Without its rows a library's misuse would be no misuse: the run says so instead of finding nothing."""
    models, aside = installed / "models", tmp_path / "models"
    models.rename(aside)
    shutil.copytree(aside, models)
    try:
        _break(models, what)
        (tmp_path / "a.py").write_text(MISUSE)
        environment = {**os.environ, "PYTHONPATH": str(installed.parent)}
        command = [sys.executable, "-m", "streamlint", "check", "--isolated", "--no-cache", "a.py"]
        run = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True, "timeout": 60, "preexec_fn": as_anyone}
        done = subprocess.run(command, check=False, **run)  # type: ignore[call-overload]
        assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (2, "", False), done.stderr
        assert "torch.toml" in done.stderr or "this installation is not whole" in done.stderr
    finally:
        shutil.rmtree(models)
        aside.rename(models)


def _break(models: Path, what: str) -> None:
    path = models / "torch.toml"
    text = path.read_text()
    if what == "all-gone":
        for each in models.glob("*.toml"):
            each.unlink()
        return
    path.unlink()
    if what == "gone":
        path.symlink_to("nowhere.toml")
    elif what == "locked":
        path.write_text(text)
        path.chmod(0)
    elif what == "a-folder":
        path.mkdir()
    elif what == "a-pipe":
        os.mkfifo(path)
    elif what == "a-device":
        path.symlink_to("/dev/zero")
    elif what == "no-text":
        path.write_bytes(text.encode() + b'\n[[call]]\nnames = ["\xff"]\n')
    elif what == "huge":
        with path.open("wb") as file:
            file.truncate(1 << 30)
    elif what == "no-toml":
        path.write_text(text + "\n[[call]\n")
    elif what == "deep":
        path.write_text(text + "\n[[call]]\nnames = " + "[" * 100_000)
    else:
        path.write_text(text + '\n[[call]]\nnames = ["torch.x"]\neffect = "nothing"\n')
