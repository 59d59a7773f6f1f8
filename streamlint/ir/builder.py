"""Builds the blocks of one function in SSA form while it is lowered.

The construction is that of Braun et al., "Simple and Efficient Construction of Static Single Assignment Form" (CC 2013): a variable is
looked up from block to block; where several meet, or a loop's head is not complete yet, a phi is placed. Lookups use a worklist, since code
may be as long as it likes. Phis that turn out to be the same value are removed at the end.
"""

from __future__ import annotations

from typing import Any

from streamlint.ir import opcodes as op
from streamlint.ir.code import Code, Instruction, pack_position
from streamlint.program import NOWHERE, Position


class Constants:
    """The constants of a module: each is kept once, by type and value."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        """The index of a constant. Equal values of different types (``1`` and ``True``), and ``0.0`` and ``-0.0``, stay apart."""
        kind = value.__class__
        key = (kind, value) if kind in (str, bytes, int, bool, type(None)) else (kind, repr(value))
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.values)
            self.values.append(value)
        return found


class Builder:
    """The blocks of one function in the making. ``block`` is the one that instructions go to; None behind a terminator."""

    def __init__(self, code: Code, constants: Constants, first_row: int) -> None:
        self.code = code
        self.constants = constants
        self.first_row = first_row
        self.blocks: list[list[Instruction]] = []
        self.predecessors: list[list[int]] = []
        self.handlers: dict[int, int] = {}
        self.registers = 0
        self._sealed: list[bool] = []
        self._definitions: list[dict[str, int]] = []
        self._phis: dict[int, tuple[int, str]] = {}  # register -> block, variable
        self._operands: dict[int, list[int]] = {}
        self._open: list[dict[str, int]] = []  # phis of blocks that are not sealed
        self._places: dict[Position, int] = {}
        self.block = self.new_block()
        self.seal(self.block)

    # --- blocks and instructions

    def new_block(self) -> int:
        """A block that is not sealed: edges to it may still come."""
        self.blocks.append([])
        self.predecessors.append([])
        self._sealed.append(False)
        self._definitions.append({})
        self._open.append({})
        return len(self.blocks) - 1

    def place(self, at: Position) -> int:
        """The number of a position in the function's table."""
        if at == NOWHERE:
            return op.NONE
        found = self._places.get(at)
        if found is None:
            found = self._places[at] = len(self.code.positions)
            self.code.positions.append(pack_position(at, self.first_row))
        return found

    def register(self) -> int:
        """A register that nothing defines yet."""
        self.registers += 1
        return self.registers - 1

    def define(self, opcode: int, at: Position, *operands: int) -> int:
        """Add an instruction that defines a new register, and give it."""
        register = self.register()
        self.blocks[self.block].append((opcode, self.place(at), register, *operands))
        return register

    def add(self, opcode: int, at: Position, *operands: int) -> None:
        """Add an instruction that defines nothing."""
        self.blocks[self.block].append((opcode, self.place(at), *operands))

    def constant(self, value: Any, at: Position = NOWHERE) -> int:
        """A register that holds a literal."""
        return self.define(op.CONST, at, self.constants.number(value))

    @property
    def ended(self) -> bool:
        """Whether the current block has its terminator: what is added now cannot be reached."""
        block = self.blocks[self.block]
        return bool(block) and block[-1][0] in op.TERMINATORS

    def edge(self, after: int) -> None:
        """An edge from the current block."""
        if self.block not in self.predecessors[after]:
            self.predecessors[after].append(self.block)

    def jump(self, after: int, at: Position = NOWHERE) -> None:
        """End the current block, unless it has ended."""
        if not self.ended:
            self.add(op.JUMP, at, after)
            self.edge(after)

    def branch(self, test: int, then: int, otherwise: int, at: Position = NOWHERE) -> None:
        """End the current block with a two-way branch."""
        if not self.ended:
            self.add(op.BRANCH, at, test, then, otherwise)
            self.edge(then)
            self.edge(otherwise)

    def unwind_to(self, handler: int) -> None:
        """End the block behind the instruction that may raise, with an edge to its handler."""
        after = self.new_block()
        self.handlers[self.block] = handler
        self.add(op.JUMP, NOWHERE, after)
        self.edge(after)
        self.edge(handler)
        self.start(after)

    def start(self, block: int, sealed: bool = True) -> None:
        """Go on in a block; ``sealed`` says that all edges to it are there."""
        self.block = block
        if sealed:
            self.seal(block)

    # --- variables

    def write(self, variable: str, register: int) -> None:
        """A variable has a new value in the current block."""
        self._definitions[self.block][variable] = register

    def read(self, variable: str, block: int | None = None) -> int:
        """The value of a variable at the end of a block, as far as it goes."""
        register, pending = self._find(variable, self.block if block is None else block)
        while pending:
            phi = pending.pop()
            where, name = self._phis[phi]
            operands = self._operands[phi]
            for before in self.predecessors[where]:
                found, more = self._find(name, before)
                operands.append(found)
                pending += more
        return register

    def _find(self, variable: str, block: int) -> tuple[int, list[int]]:
        """A variable's value at the end of a block, and the phis whose operands are still to be found."""
        passed: list[int] = []
        pending: list[int] = []
        while True:
            found = self._definitions[block].get(variable)
            if found is not None:
                break
            passed.append(block)
            before = self.predecessors[block]
            if not self._sealed[block]:
                found = self._phi(block, variable)
                self._open[block][variable] = found
                break
            if len(before) == 1:
                block = before[0]
                continue
            if not before:
                found = self.register()
                self.blocks[block].insert(0, (op.UNDEF, op.NONE, found, self.constants.number(variable)))
                break
            found = self._phi(block, variable)
            pending.append(found)
            break
        for each in passed:
            self._definitions[each][variable] = found
        return found, pending

    def _phi(self, block: int, variable: str) -> int:
        register = self.register()
        self._phis[register] = (block, variable)
        self._operands[register] = []
        return register

    def seal(self, block: int) -> None:
        """All edges to a block are there: its open phis get their operands."""
        if self._sealed[block]:
            return
        self._sealed[block] = True
        for variable, phi in self._open[block].items():
            self._operands[phi] = [self.read(variable, before) for before in self.predecessors[block]]
        self._open[block] = {}

    # --- the end

    def finish(self) -> None:
        """Drop what cannot be reached and phis that are one value, number registers anew, and give the blocks to the code."""
        for block in range(len(self.blocks)):
            self.seal(block)
        order = self._reachable()
        same = self._trivial_phis(set(order))
        order = self._merged(order)
        self._drop_unread_phis(order, same)
        number = {block: new for new, block in enumerate(order)}
        phis: dict[int, list[int]] = {}
        for phi, (where, _) in self._phis.items():
            phis.setdefault(where, []).append(phi)
        blocks = [self._placed_phis(phis.get(block, []), block, number, same) + self.blocks[block] for block in order]
        self.code.handlers = {number[block]: number[handler] for block, handler in self.handlers.items() if block in number}
        final, count = self._final_registers(blocks, same)
        self.code.blocks = [[_renamed(one, final, number) for one in block] for block in blocks]
        self.code.registers = count
        self.code.statics = tuple(final[one] for one in self.code.statics if final[one] >= 0)
        declared = self.code.declared.items()
        self.code.declared = {final[one] if one >= 0 else one: text for one, text in declared if one < 0 or final[one] >= 0}

    def _final_registers(self, blocks: list[list[Instruction]], same: dict[int, int]) -> tuple[list[int], int]:
        """For each register its number in the order of definitions, and how many there are."""
        final = [op.NONE] * self.registers
        count = 0
        for instructions in blocks:
            for instruction in instructions:
                if op.DEFINES[instruction[0]]:
                    final[instruction[2]] = count
                    count += 1
        for register, other in same.items():
            final[register] = final[other]
        return final, count

    def _reachable(self) -> list[int]:
        """Blocks in reverse post-order from the entry."""
        after = [self._after(block) for block in range(len(self.blocks))]
        seen, order, stack = {0}, [], [(0, iter(after[0]))]
        while stack:
            block, rest = stack[-1]
            for one in rest:
                if one not in seen:
                    seen.add(one)
                    stack.append((one, iter(after[one])))
                    break
            else:
                stack.pop()
                order.append(block)
        order.reverse()
        return order

    def _after(self, block: int) -> list[int]:
        instructions = self.blocks[block]
        end = instructions[-1] if instructions else None
        if end is None or end[0] not in op.TERMINATORS:
            instructions.append((op.UNREACHABLE, op.NONE))
            return []
        found = [end[2]] if end[0] == op.JUMP else [end[4], end[3]] if end[0] == op.BRANCH else []
        return [self.handlers[block], *found] if block in self.handlers else found

    def _merged(self, order: list[int]) -> list[int]:
        """Blocks joined with their only successor where that has no other predecessor."""
        gone: set[int] = set()
        reachable = set(order)
        for block in order:
            if block in gone:
                continue
            while block not in self.handlers and (end := self.blocks[block][-1])[0] == op.JUMP:
                after = end[2]
                if (
                    after == block
                    or after in self.handlers
                    or [one for one in self.predecessors[after] if one in reachable and one not in gone] != [block]
                ):
                    break
                self.blocks[block] = self.blocks[block][:-1] + self.blocks[after]
                self._move_edges(after, block)
                gone.add(after)
        return [block for block in order if block not in gone]

    def _move_edges(self, old: int, new: int) -> None:
        """The edges that left one block leave another."""
        if old in self.handlers:
            self.handlers[new] = self.handlers.pop(old)
        end = self.blocks[old][-1]
        after = [end[2]] if end[0] == op.JUMP else [end[3], end[4]] if end[0] == op.BRANCH else []
        if new in self.handlers:
            after.append(self.handlers[new])
        for one in after:
            self.predecessors[one] = [new if before == old else before for before in self.predecessors[one]]

    def _drop_unread_phis(self, order: list[int], same: dict[int, int]) -> None:
        """Phis that no instruction reads, themselves and each other aside."""
        if not self._phis:
            return
        phis = self._phis
        live: set[int] = set()
        for block in order:
            for instruction in self.blocks[block]:
                for index in _READS[instruction[0]]:
                    operand = same.get(instruction[index], instruction[index])
                    if operand in phis:
                        live.add(operand)
                if op.REPEATED[instruction[0]]:
                    live.update(one for each in instruction[_FIRST[instruction[0]] :] if (one := same.get(each, each)) in phis)
        stack = list(live)
        while stack:
            for one in self._operands[stack.pop()]:
                operand = same.get(one, one)
                if operand in phis and operand not in live:
                    live.add(operand)
                    stack.append(operand)
        self._phis = {phi: place for phi, place in self._phis.items() if phi in live}

    def _trivial_phis(self, reachable: set[int]) -> dict[int, int]:
        """Phis that have one operand beside themselves, each with that operand."""
        same: dict[int, int] = {}
        for phi, (block, _) in self._phis.items():  # edges from dead blocks carry nothing
            before = self.predecessors[block]
            self._operands[phi] = [one for one, place in zip(self._operands[phi], before, strict=False) if place in reachable]
        left = list(self._operands.items())
        while True:
            kept = []
            for phi, operands in left:
                different = {_resolved(one, same) for one in operands} - {phi}
                if len(different) == 1:
                    same[phi] = different.pop()
                else:
                    kept.append((phi, operands))
            if len(kept) == len(left):
                return {phi: _resolved(phi, same) for phi in same}
            left = kept

    def _placed_phis(self, phis: list[int], block: int, number: dict[int, int], same: dict[int, int]) -> list[Instruction]:
        """The phis at the head of a block, their operands in the order of the predecessors' new numbers."""
        before = [one for one in self.predecessors[block] if one in number]
        order = sorted(range(len(before)), key=lambda index: number[before[index]])
        found: list[Instruction] = []
        for phi in phis:
            operands = self._operands[phi]
            if phi not in same and operands:
                found.append((op.PHI, op.NONE, phi, *(operands[index] for index in order)))
            elif phi not in same:
                found.append((op.UNDEF, op.NONE, phi, self.constants.number(self._phis[phi][1])))
        return found


def _resolved(register: int, same: dict[int, int]) -> int:
    while register in same:
        register = same[register]
    return register


# By opcode: where registers stand that it reads or defines, where blocks do, and where operands that repeat begin.
_READS = tuple(tuple(index for index, letter in enumerate(fixed, 2) if letter in "rR") for fixed in op.FIXED)
_RENAMED = tuple(tuple(index for index, letter in enumerate(fixed, 2) if letter in "rRd") for fixed in op.FIXED)
_BLOCKS = tuple(tuple(index for index, letter in enumerate(fixed, 2) if letter == "b") for fixed in op.FIXED)
_FIRST = tuple(2 + len(fixed) for fixed in op.FIXED)


def _renamed(instruction: Instruction, registers: list[int], blocks: dict[int, int]) -> Instruction:
    """An instruction with the final numbers of its registers and blocks."""
    opcode = instruction[0]
    found = list(instruction)
    for index in _RENAMED[opcode]:
        if found[index] >= 0:
            found[index] = registers[found[index]]
    for index in _BLOCKS[opcode]:
        found[index] = blocks[found[index]]
    if op.REPEATED[opcode]:
        for index in range(_FIRST[opcode], len(found)):
            if found[index] >= 0:
                found[index] = registers[found[index]]
    return tuple(found)
