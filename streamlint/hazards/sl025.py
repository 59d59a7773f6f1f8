"""SL025: CUDA work in the forked workers of a loader."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl025_cuda_in_dataloader_worker import CudaInDataloaderWorker
from streamlint.facts.functions import Function
from streamlint.facts.objects import Constant, Scalar, Site
from streamlint.findings import Finding
from streamlint.findings.operations import Operation
from streamlint.hazards.context import Context, span_at, span_of
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.processes import DEFAULT, FORK, Processes
from streamlint.transfer.uses import Use, Uses

RULE = CudaInDataloaderWorker
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
            found = workers.first(function)
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
        self.rule = RULE()

    def method(self, loader: ModelledCall) -> str:
        """How a loader's workers are forked; "" where it has none, or spawns them, or that is not known."""
        workers = loader.one("workers")
        if workers is None or not self._is_positive(loader, workers):
            return ""
        method = self.processes.method_of(loader.function, loader.one("context"))
        return method if method in (FORK, DEFAULT) else ""

    def _is_positive(self, loader: ModelledCall, register: int) -> bool:
        """Whether a number of workers is known to be above 0."""
        values = list(loader.values(register))
        numbers = [value.value for value in values if isinstance(value, Constant)]
        if not numbers:
            numbers = self._defaults(loader.function, register)
        return bool(numbers) and all(isinstance(number, int) and number > 0 for number in numbers)

    def _defaults(self, function: Function, register: int) -> list[object]:
        """The default of a parameter that no call of the program gives."""
        one = function.definitions[register]
        made = function.default_register(one[3]) if one is not None and one[0] == op.PARAM else None
        if made is None or function.parent is None:
            return []
        values = self.context.facts.values(function, register).values
        if any(not isinstance(value, Scalar) for value in values):
            return []
        return [value.value for value in self.context.facts.values(function.parent, made).values if isinstance(value, Constant)]

    def functions(self, loader: ModelledCall) -> Iterator[tuple[Function, tuple[tuple[Function, Instruction], ...]]]:
        """What the workers of a loader run."""
        roots: dict[Function, None] = {}
        for key, methods in (("dataset", _ITEMS), ("collate", ("__call__",)), ("worker_init", ("__call__",))):
            register = loader.one(key)
            if register is not None:
                roots.update(dict.fromkeys(self.processes.callables(loader.function, register, methods)))
        yield from self.processes.reached(list(roots))

    def first(self, function: Function) -> tuple[Instruction, Use] | None:
        """The first instruction of a function that uses a device, apart from those that go on with what the worker has brought there."""
        for one in function.code.instructions():
            for use in self.uses.at(function, one):
                if not use.given or any(self._is_of_parent(function, register) for register in use.given) or use.name.endswith(".cuda"):
                    return one, use
        return None

    def _is_of_parent(self, function: Function, register: int) -> bool:
        """Whether a register holds what the parent has made: an attribute, a global, a variable of a function around."""
        one = function.definitions[register]
        while one is not None and one[0] in (op.ITEM, op.COPY, op.PHI, op.AWAIT):
            one = function.definitions[one[3]]
        return one is not None and one[0] in (op.ATTR, op.NAME, op.LOAD)

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
