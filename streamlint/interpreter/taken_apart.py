"""What was taken apart: elements of a tensor, parameters of a module. They are parts of one memory, made when they are asked for."""

from __future__ import annotations

from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Buffer, Series, Value


class Parts(dict[str, Value]):
    """By term, a part each: the same for the same term."""

    def __init__(self, buffer: Buffer) -> None:
        super().__init__()
        self.buffer = buffer

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> Value:
        self[key] = Buffer(self.buffer.storage, (*self.buffer.part, ("i", key)), self.buffer.type)
        return self[key]

    def get(self, key: str, default: object = None) -> Value:
        return self[key]

    def values(self) -> list[Value]:  # type: ignore[override]
        return [self.buffer]

    def name(self, run: Run, number: str) -> Value:
        """What a part is called that is met as the n-th."""
        return run.opaque(f"name {number} of {self.buffer.term}")


class Pairs(dict[str, Value]):
    """By number, a name and the part that has it."""

    def __init__(self, run: Run, parts: Parts) -> None:
        super().__init__()
        self.run = run
        self.parts = parts

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> Value:
        self[key] = Series([self.parts.name(self.run, key), self.parts[key]], kind="tuple")
        return self[key]

    def values(self) -> list[Value]:  # type: ignore[override]
        return [self.parts.buffer]


def members_of(run: Run, buffer: Buffer) -> Parts:
    """The tensors that a module holds: the same ones whenever they are asked for."""
    kept = run.remembered(f"members of {buffer.term}", lambda: Series(None, made=Parts(buffer)))
    assert isinstance(kept, Series)
    assert isinstance(kept.made, Parts)
    return kept.made
