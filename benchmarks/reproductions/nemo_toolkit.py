"""nemo-toolkit 3.0.0: greedy CTC decoding reads labels that are still on their way to the host (SL005)."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from . import busy, wrong_of
from .reports import patched

PACKAGE, VERSION = "nemo-toolkit", "3.0.0"
STANDS_IN = (
    "the decoder and its hypotheses are loaded by themselves; what else they import of the package (types, checks, logging, "
    "language models), and omegaconf, are empty classes"
)
DECODER, HYPOTHESES = "nemo.collections.asr.parts.submodules.ctc_greedy_decoding", "nemo.collections.asr.parts.utils.rnnt_utils"
PATH = f"{DECODER.replace('.', '/')}.py"
BATCH, FRAMES, LABELS = 64, 2000, 128


class EmptyType(type):
    """A class whose attributes are empty classes, and which gives back a function that it is put on as a decorator."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return EmptyType(name, (Empty,), {})


class Empty(metaclass=EmptyType):
    """What stands in for the classes, decorators and functions of other modules."""

    def __new__(cls, *given: Any, **_: Any) -> Any:
        return given[0] if len(given) == 1 and callable(given[0]) else object.__new__(cls)

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return function

    def _init_confidence_method(self, *_: Any) -> None:
        pass


class EmptyModule(ModuleType):
    """A module with whatever is asked of it."""

    CUDA_PYTHON_AVAILABLE = False
    __path__: list[str] = []  # noqa: RUF012 the import system asks for it

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = EmptyType(name, (Empty,), {})
        setattr(self, name, made)
        return made


class Finder:
    """Finds the two modules in the package's tree, and an empty one for all the others of the package."""

    def __init__(self, tree: Path, repaired: bool) -> None:
        self.tree, self.repaired = tree, repaired

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name.partition(".")[0] in {"nemo", "omegaconf"} else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None if spec.name in {DECODER, HYPOTHESES} else EmptyModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ not in {DECODER, HYPOTHESES}:
            return
        file = f"{module.__name__.replace('.', '/')}.py"
        text = (self.tree / file).read_text(encoding="utf-8")
        if self.repaired:
            text = patched(file, text, "nemo-toolkit-ctc-greedy")
        exec(compile(text, file, "exec"), module.__dict__)


def decoder(tree: Path, repaired: bool) -> Any:
    """``GreedyCTCInfer``, as released or with the patch of its report."""
    for name in [name for name in sys.modules if name.partition(".")[0] in {"nemo", "omegaconf"}]:
        del sys.modules[name]
    finder = Finder(tree, repaired)
    sys.meta_path.insert(0, finder)
    try:
        importlib.import_module(HYPOTHESES)
        return importlib.import_module(DECODER).GreedyCTCInfer(blank_id=LABELS - 1)
    finally:
        sys.meta_path.remove(finder)


def run(tree: Path) -> dict[str, Any]:
    """64 utterances of 2,000 frames, as log probabilities and as labels, with their lengths on the host: are the labels theirs?"""
    import torch

    lengths = torch.full((BATCH,), FRAMES)
    both = {kind: decoder(tree, kind == "repaired") for kind in ("released", "repaired")}
    probabilities = [torch.rand(BATCH, FRAMES, LABELS, device="cuda").log() for _ in range(4)]
    inputs = {"342": probabilities, "372": [each.argmax(dim=-1) for each in probabilities]}
    outcomes: dict[str, Any] = {}
    for line, given in inputs.items():
        expected = [each.argmax(dim=-1).cpu() if each.dim() == 3 else each.cpu() for each in given]
        turns = itertools.cycle(range(len(given)))  # pinned memory comes back with what the call before left in it

        def trial(one: Any, given: Any = given, expected: Any = expected, turns: Any = turns) -> bool:
            turn = next(turns)
            torch.cuda.synchronize()
            busy(torch)
            found = one.forward(decoder_output=given[turn], decoder_lengths=lengths)[0]
            torch.cuda.synchronize()
            return not torch.equal(torch.stack([each.y_sequence for each in found]), expected[turn])

        outcomes[f"{PATH}:{line}"] = {kind: wrong_of(lambda one=one, trial=trial: trial(one)) for kind, one in both.items()}  # type: ignore[misc]
    return outcomes
