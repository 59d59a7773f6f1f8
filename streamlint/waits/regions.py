"""The hot regions whose waits are reported: what trains, and on request all that runs once in each round or step.

Loops train, and so do methods of classes that derive from a framework's own, which it calls in each step. On request: loops that decode,
denoise or serve, the ``forward`` of modules, a step that is called by whoever owns the loop, and loops that take a tensor or the gradients
apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.files.program import Unit
from streamlint.facts.repetition.decoding import feeds_back, keeps_no_gradients, may_feed_back
from streamlint.facts.repetition.effects import DERIVES, Effects
from streamlint.facts.repetition.hot import TRAINING, HotRegions, Progress, Region
from streamlint.facts.repetition.reaching import reaching
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Loop
from streamlint.models import StepRow, first_part, last_part
from streamlint.waits.computing import Computing
from streamlint.waits.derivatives import derives, evaluates
from streamlint.waits.found import WaitFinder
from streamlint.waits.launching import Launching
from streamlint.waits.reading_steps import ReadingSteps
from streamlint.waits.serving import Serving
from streamlint.waits.step_parts import StepParts

PARTS, STEP, WEIGHTS, LAUNCH = "parts", "step", "weights", "launch"
"""What a region does that is no row's: it takes a tensor apart, is a step or part of one, looks at all gradients, or only launches work."""
DECODE, CALLED = "decode", "called"
"""What loops do whose model's result goes back into it, and functions that a solver or a module with hooks calls repeatedly."""
COMPUTE = "compute"
"""What loops do that compute with arrays of no framework, and read numbers of them."""
INFER, ROWS = "infer", "rows"
"""What loops do that serve: they run a model in each round, or go through the rows of what it gave."""


class WaitRegions(HotRegions):
    """The regions of a program; those of training first, so that they are the reason for what both run."""

    def __init__(self, effects: Effects, all_loops: bool) -> None:
        super().__init__(effects)
        self.all_loops = self.decodes = all_loops
        self.serving = Serving(effects)
        self.reading_steps = ReadingSteps(self)

    def find(self) -> None:
        units = [unit for unit in self.facts.program.units.values() if not unit.is_cpp] if self.all_loops else []
        units += [unit for unit in self._naming() if unit.is_cpp or not self.all_loops]
        functions = [function for unit in units for function in unit.functions]
        self.reaching = reaching(self.graph, self.rounds, functions)
        places = {(function.unit.number, function.code.number): function for function in (*functions, *self.reaching)}
        for _, function in sorted(places.items()):
            self._add_training(function)
        self._add_trained()
        self._spread()
        if self.all_loops:
            for function in functions:
                self._add_others(function)
            self._add_launching()
            self._spread()
            for function, looks in StepParts(self, self._is_over_gradients, (PARTS, LAUNCH)).outermost(functions).items():
                self._region(function, does=WEIGHTS if looks else STEP)
            self._spread()
            self._add_decoding(functions)
            self._spread()
            self._add_serving(functions)
            self._spread()
            self._add_computing(functions)
            self._spread()

    def _naming(self) -> list[Unit]:
        """The files that name what a round that trains calls, or what a framework calls in it, if they can have values of the library.

        No other is lowered for its own sake.
        """
        found: set[Unit] = set()
        for row in self.rounds.rows:
            for name in row.names:
                library, method = first_part(name), last_part(name)
                for unit in self.facts.program.mentioning(method):
                    shown = self.rounds.may_have(unit) if row.beside else self.rounds.is_used_near(unit, library)
                    if shown or row.does == "backward":  # a tensor that is moved to a device shows itself without any import
                        found.add(unit)
        for method in {method for row in self.frameworks.rows if _is_trained(row) for method in row.methods}:
            found.update(unit for unit in self.facts.program.mentioning(method) if self.rounds.may_have(unit))
        return sorted(found, key=lambda unit: unit.number)

    def goes_backward(self, region: Region) -> bool:
        return super().goes_backward(region) or region.chain()[0].does in (STEP, WEIGHTS)

    def _add_training(self, function: Function) -> None:
        row = self.frameworks.row(function)
        if row is not None and _is_trained(row):
            self._region(function, row=row)
        for handler in self.handlers.of(function):
            self._region(handler.function, row=handler.row)
        for index, progress in self.progress(function).items():
            loop = self.body(function).graph.loops[index] if index != NOBODY else None
            if loop is None or not self._trains(function, loop, progress) or derives(self, function, loop):
                continue
            if not evaluates(self, function, loop):
                self._region(function, loop, does=progress.does if progress.does in TRAINING else "backward")

    def _trains(self, function: Function, loop: Loop, progress: Progress) -> bool:
        """Whether the rounds of a loop train: derivatives alone are no training, but with a loop inside that does."""
        if progress.does != DERIVES:
            return progress.does in TRAINING
        home = self.body(function).home
        return any(step.does in TRAINING and home[step.instruction] in loop.body for step in self.steps(function, {}))

    def _add_others(self, function: Function) -> None:
        row = self.frameworks.row(function) or self._forward(function)
        if row is not None and not _is_trained(row):
            self._region(function, row=row)
        progress = self.progress(function)
        for index, one in progress.items():
            if index != NOBODY and one.does not in (*TRAINING, DERIVES):
                self._region(function, self.body(function).graph.loops[index], does=one.does)
        if row is None and self._is_whole_step(function):
            self._region(function, does=STEP)
        for loop in self._taking_apart(function):
            self._region(function, loop, does=PARTS)
        for handler in self.handlers.called(function):
            self._region(handler.function, row=handler.row, does=CALLED)

    def _add_launching(self) -> None:
        """Loops that only launch work, and wait for the device."""
        found = Launching(self.effects)
        waiting = found.functions()
        for function in sorted(waiting, key=lambda one: (one.unit.number, one.code.number)):
            for loop in found.loops(self.body(function), waiting):
                if all(region.loop is not loop for region in self.regions.get(function, ())):
                    self._region(function, loop, does=LAUNCH)

    def _add_computing(self, functions: list[Function]) -> None:
        """Loops that compute with arrays which are always on the GPU, and read numbers of them."""
        found = Computing(Launching(self.effects), WaitFinder(self.graph, self.all_loops))
        reading = found.functions(functions)
        for function in sorted(reading, key=lambda one: (one.unit.number, one.code.number)):
            for loop in found.loops(self.body(function), reading):
                if not any(loop.header in region.blocks for region in self.regions.get(function, ())):
                    self._region(function, loop, does=COMPUTE)

    def _add_decoding(self, functions: list[Function]) -> None:
        """Loops that decode by functions that run a model, and are no part of other rounds."""
        for function in functions:
            if self.rounds.may_have(function.unit) and (body := self.body(function)).graph.loops:
                known = list(self.regions.get(function, ()))
                fed = feeds_back(self.graph, body, self.serving.leads_to_model) if may_feed_back(function) else ()
                decoding = (one.place for one in fed)
                for index in dict.fromkeys((*decoding, *self.serving.advances(body))):
                    loop = body.graph.loops[index]
                    if not any(loop.header in region.blocks for region in known):
                        self._region(function, loop, does=DECODE)

    def _add_serving(self, functions: list[Function]) -> None:
        """Loops that serve and are no part of other rounds."""
        self.serving.find(functions)
        for function in sorted(self.serving.functions, key=lambda one: (one.unit.number, one.code.number)):
            body, known = self.body(function), [one for one in self.regions.get(function, ()) if not serves(one)]
            for loop, does in [*((one, INFER) for one in self.serving.loops(body)), *((one, ROWS) for one in self.serving.rows(body))]:
                if not any(loop.header in region.blocks for region in known):
                    self._region(function, loop, does=does)

    def _forward(self, function: Function) -> StepRow | None:
        if keeps_no_gradients(self.facts, function):
            return None
        return self.frameworks.forward(function)

    def _is_whole_step(self, function: Function) -> bool:
        """A body that is given its data goes backward and steps an optimizer, in no loop: nobody trains for one step."""
        parameters = len(function.code.parameters) - (1 if function.has_receiver else 0)
        if not parameters or function not in self.reaching:
            return False
        body = self.body(function)
        done = {one.row.does for one in self.rounds.of(function) if body.loop_of(one.instruction) == NOBODY}
        return {"backward", "optimizer"} <= done

    def _taking_apart(self, function: Function) -> Iterator[Loop]:
        """Loops over gradients that are looked at one by one, and those in a module's method that read one element in each round."""
        for loop, inside, elements in self._element_loops(function):
            if self._looks_at_gradients(function, inside, elements) or self._reads_parts(function, inside, elements, loop):
                yield loop

    def _is_over_gradients(self, function: Function) -> bool:
        """Whether a function has a loop over gradients."""
        return any(self._looks_at_gradients(function, inside, elements) for _, inside, elements in self._element_loops(function))

    def _element_loops(self, function: Function) -> Iterator[tuple[Loop, list[Instruction], frozenset[int]]]:
        """The loops of a function that go through something, with their instructions, and the registers of what they take out."""
        graph = self.body(function).graph if function.by_opcode[op.NEXT] else None
        for loop in graph.loops if graph is not None else ():
            inside = [one for block in sorted(loop.body) for one in function.code.blocks[block]]
            yield loop, inside, _from(function, [one[2] for one in inside if one[0] == op.NEXT])

    def _looks_at_gradients(self, function: Function, inside: Iterable[Instruction], elements: frozenset[int]) -> bool:
        """``for p in parameters: p.grad.norm()``. Who looks for NaN needs what he finds."""
        asks = any(one[0] == op.ATTR and function.text(one[4]) == "grad" and one[3] in elements for one in inside)
        return asks and not any(function.invokes(one, "odd-if-true", "odd-if-false") for one in inside)

    def _reads_parts(self, function: Function, inside: list[Instruction], elements: frozenset[int], loop: Loop) -> bool:
        """``for i in range(n): counts[i].item()`` in a module's method: each layer waits for each part."""
        owner = function.owner
        if owner is None or function.code.name.startswith("__"):
            return False
        if not any(map(self.facts.forwarded, self.facts.hierarchy.libraries(owner))) and self.frameworks.forward(function) is None:
            return False
        home = self.body(function).home
        for one in inside:
            operand = -1
            if one[0] == op.INVOKE and function.text(one[4]) == "item":
                operand = one[3]
            elif one[0] == op.CALL and function.dotted(one[3]) in ("int", "float") and len(one) > 5:
                operand = one[5]
            part = function.definitions[operand] if operand >= 0 else None
            if part is not None and part[0] == op.ITEM and part[4] in elements:
                whole = function.definitions[part[3]]
                if whole is not None and home[whole] not in loop.body:
                    return True
        return False


def _from(function: Function, registers: list[int]) -> frozenset[int]:
    """Registers, and those that are taken out of what they hold."""
    found: set[int] = set()
    waiting = list(registers)
    while waiting:
        register = waiting.pop()
        if register not in found:
            found.add(register)
            waiting += [use[2] for use in function.uses[register] if use[0] in (op.UNPACK, op.PHI, op.BUILD)]
    return frozenset(found)


def _is_trained(row: StepRow) -> bool:
    """Whether a framework calls a method in each step of training; a ``forward`` also computes for others."""
    return row.loop in ("optimizer", "training") and not row.forward


def serves(region: Region) -> bool:
    """Whether the loop behind a region runs a model in each round, or goes through the rows of what it gave, and does nothing else."""
    return region.chain()[0].does in (INFER, ROWS)


def trains(region: Region) -> bool:
    """Whether the loop behind a region, or the method that a framework calls, trains."""
    first = region.chain()[0]
    if isinstance(first.row, StepRow):
        return _is_trained(first.row)
    if first.does == CALLED:
        return False
    return first.loop is None or first.does in TRAINING
