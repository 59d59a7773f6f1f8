"""Rounds that are looked at on request (``hidden-sync = "all-loops"``): decoding, denoising, steps whose loop is out of view."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from streamlint import program as p
from streamlint.interpreter.at_hand import class_at_hand, enclosing, functions
from streamlint.interpreter.gradients import is_decorated_off
from streamlint.interpreter.hot import BACKWARD, is_hot, own_calls, steps_optimizer
from streamlint.interpreter.index import File, dotted_name
from streamlint.interpreter.notes import remembered
from streamlint.interpreter.spelling import says, words_of
from streamlint.models import StepRow

_DEEPEST = 5


def is_framework_step(function: p.Function, owner: p.Class | None, file: File) -> bool:
    """Whether this runs once in each step of a loop out of view: a framework, a base class, or whoever calls it, loops."""
    row = framework_row(function, owner, file)
    if row is not None:
        return not (row.forward and _only_infers(function, owner, file))
    return _is_step_of_base(function, owner, file) or _is_whole_step(function, owner, file)


def is_forward(function: p.Function | None, owner: p.Class | None, file: File) -> bool:
    """Whether this is a module's forward, or the loss of a part of a model: it computes for whoever calls it in each step."""
    row = framework_row(function, owner, file) if function is not None else None
    return row is not None and row.forward


def infers(name: str) -> bool:
    """Whether a body by this name is met without training. Names may silence a finding, never cause one."""
    return says(name, _INFERS) or any(pair in _INFER_TOGETHER for pair in itertools.pairwise(words_of(name)))


_INFERS = frozenset(
    "infer infers inference inferencer inferring predict predicts predictor prediction predictions predicting generate generates generator "
    "generation generating decode decodes decoder decoders decoding eval evaluate evaluator evaluation evaluating test valid validate "
    "validator validation sample samples sampler sampling postprocess postprocessing postprocessor export exporter exporting onnx serve "
    "serving visualize visualise dump quantize quantise quantizer quantized calibrate calibrator calibration demo deploy deployment".split()
)
_INFER_TOGETHER = frozenset({("get", "bboxes"), ("get", "results"), ("post", "process"), ("post", "processing"), ("post", "processor")})


@remembered(4096)
def _only_infers(function: p.Function, owner: p.Class | None, file: File) -> bool:
    """Whether a forward takes no part in training: it keeps no gradients, or is called so."""
    return is_decorated_off(function, file) or infers(function.qualname) or (owner is not None and infers(owner.name))


@remembered(4096)
def framework_row(function: p.Function, owner: p.Class | None, file: File) -> StepRow | None:
    """What the framework says of this method: it calls it in each step. A LightningModule's, a Trainer's."""
    if (
        not any(function.name in row.methods for row in file.models.steps)
        or owner is None
        or owner.methods.get(function.name, [None])[0] is not function
    ):
        return None
    for base, at_hand in _bases(owner, file, _DEEPEST):
        found = file.models.step(function.name, base, at_hand)
        if found is not None:
            return found
    return None


def _bases(owner: p.Class, file: File, depth: int) -> Iterator[tuple[str, bool]]:
    """The names of the classes that one derives from, and whether they are at hand."""
    for base in owner.bases:
        held = class_at_hand(base, file)
        if held is None or held[0] is owner:
            yield dotted_name(file, base) or _written(base), False
        else:
            yield dotted_name(file, base) or _written(base), True
            if depth:
                yield from _bases(*held, depth - 1)


@remembered(4096)
def _is_step_of_base(function: p.Function, owner: p.Class | None, file: File) -> bool:
    """Whether a base class at hand calls this method, which it leaves to those who derive from it, in each round that trains."""
    if owner is None or function.name.startswith("__") or owner.methods.get(function.name, [None])[0] is not function:
        return False
    return any(_calls_each_round(base, home, function.name) for base, home in _ancestors(owner, file, _DEEPEST))


def _ancestors(owner: p.Class, file: File, depth: int) -> Iterator[tuple[p.Class, File]]:
    for base in owner.bases:
        held = class_at_hand(base, file)
        if held is not None and held[0] is not owner:
            yield held
            if depth:
                yield from _ancestors(*held, depth - 1)


@remembered(4096)
def _calls_each_round(owner: p.Class, file: File, name: str) -> bool:
    for overloads in owner.methods.values():
        for method in overloads:
            if framework_row(method, owner, file) is not None and _calls_own(method.body, name):
                return True
            loops = (node for statement in method.body for node in p.walk(statement) if isinstance(node, p.Loop))
            if any(_calls_own(loop.body, name) and is_hot(loop, file) for loop in loops):
                return True
    return False


def gives_loss(function: p.Function, owner: p.Class | None, file: File) -> bool:
    """Whether whoever calls this method in each step goes backward from what it returns: a framework, or the loop of a base class."""
    if framework_row(function, owner, file) is not None:
        return True
    if owner is None or not _is_step_of_base(function, owner, file):
        return False
    return any(
        _goes_backward_from(loop, function.name)
        for base, _ in _ancestors(owner, file, _DEEPEST)
        for overloads in base.methods.values()
        for method in overloads
        for loop in p.walk(method)
        if isinstance(loop, p.Loop)
    )


def _goes_backward_from(loop: p.Loop, name: str) -> bool:
    results = {
        part.id
        for node in _assignments(loop.body)
        if any(isinstance(c, p.Call) and isinstance(c.function, p.Attr) and c.function.name == name for c in p.walk(node.value))
        for target in node.targets
        for part in p.walk(target)
        if isinstance(part, p.Name)
    }
    backward = (c for c in own_calls(loop.body) if isinstance(c.function, p.Attr) and c.function.name in BACKWARD)
    return any(isinstance(part, p.Name) and part.id in results for call in backward for part in p.walk(call))


def _calls_own(body: list[p.Statement], name: str) -> bool:
    """Whether statements call ``self.name(…)`` outside of inner loops."""
    return any(
        isinstance(call.function, p.Attr)
        and call.function.name == name
        and isinstance(call.function.value, p.Name)
        and call.function.value.id == "self"
        for call in own_calls(body)
    )


@remembered(4096)
def _is_whole_step(function: p.Function, owner: p.Class | None, file: File) -> bool:
    """Whether a body that is given its data goes backward and steps an optimizer, in no loop: nobody trains for one step."""
    if file.is_cuda or "torch" not in file.module.text or function.name in ("__init__", "main"):
        return False
    if not [param for param in function.params if param.name not in ("self", "cls")]:
        return False
    calls = list(own_calls(function.body))
    backward = any(isinstance(call.function, p.Attr) and call.function.name in BACKWARD for call in calls)
    return backward and any(steps_optimizer(call, file) for call in calls)


def _written(base: p.Expression) -> str:
    return base.id if isinstance(base, p.Name) else base.name if isinstance(base, p.Attr) else ""


@remembered(4096)
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
            and function.id not in file.imports
            and (function.id not in _BUILTINS)
        )
    if isinstance(function, p.Attr) and isinstance(function.value, p.Name) and function.value.id == "self":
        return owner is None or function.name not in owner.methods
    return False


_BUILTINS = frozenset("len range enumerate zip float int str list dict tuple set sum min max abs round sorted print next iter map".split())
