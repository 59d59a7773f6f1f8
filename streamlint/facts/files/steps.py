"""What a value that is followed forward leads to, register by register, and the walk over it.

What the uses of a register lead to is the same for each value that the register may hold. It is found once, as `Steps`, and each walk takes
them: of what walks through the Python of vLLM's engine meet, one register in sixteen is new.
"""

from __future__ import annotations

from collections.abc import Callable

from streamlint import TYPE_CHECKING
from streamlint.facts.code.functions import Function
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.support.records import field, record

if TYPE_CHECKING:
    from streamlint.facts.values.callers import Callers

MOST_PLACES = 600
"""Registers that are followed for one function, object or container."""
MOST_AROUND = 3
"""Containers around one another in which a value is followed."""
Place = tuple[Function, Instruction]
Held = tuple[Function, int, int]
"""A register that holds the value, or something that holds it so many containers down."""


@record(eq=False)
class Steps:
    """Where a value goes: further registers, and what calls or changes it. Behind these it is an attribute of a name (``named``: as the
    file at hand has it, so many containers down), or what a function gives back (``back``)."""

    held: list[Held] = field(default_factory=list)
    calls: dict[Place, None] = field(default_factory=dict)
    changes: dict[Place, None] = field(default_factory=dict)
    late: list[list[Steps]] = field(default_factory=list)
    named: tuple[str, Unit, int] | None = None
    back: tuple[Function, int] | None = None


class Following:
    """Follows one value; subclasses say what its uses lead to."""

    def __init__(self, flow: Callers) -> None:
        self.flow = flow
        self.calls: dict[Place, None] = {}  # calls that may call the value, or are given it
        self.changes: dict[Place, None] = {}  # instructions that may store something in it
        self._steps = [Steps()]  # those that are being noted
        self._known = flow.steps[type(self)]
        self._seen: set[Held] = set()
        self._waiting: list[Held] = []
        self._late: list[list[Steps]] = []  # places that names alone make likely: only where nothing else waits
        self._attributes: set[str] = set()
        self._returned: set[Function] = set()

    def follow(self, function: Function, register: int, depth: int = 0) -> None:
        """A register holds the value; with a depth, something that holds it so many containers down."""
        if register >= 0 and depth <= MOST_AROUND:
            self._steps[-1].held.append((function, register, depth))

    def called(self, function: Function, use: Instruction) -> None:
        """An instruction may call the value, or is given it."""
        self._steps[-1].calls[function, use] = None

    def changed(self, function: Function, use: Instruction) -> None:
        """An instruction may store something in the value."""
        self._steps[-1].changes[function, use] = None

    def attribute(self, name: str, unit: Unit, depth: int = 0) -> None:
        """The value is an attribute of this name."""
        self._steps[-1].named = name, unit, depth
        self._steps.append(Steps())

    def given_back(self, function: Function, depth: int) -> None:
        """A function returns the value to its callers."""
        if function.code.kind != "module":
            self._steps[-1].back = function, depth
            self._steps.append(Steps())

    def run(self) -> None:
        """Follow until nothing new is found, or too much was."""
        self._take(self._noted())
        while (self._waiting or self._late) and len(self._seen) < MOST_PLACES:
            self._take(self._uses(self._waiting.pop()) if self._waiting else self._late.pop())

    def _noted(self) -> list[Steps]:
        """What was noted; others are noted from now on."""
        found, self._steps = self._steps, [Steps()]
        return [one for one in found if one.held or one.calls or one.changes or one.late or one.named or one.back]

    def _uses(self, held: Held) -> list[Steps]:
        """Where the uses of a register lead to."""
        found = self._known.get(held)
        if found is None:
            function, register, depth = held
            for use in function.uses[register]:
                self._use(function, register, use, depth)
            found = self._known[held] = self._noted()
        return found

    def _take(self, steps: list[Steps]) -> None:
        for one in steps:
            for held in one.held:
                self._meet(held)
            self.calls.update(one.calls)
            self.changes.update(one.changes)
            self._late += one.late
            if one.named is not None and one.named[0] not in self._attributes:
                self._attributes.add(one.named[0])
                self._take(self._of_name(one.named))
            elif one.back is not None and one.back[0] not in self._returned:
                self._returned.add(one.back[0])
                for caller, call in self.flow.call_places(one.back[0]):
                    if call[2] >= 0:
                        self._meet((caller, call[2], one.back[1]))

    def _meet(self, held: Held) -> None:
        if held not in self._seen:
            self._seen.add(held)
            self._waiting.append(held)

    def _of_name(self, named: tuple[str, Unit, int]) -> list[Steps]:
        """Where an attribute of a name leads to."""
        name, unit, depth = named
        key = (name, self.seen_from(unit), depth)
        found = self._known.get(key)
        if found is None:
            self.look_up(*named)
            found = self._known[key] = self._noted()
        return found

    def _later(self, note: Callable[..., None], *given: object) -> None:
        """What is noted now comes where nothing else waits."""
        around, self._steps = self._steps, [Steps()]
        note(*given)
        around[-1].late.append(self._noted())
        self._steps = around

    def _use(self, function: Function, register: int, use: Instruction, depth: int) -> None:
        """Note what one use of a register leads to."""
        raise NotImplementedError

    def seen_from(self, unit: Unit) -> str:
        """What of a file decides where its attributes are looked up: the same for all files of a folder."""
        return unit.folder

    def look_up(self, name: str, unit: Unit, depth: int) -> None:
        """Note the uses of an attribute of a name."""
        raise NotImplementedError
