"""SL025: CUDA work in the forked workers of a loader."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl025_cuda_in_dataloader_worker import CudaInDataloaderWorker
from streamlint.facts.code.functions import Function
from streamlint.facts.code.handing import made_by
from streamlint.facts.code.objects import Constant, Scalar, Site, Unknown
from streamlint.findings import Finding
from streamlint.findings.operations import Operation
from streamlint.hazards.context import Context, span_at, span_of
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.carried import MOST, Carried, Carriers
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.processes import DEFAULT, FORK, Processes
from streamlint.transfer.uses import Use, Uses
from streamlint.waits.operands import operand_of
from streamlint.waits.options import question_of
from streamlint.waits.questions import conditions

RULE = CudaInDataloaderWorker
_DEEPEST = 4
"""Partial objects within one another."""
Calls = tuple[tuple[Function, Instruction], ...]
_ITEMS = ("__getitem__", "__getitems__", "__iter__", "__next__")


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule: one for each function that a worker runs, however many loaders have it run."""
    workers = _Workers(context)
    seen: set[Function] = set()
    collating: list[tuple[ModelledCall, str]] = []
    reported: set[Site] = set()
    for loader in context.transfer.sites(frozenset({"loader"})):
        method = workers.method(loader)
        if not method:
            continue
        for function, calls in workers.functions(loader):
            found = workers.first(function, calls, loader)
            if found is not None:
                reported.add(Site(loader.function, loader.instruction))
            if found is None or function in seen:
                continue
            seen.add(function)
            yield workers.report(loader, method, function, *found, tuple(Site(*call) for call in calls))
        if Site(loader.function, loader.instruction) not in reported and workers.collates_on_device(loader):
            collating.append((loader, method))
    yield from (workers.report_collation(loader, method) for loader, method in collating)


class _Workers:
    """The workers of a program's loaders."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.processes = Processes(context.transfer)
        self.uses = Uses(context.transfer)
        self.carriers = context.transfer.one_of(Carriers, context.transfer)
        self.rule = RULE()

    def method(self, loader: ModelledCall) -> str:
        """How a loader's workers are forked; "" where it has none, or spawns them, or that is not known."""
        workers = loader.one("workers")
        if workers is None or not self._is_positive(loader, workers):
            return ""
        method = self.processes.method_of(loader.function, loader.one("context"))
        return method if method in (FORK, DEFAULT) else ""

    def _is_positive(self, loader: ModelledCall, register: int) -> bool:
        """Whether a number of workers is known to be above 0: a branch has said so, or it is in all that the calls in view give."""
        function = loader.function
        for condition, holds in conditions(function, function.blocks[loader.instruction]):
            asked, answer = question_of(function, condition)
            if asked == register and bool(answer(0)) != holds:
                return True
        numbers = [number for source in self.carriers.sources(function, register) for number in self._numbers(source)]
        return bool(numbers) and all(isinstance(number, int) and number > 0 for number in numbers)

    def _numbers(self, source: Carried) -> Iterator[object]:
        """The constants that a register holds, and the default of a parameter; None for what is known to be something else."""
        function, one = source.function, source.instruction
        default = function.default_place(one[3]) if one is not None and one[0] == op.PARAM else None
        values = [value for place in ((function, source.register), default) if place for value in self.context.facts.values(*place).values]
        is_known = default is not None or any(isinstance(value, Constant) for value in values)
        known = [value for value in values if not (isinstance(value, Scalar) or (isinstance(value, Unknown) and is_known))]
        yield from (value.value if isinstance(value, Constant) else None for value in known)

    def functions(self, loader: ModelledCall) -> Iterator[tuple[Function, Calls]]:
        """What the workers of a loader run."""
        roots: dict[Function, None] = {}
        for key, methods in (("dataset", _ITEMS), ("collate", ("__call__",)), ("worker_init", ("__call__",))):
            register = loader.one(key)
            if register is not None:
                roots.update(dict.fromkeys(self.processes.callables(loader.function, register, methods)))
        yield from self.processes.reached(list(roots))

    def first(self, function: Function, calls: Calls, loader: ModelledCall) -> tuple[Instruction, Use] | None:
        """The first instruction of a function that uses a device, apart from those that go on with what the worker has brought there."""
        for one in function.code.instructions():
            for use in self.uses.at(function, one):
                if self._stays(function, one, calls, loader):
                    continue
                given = (self._is_of_parent(function, register, calls) for register in use.given)
                if not use.given or any(given) or use.name.endswith(".cuda"):
                    return one, use
        return None

    def _stays(self, function: Function, one: Instruction, calls: Calls, loader: ModelledCall) -> bool:
        """Whether a call makes or moves memory to a place that is the host for this loader."""
        for call in self.context.transfer.modelled(function, one) if one[0] in (op.CALL, op.INVOKE) else ():
            places = [self._passed_to(function, register, calls, loader) for register in call.all("device")]
            if places and all(found is not None and call.spaces_of(*found) == {"host"} for found in places):
                return True
        return False

    def _passed_to(self, function: Function, register: int, calls: Calls, loader: ModelledCall) -> tuple[Function, int] | None:
        """What the calls that lead to a function, and the partial objects that this loader is given, hand it for a parameter."""
        for caller, call in reversed(calls):
            one = function.definitions[register]
            if one is None or one[0] != op.PARAM:
                return None
            given = operand_of(caller, call, function, one[3])
            if given is None or given < 0:
                return None
            function, register = caller, given
        one, collate = function.definitions[register], loader.one("collate")
        if one is None or one[0] != op.PARAM or collate is None:
            return (function, register) if one is not None and one[0] == op.CONST else None
        named, placed = self._bound(loader.function, collate)
        place = one[3] - function.has_receiver
        bound = named.get(function.code.parameters[one[3]].name, placed[place] if 0 <= place < len(placed) else op.NONE)
        return (loader.function, bound) if bound >= 0 else None

    def _bound(self, function: Function, register: int) -> tuple[dict[str, int], list[int]]:
        """What partial objects hold, by the parameters' names and by their order: the one around another one has the last word."""
        named, placed = dict[str, int](), list[int]()
        handing = self.context.facts.program.handing
        for _ in range(_DEEPEST):
            made = made_by(function, register)
            kept = handing.kept(function, made) if handing is not None and made is not None else None
            if kept is None:
                break
            named = {kind: each for kind, each in kept.given if isinstance(kind, str)} | named
            placed = [each for kind, each in kept.given if kind is None] + placed
            register = kept.callee
        return named, placed

    def _is_of_parent(self, function: Function, register: int, calls: Calls) -> bool:
        """Whether a register holds what the parent has made: an attribute, a global, a variable of a function around, also where the
        calls that lead to the function hand it over, alone or in a container."""
        entered = [*(callee for callee, _ in calls[1:]), function]
        context = tuple((callee, Site(*call)) for callee, call in zip(entered, calls, strict=False))
        waiting = [Carried(function, register, context)]
        for way in waiting:
            one = way.instruction
            if one is not None and one[0] in (op.ATTR, op.NAME, op.LOAD):
                return True
            waiting += [step for step in self.carriers.before(way) if step not in waiting and len(waiting) < MOST]
        return False

    def collates_on_device(self, loader: ModelledCall) -> bool:
        """Whether the items of a dataset are on the device already, and the worker collates them."""
        dataset = loader.one("dataset")
        if dataset is None or loader.one("collate") is not None:
            return False
        items = self.processes.callables(loader.function, dataset, ("__getitem__",))
        return any(self.uses.on_device(item, one[2]) for item in items for one in item.by_opcode[op.RETURN] if one[2] >= 0)

    def report(self, loader: ModelledCall, method: str, function: Function, one: Instruction, use: Use, calls: tuple[Site, ...]) -> Finding:
        operation = Operation(span_at(function, one), use.library, use.name, context=self.context.surroundings(function, calls))
        return self.rule.report(operation, span_at(loader.function, loader.instruction), method)

    def report_collation(self, loader: ModelledCall, method: str) -> Finding:
        place = span_of(Site(loader.function, loader.instruction))
        operation = Operation(place, "torch", "default_collate", context=self.context.surroundings(loader.function))
        return self.rule.report(operation, place, method)
