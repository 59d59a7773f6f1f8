"""From a model row to operations: the row says where things stand in the call, an effect function says what happens."""

from __future__ import annotations

import functools
from collections.abc import Callable

from streamlint import program as p
from streamlint.cuda_model import STAGED_BYTES
from streamlint.findings import Span
from streamlint.interpreter import pointers
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.assignment import store_at
from streamlint.interpreter.choices import used
from streamlint.interpreter.cpp_types import bytes_of
from streamlint.interpreter.opaque import opaque_call, written_through
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Buffer, Const, Instance, Opaque, Reference, Series, Storage, Stream, Value
from streamlint.models import Row
from streamlint.models.vocabulary import Selector
from streamlint.operations import Memory
from streamlint.record import record

_WORDS: dict[str, object] = {"true": True, "false": False, "none": None}


@record(slots=True)
class Call:
    """A modelled call with its arguments: what an effect function works on."""

    run: Run
    row: Row
    name: str
    receiver: Value | None
    arguments: Arguments
    site: CallSite

    @property
    def span(self) -> Span:
        return self.site.span

    @property
    def library(self) -> str:
        return self.row.library

    def text(self, name: str, default: str = "") -> str:
        value = self.row.get(name)
        return str(value) if isinstance(value, str) else default

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.row.get(name)
        return value if isinstance(value, bool) else default

    def given(self, selector: Selector) -> Value | None:
        """The value at a selector, None where the argument was left out."""
        if selector.kind == "self":
            return self.receiver
        if selector.kind == "pointee":
            return self._positional(selector.position)
        if selector.kind == "argument":
            if selector.keyword is not None and selector.keyword in self.arguments.keywords:
                return self.arguments.keywords[selector.keyword]
            return self._positional(selector.position)
        return None

    def _positional(self, position: int | None) -> Value | None:
        given = self.arguments.positional
        return given[position] if position is not None and position < len(given) else None

    def value(self, name: str) -> Value | None:
        """The value of a selector field; its default word as a constant where the argument was left out."""
        selector = self.row.get(name)
        if not isinstance(selector, Selector):
            return None
        found = self.given(selector)
        if found is None and selector.default in _WORDS:
            return Const(_WORDS[selector.default])
        return found

    def values(self, name: str) -> list[Value]:
        """The values of a selector or a list of them; what was left out is missing."""
        selectors = self.row.get(name)
        if isinstance(selectors, Selector):
            selectors = (selectors,)
        found: list[Value] = []
        for selector in selectors if isinstance(selectors, tuple) else ():
            if selector.kind == "all":
                found.extend(self.arguments.all())
            elif (value := self.given(selector)) is not None:
                found.append(value)
        return found

    def switch(self, name: str) -> bool | None:
        """A switch: true, false, or None where it is not known."""
        held = self.row.get(name)
        if isinstance(held, bool):
            return held
        if isinstance(held, tuple):
            held = next((s for s in held if isinstance(s, Selector) and _is_truth(self.given(s))), held[-1])
        if not isinstance(held, Selector):
            return False
        value = self.given(held)
        answer = _default_of(held, self) if value is None else _as_switch(value, held)
        return answer if answer is None or not held.negated else not answer

    def opaque(self, *reach: Value) -> Opaque:
        return self.run.opaque(f"{self.name}{self.run.visit_key(self.site.node)}", *reach)

    def store(self, value: Value, name: str = "into") -> Value:
        """Give the result to the out-parameter, or return it."""
        selector = self.row.get(name)
        if isinstance(selector, Selector) and selector.kind == "pointee":
            pointer = self.given(selector)
            if pointer is not None:
                store_at(self.run, pointer, value, self.site.node)
            return self.status()
        return self.status(value) if self.is_tuple else value

    def status(self, *values: Value) -> Value:
        """What a CUDA function returns: success. cuda-python returns (error, value…)."""
        if self.is_tuple:
            return Series([Const(0), *values], kind="tuple")
        file = self.run.file
        return Const(0) if file.is_cuda or (file.is_cython and self.library.startswith("cuda-")) else Const(None)

    @property
    def is_tuple(self) -> bool:
        return self.library == "cuda_python" and self.name.rpartition(".")[2].startswith(("cuda", "cu"))


def apply(run: Run, row: Row, name: str, receiver: Value | None, arguments: Arguments, site: CallSite) -> Value:
    """Do what a row says."""
    call = Call(run, row, name, receiver, arguments, site)
    action = _effects().get(row.effect)
    if action is None:
        return opaque_call(run, name, receiver, arguments, site, awaits=call.text("awaits"))
    if run.chosen:
        used(run, arguments.all())
    result = action(call)
    _unmodelled_outputs(call)
    return result


def _unmodelled_outputs(call: Call) -> None:
    """C++: a plain call may write through the pointers it was given; those variables hold unknowns afterwards."""
    if call.row.effect != "none" or not call.run.file.is_cuda:
        return
    for value in call.arguments.positional:
        if isinstance(value, Reference):
            written_through(call.run, value, call.site)


def _default_of(held: Selector, call: Call) -> bool | None:
    if call.arguments.open:
        return None
    if held.default == "own":
        return own_stream(call) is not None
    return _WORDS.get(held.default or "false") is True


def _is_truth(value: Value | None) -> bool:
    return isinstance(value, Const) and isinstance(value.value, bool)


def _as_switch(value: Value, selector: Selector) -> bool | None:
    """A flag; a stream in its place is true unless it is the null stream (numba)."""
    if isinstance(value, Const):
        return bool(value.value)
    if isinstance(value, Stream):
        return value.kind != "null"
    if isinstance(value, Opaque) and selector.keyword == "stream":
        # A parameter that defaults to the null stream may well be it.
        return None if value.default is not None else True
    return None


def own_stream(call: Call) -> Stream | None:
    """The stream that the receiver was made with, if it was made with one."""
    made_with = call.receiver.storage.stream if isinstance(call.receiver, Buffer) else None
    return made_with if made_with is not None and made_with.kind != "null" else None


@functools.cache
def _effects() -> dict[str, Callable[[Call], Value]]:
    from streamlint.interpreter.effects import (
        callbacks,
        captures,
        channels,
        collectives,
        copies,
        devices,
        factories,
        gil,
        host,
        launches,
        memory,
        natives,
        streams,
        threads,
        transfers,
        views,
        work,
        workers,
    )

    modules = (
        *(callbacks, captures, channels, collectives, copies, devices, factories, gil, host, launches, memory, natives),
        *(streams, threads, transfers, views, work, workers),
    )
    return {name: action for module in modules for name, action in module.EFFECTS.items()}


def buffer_of(run: Run, value: Value | None, type: str = "") -> Buffer | None:
    """A value as memory: itself, what a C++ address points to, or an unknown value that is used as memory."""
    if isinstance(value, Buffer):
        return value
    if isinstance(value, Reference):
        return _addressed(run, value)
    if isinstance(value, Opaque):
        if value.buffer is None:
            value.buffer = run.unknown_buffer(value.name, type or ("pointer" if run.file.is_cuda else "torch.Tensor"), owner="caller")
            value.buffer.storage.evidence = value.evidence
            value.buffer.storage.made = value.made
        return value.buffer
    if isinstance(value, Instance):
        return _bytes_of(value)
    target = pointers.pointee(value) if value is not None else None
    return target if isinstance(target, Buffer) else None


def _bytes_of(value: Instance) -> Buffer | None:
    """The memory of a C++ object whose address is taken: a struct on the stack, or one that the caller owns."""
    if not value.file.is_cuda:
        return None
    if value.memory is None:
        value.memory = Buffer(Storage(Memory.UNKNOWN if value.shared or value.foreign else Memory.PAGEABLE, value.term, small=True))
    return value.memory


def _addressed(run: Run, reference: Reference) -> Buffer | None:
    """The memory of a C++ variable whose address is taken: the stack."""
    target = reference.target
    if isinstance(target, p.Name):
        scope = reference.environment.find(target.id)
        if scope is None:
            return None
        held = scope.names[target.id]
        if isinstance(held, Buffer):
            return held
        if target.id not in scope.addressed:
            size = bytes_of(scope.type_of(target.id))
            storage = Storage(Memory.PAGEABLE, target.id, nbytes=size, small=size is not None and size <= STAGED_BYTES)
            scope.addressed[target.id] = Buffer(storage)
        return scope.addressed[target.id]
    if isinstance(target, p.Attr | p.Index):
        value = run.at(reference)
        return value if isinstance(value, Buffer) else run.unknown_buffer(value.term, "pointer")
    return None
