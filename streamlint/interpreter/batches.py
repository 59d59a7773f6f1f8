"""Batches of loaders: what a collate function makes, or leaves of unknown structure with one pinnedness."""

from __future__ import annotations

from streamlint import program as p
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.run import MAX_DEPTH, Run
from streamlint.interpreter.values import Buffer, Instance, Loader, Opaque, Series, Storage, Table, Value
from streamlint.operations import Evidence, Memory


def batch(run: Run, loader: Loader, term: str) -> Value:
    """A batch of a loader: what its collate function makes, or leaves of unknown structure with one pinnedness."""
    if loader.collate is not None and not loader.on_device and len(run.frames) <= MAX_DEPTH:
        made = _collated(run, loader, term)
        if made is not None:
            return made
    return _leaves(run, loader, term)


def _collated(run: Run, loader: Loader, term: str) -> Value | None:
    """Run a collate function at hand on samples in pageable memory; the loader pins what it knows how to pin."""
    from streamlint.interpreter.calls import invoke

    assert loader.collate is not None
    sample = _leaves(run, Loader(False, loader.trail), f"sample{term}")
    site = CallSite(p.Unknown(), loader.trail[0].span if loader.trail else run.span((0, 0, 0, 0)), "collate_fn")
    with run.within(loops=(), guards=()):
        made = invoke(run, loader.collate, Arguments([Series([sample])]), site)
    if isinstance(made, Opaque):
        return None
    if loader.pinned is not False:
        _pin(run, made, Memory.PINNED if loader.pinned else Memory.UNKNOWN)
    return made


def _pin(run: Run, value: Value, memory: Memory) -> None:
    """What ``pin_memory=True`` does to a batch (utils/data/_utils/pin_memory.py): objects of other classes stay as they are."""
    if isinstance(value, Buffer) and value.storage.on_host:
        value.storage.memory = memory
    elif isinstance(value, Series | Table):
        for inner in value.all() if isinstance(value, Series) else value.items.values():
            _pin(run, inner, memory)
    elif isinstance(value, Instance) and ("pin_memory" in value.definition.methods or value.definition.bases):
        for inner in value.attrs.values():
            _pin(run, inner, memory)


def _leaves(run: Run, loader: Loader, term: str) -> Value:
    memory = {True: Memory.PINNED, False: Memory.PAGEABLE, None: Memory.UNKNOWN}[loader.pinned]
    evidence = Evidence.NONE
    if loader.on_device:
        memory, evidence = Memory.DEVICE, Evidence.DEFAULT
    storage = run.storage(memory, f"batch[{term}]", evidence=evidence, trail=loader.trail, library="torch")
    return Buffer(storage, type="torch.Tensor", leaves={})


def leaf(value: Buffer, key: str) -> Value:
    """A leaf of a batch of unknown structure; itself a batch."""
    assert value.leaves is not None
    if key not in value.leaves:
        old = value.storage
        storage = Storage(old.memory, f"{old.name}{key}", evidence=old.evidence, trail=old.trail, library=old.library, made_in=old.made_in)
        value.leaves[key] = Buffer(storage, type=value.type, leaves={})
    return value.leaves[key]
