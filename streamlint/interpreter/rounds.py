"""Rounds that do not train and are looked at on request (``hidden-sync = "all-loops"``): decoding, denoising, a framework's step."""

from __future__ import annotations

import functools

from streamlint import program as p
from streamlint.interpreter.hot import enclosing, functions
from streamlint.interpreter.index import File, dotted_name

# Methods that a framework calls in each step, and the class that makes them so.
_STEPS = {"training_step": "Module", "compute_loss": "Trainer", "_compute_loss": "Trainer", "loss_step": "Module"}


def is_framework_step(function: p.Function, owner: p.Class | None, file: File) -> bool:
    """Whether a framework calls this method in each step of training: of a LightningModule, of a Trainer."""
    kind = _STEPS.get(function.name)
    if kind is None or owner is None:
        return False
    return any(_last(dotted_name(file, base) or _written(base)).endswith(kind) for base in owner.bases)


def _last(dotted: str) -> str:
    return dotted.rpartition(".")[2]


def _written(base: p.Expression) -> str:
    return base.id if isinstance(base, p.Name) else base.name if isinstance(base, p.Attr) else ""


@functools.lru_cache(maxsize=4096)
def feeds_back(node: p.Loop, file: File) -> bool:
    """Whether what a called value gives (``model(x)``) goes back into it in the next round."""
    if file.is_cuda or "torch" not in file.module.text:
        return False
    owner = enclosing(file, node)[1]
    flows: dict[str, set[str]] = {}
    for statement in _assignments(node.body):
        sources = {n.id for n in p.walk(statement.value) if isinstance(n, p.Name)}
        for target in statement.targets:
            for name in {n.id for n in p.walk(target) if isinstance(n, p.Name)}:
                flows.setdefault(name, set()).update(sources | ({name} if statement.op else set()))
    for statement in _assignments(node.body):
        results = {n.id for target in statement.targets for n in p.walk(target) if isinstance(n, p.Name)}
        for call in p.walk(statement.value):
            if isinstance(call, p.Call) and _is_value(call.function, file, owner):
                given = {n.id for arg in call.args for n in p.walk(arg) if isinstance(n, p.Name)}
                if any(_derives(name, results, flows, set()) for name in given):
                    return True
    return False


def _assignments(body: list[p.Statement]) -> list[p.Assign]:
    return [n for statement in body for n in p.walk(statement) if isinstance(n, p.Assign) and n.value is not None]


def _derives(name: str, results: set[str], flows: dict[str, set[str]], seen: set[str]) -> bool:
    """Whether the loop gives ``name`` a value that comes from ``results``."""
    if name in seen or name not in flows:
        return False
    seen.add(name)
    return bool(flows[name] & results) or any(_derives(source, results, flows, seen) for source in flows[name])


def _is_value(function: p.Expression, file: File, owner: p.Class | None) -> bool:
    """Whether what is called is a value (a module, most likely), not a function or a class that is known by name."""
    if isinstance(function, p.Name):
        return (
            function.id not in functions(file)
            and function.id not in file.classes
            and function.id not in file.module.imports
            and (function.id not in _BUILTINS)
        )
    if isinstance(function, p.Attr) and isinstance(function.value, p.Name) and function.value.id == "self":
        return owner is None or function.name not in owner.methods
    return False


_BUILTINS = frozenset("len range enumerate zip float int str list dict tuple set sum min max abs round sorted print next iter map".split())
