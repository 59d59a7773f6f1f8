"""Workers of a loader: the dataset's items and the collate function run in processes of the loader's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamlint import operations as ops
from streamlint.findings import Step
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.beside import begun, run_beside
from streamlint.interpreter.bodies import call_method, run_generator
from streamlint.interpreter.calls import invoke
from streamlint.interpreter.classes import find_method
from streamlint.interpreter.effects import Call
from streamlint.interpreter.reach import reachable
from streamlint.interpreter.values import (
    Buffer,
    ClassValue,
    Const,
    Device,
    FunctionValue,
    GeneratorCall,
    Handle,
    Instance,
    Loader,
    Method,
    Opaque,
    Prepared,
    Series,
    Value,
)
from streamlint.operations import Evidence
from streamlint.record import record, replace

_COLLATES = (FunctionValue, Instance, Method, Prepared)


def _loader(call: Call) -> Value:
    pinned = call.switch("pin")
    if pinned is False:
        trail = (Step("this loader does not pin its batches (pin_memory is not set)", call.span),)
    else:
        trail = (Step("this loader yields the batches", call.span),)
    collate = call.value("collate")
    made_here = collate if isinstance(collate, FunctionValue | ClassValue | Instance) else None
    if _has_workers(call) and not call.run.file.is_cuda:
        _work(call, collate)
    return Loader(pinned, trail, type=call.name, collate=made_here, on_device=call.text("space") == "device")


def _prepare(call: Call) -> Value:
    """``accelerator.prepare(model, loader)``: the same objects, at home on a device from now on."""
    if call.arguments.open:
        return call.opaque()
    made = [_at_home(value) for value in call.arguments.positional]
    return made[0] if len(made) == 1 else Series(made, kind="tuple")


def _at_home(value: Value) -> Value:
    if isinstance(value, Loader):
        return replace(value, on_device=True)
    if isinstance(value, Handle | Instance):
        value.attrs.setdefault("(device)", Device("device", Evidence.DEFAULT))
    return value


def _has_workers(call: Call) -> bool:
    workers = call.value("workers")
    if isinstance(workers, Opaque) and workers.default is not None:
        workers = workers.default
    return isinstance(workers, Const) and isinstance(workers.value, int) and workers.value > 0


def _work(call: Call, collate: Value | None) -> None:
    """What a worker does: its initialiser, a few items, the collate function on them."""
    run = call.run
    spawn = ops.Spawn(call.span, call.library, call.name, beside=begun(run, "worker", call.span), body_known=True)
    run_beside(run, spawn, _Worker(call, collate, CallSite(call.site.node, call.span, "worker")))


@record(slots=True)
class _Worker:
    """What a worker of a loader runs."""

    call: Call
    collate: Value | None
    site: CallSite

    def __call__(self) -> Value:
        call, run, collate, site = self.call, self.call.run, self.collate, self.site
        first = call.value("worker_init")
        if isinstance(first, (*_COLLATES, Handle)):
            invoke(run, first, Arguments([run.opaque("worker")]), site)
        for function in _given_functions(call.value("dataset")):
            invoke(run, function, Arguments([run.opaque("sample")]), site)
        items = [item for dataset in _datasets(call.value("dataset")) for item in _items(call, dataset)]
        if isinstance(collate, _COLLATES):
            invoke(run, collate, Arguments([Series(list(items) or [run.opaque("sample")])]), site)
        elif collate is None or (isinstance(collate, Const) and collate.value is None):
            _default_collate(call, items)
        return Const(None)


def _datasets(value: Value | None) -> Iterator[Instance]:
    """The dataset at hand, also inside those of the library that only choose from others (Subset, ConcatDataset)."""
    if isinstance(value, Instance):
        yield value
    elif isinstance(value, Handle) and value.type.endswith("Dataset"):
        for held in value.args.values():
            for inner in held.items or () if isinstance(held, Series) else (held,):
                yield from _datasets(inner)


def _given_functions(value: Value | None) -> Iterator[Value]:
    """The functions at hand that a dataset of a library was given (``transform=``): it calls them for each item."""
    if not isinstance(value, Handle) or not value.type.endswith("Dataset"):
        return
    for inner in reachable(list(value.args.values()), limit=60):
        if isinstance(inner, FunctionValue) or (isinstance(inner, Instance) and "__call__" in inner.definition.methods):
            yield inner


def _items(call: Call, dataset: Instance) -> Iterator[Value]:
    run, span = call.run, call.span
    for name, given in (("__getitem__", [run.opaque("index")]), ("__getitems__", [Series(None, name="indices")])):
        if find_method(run, dataset.definition, dataset.file, name) is not None:
            made = call_method(run, dataset, name, list(given), span)
            if made is not None:
                yield made
    if find_method(run, dataset.definition, dataset.file, "__iter__") is None:
        return
    iterator = call_method(run, dataset, "__iter__", [], span)
    found: list[Value] = []
    if isinstance(iterator, GeneratorCall):

        def take(value: Value) -> Value:
            found.append(value)
            return Const(None)

        run_generator(run, iterator, take)
    yield from found[:2]


def _default_collate(call: Call, items: list[Value]) -> None:
    """The library's own: device tensors are stacked where they are."""
    for item in items:
        for value in reachable([item], limit=30):
            if isinstance(value, Buffer) and value.storage.on_device and value.storage.evidence <= Evidence.DEFAULT:
                stack = ops.Launch(
                    call.span, "torch", "default_collate", stream=call.run.stream_of("torch"), reads=(value,), kind="compute"
                )
                call.run.machine.launch(stack)
                return


def _split(call: Call) -> Value:
    """``random_split(dataset, lengths)``: parts of a dataset."""
    part = Handle("torch.utils.data.Dataset", call.run.machine.fresh("object"))
    part.args = {str(number): value for number, value in enumerate(call.arguments.positional)}
    return Series(None, element=part, name=f"parts{call.run.visit_key(call.site.node)}")


EFFECTS: dict[str, Callable[[Call], Value]] = {
    "split": _split,
    "loader": _loader,
    "prepare": _prepare,
}
