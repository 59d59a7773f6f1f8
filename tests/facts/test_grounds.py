"""What findings rest on, by programs that differ in one thing."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import streamlint
from streamlint.config.settings import Settings
from streamlint.findings.grounds import Grounds

HEAD = """\
import torch

model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
"""
STEP = """\
        loss = model(batch.cuda()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
PLAIN = f"""\
def train(loader, log):
    for batch in loader:
{STEP}        log.append(loss.item())


train([torch.ones(8, 8)], [])
"""


@pytest.fixture
def grounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The grounds of the only finding of a program."""
    monkeypatch.chdir(tmp_path)

    def of(**files: str) -> Grounds:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        (finding,) = streamlint.lint([str(tmp_path)], Settings()).findings
        assert finding.grounds is not None
        return finding.grounds

    return of


def test_a_read_in_the_loop_itself(grounds) -> None:
    found = grounds(a=HEAD + PLAIN)
    assert (found.calls, found.guards, found.loops, found.files, found.beside) == (0, 0, 1, 0, 1)
    assert (found.is_reached, found.is_made, found.is_imported) == (True, True, False)
    assert found.round in ("optimizer", "backward")
    assert not found.is_cpp


def test_nobody_calls_the_loop(grounds) -> None:
    assert not grounds(a=HEAD + PLAIN.replace("train([torch.ones(8, 8)], [])\n", "")).is_reached


@pytest.mark.parametrize(
    ("test", "guards"),
    [
        ("if log:\n            log.append(loss.item())", 1),
        ("if log:\n            if loader:\n                log.append(loss.item())", 2),
        ("if not log:\n            raise ValueError(log)\n        log.append(loss.item())", 0),
        ("if log:\n            print(log)\n        log.append(loss.item())", 0),
    ],
)
def test_branches_that_decide_whether_the_place_runs(grounds, test: str, guards: int) -> None:
    assert grounds(a=HEAD + PLAIN.replace("log.append(loss.item())", test)).guards == guards


def test_calls_that_lead_to_the_place(grounds) -> None:
    near = HEAD + PLAIN.replace("log.append(loss.item())", "note(loss, log)")
    note = "def note(loss, log):\n    log.append(loss.item())\n"
    found = grounds(a=near.replace("def train", f"{note}\n\ndef train"))
    assert (found.calls, found.files) == (1, 0)
    far = grounds(a=f"from b import note\n{near}", b=note)
    assert (far.calls, far.files, far.is_imported) == (1, 1, True)


def test_branches_around_a_call_count_as_well(grounds) -> None:
    text = HEAD + PLAIN.replace("log.append(loss.item())", "if log:\n            note(loss, log)")
    found = grounds(a=text.replace("def train", "def note(loss, log):\n    log.append(loss.item())\n\n\ndef train"))
    assert (found.calls, found.guards) == (1, 1)


CLASS = f"""\
class Trainer:
    def train(self, loader, log):
        for batch in loader:
{textwrap.indent(STEP, "    ")}            log.append(loss.item())
"""


def test_whether_the_program_makes_objects_of_the_class(grounds) -> None:
    assert not grounds(a=HEAD + CLASS).is_made
    assert grounds(a=HEAD + CLASS + "\n\nTrainer().train([torch.ones(8, 8)], [])\n").is_made


def test_an_object_of_a_class_below_counts(grounds) -> None:
    assert grounds(a=HEAD + CLASS + "\n\nclass Own(Trainer):\n    pass\n\n\nOwn().train([torch.ones(8, 8)], [])\n").is_made


def test_what_stands_before_and_behind_the_place(grounds) -> None:
    found = grounds(a=HEAD + PLAIN)
    assert (found.before, found.after) == ("work", "")
    assert grounds(a=HEAD + PLAIN.replace("loss.item())", "loss.item())\n        log.append(loss.exp().item())")).after == "work"
    assert grounds(a=HEAD + PLAIN.replace("loss.item())", "loss.item())\n        log.append(loss.item())")).after == "wait"


def test_grounds_do_not_depend_on_names(grounds, tmp_path: Path) -> None:
    names = {"train": "evaluate", "loss": "debug", "log": "seldom", "model": "cpu", "loader": "tests", "batch": "once"}
    text = HEAD + PLAIN
    first = grounds(a=text)
    for old, new in names.items():
        text = text.replace(f"def {old}(", f"def {new}(") if old == "train" else text
    for old, new in (("train(", "evaluate("), ("loader", "tests"), ("log", "seldom"), ("batch", "once")):
        text = text.replace(old, new)
    assert grounds(a=text) == first
