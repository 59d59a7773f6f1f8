"""The intermediate representation of a function, a class and a file, and the bytes that it is kept as.

Everything a `ModuleIR` holds is made of plain tuples, strings and numbers, so that `marshal` reads it: a function's code is loaded on its
own, when somebody asks for it. Rows of a position are relative to the function's first row, so that an edit above a function changes
nothing of it.
"""

from __future__ import annotations

import marshal
import zlib
from array import array
from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

from streamlint.ir.opcodes import BIND, BRANCH, JUMP, OUT, PARAM
from streamlint.program import NOWHERE, Position

Instruction = tuple[int, ...]
TypeTuple = tuple[Any, ...]
"""A C++ type: ``(name, arguments, pointers, reference, array)``."""
TemplateArgument = TypeTuple | bool | int | float | str | None
"""A template argument: the value of a literal, else a type, or what may be one: a name is looked up where it stands."""

_COLUMN_BITS, _LINE_BITS = 12, 14  # `pack_position` spells the shifts out
_COLUMN_MASK, _LINE_MASK = (1 << _COLUMN_BITS) - 1, (1 << _LINE_BITS) - 1
_LEVEL = 1  # a third of the size for a twentieth of the time that lowering takes
_OFFSET = 1 << 20  # a row before the function's first: a decorator, or a macro's definition


class Parameter(NamedTuple):
    """A parameter. ``kind``: ``plain``, ``star``, ``double``, ``keyword``. ``default`` says whether there is one (Python: an operand of the
    `function` instruction, in order; C++: the number of the code that computes it, evaluated at the call)."""

    name: str
    kind: str
    default: bool | int
    annotation: str
    type: TypeTuple | None
    constant: bool = False  # C++: what it points or refers to is not changed through it


class Code:
    """The control-flow graph of one function body.

    ``blocks`` are lists of instructions, the last of which is the terminator; block 0 is the entry. ``handlers`` maps a block to the block
    that an exception of its last instruction before the terminator goes to. ``predecessors`` orders the operands of `phi`.
    """

    __slots__ = (
        "blocks",
        "cells",
        "class_name",
        "declared",
        "decorators",
        "first_row",
        "flags",
        "handlers",
        "kind",
        "name",
        "number",
        "parameters",
        "parent",
        "parts",
        "positions",
        "qualname",
        "registers",
        "returns",
        "specialised",
        "statics",
        "stores",
        "symbols",
        "template",
        "templates",
    )

    def __init__(self, number: int, name: str, qualname: str, kind: str) -> None:
        self.number = number
        self.name = name
        self.qualname = qualname
        self.kind = kind  # function, lambda, module, class, generator, default
        self.parent = -1
        self.class_name = ""
        self.flags: frozenset[str] = frozenset()  # async, generator, static, kernel, device
        self.parameters: tuple[Parameter, ...] = ()
        self.returns: str | TypeTuple | None = None
        self.decorators: tuple[str, ...] = ()  # as text, without their arguments, the outermost first
        self.template: tuple[str, ...] = ()  # C++: names of template parameters
        self.specialised: tuple[TemplateArgument, ...] = ()  # C++: what it, or the class around it, is specialised for
        self.stores: tuple[str, ...] = ()  # a kernel's: the parameters that its body plainly stores through
        self.symbols: tuple[str, ...] = ()  # a kernel's: the names of the file that its body stores to, as far as its text tells
        self.declared: dict[int, str] = {}  # by register the annotation of what it is assigned to; C++: under NONE that of the result
        self.parts: dict[str, tuple[str, ...]] = {}  # a kernel's: by parameter, what its body touches of it: a kind, and what shows
        self.statics: tuple[int, ...] = ()  # C++: the registers with which its static variables begin
        self.first_row = 0
        self.cells: tuple[tuple[str, int], ...] = ()  # cells that the body names, each with the code that owns it
        self.blocks: list[list[Instruction]] = []
        self.handlers: dict[int, int] = {}
        self.positions: array[int] = array("q")
        self.templates: dict[int, tuple[TemplateArgument, ...]] = {}  # C++: template arguments of the call or the name at a place
        self.registers = 0

    def at(self, place: int) -> Position:
        """The position that an instruction's ``at`` numbers."""
        if place < 0:
            return NOWHERE
        packed = self.positions[place]
        row = (packed >> 2 * _COLUMN_BITS + _LINE_BITS) - _OFFSET + self.first_row
        lines = packed >> 2 * _COLUMN_BITS & _LINE_MASK
        return row, packed >> _COLUMN_BITS & _COLUMN_MASK, row + lines, packed & _COLUMN_MASK

    def successors(self, block: int) -> tuple[int, ...]:
        """Where control goes from a block, its exception edge last."""
        end = self.blocks[block][-1]
        after: tuple[int, ...] = (end[2],) if end[0] == JUMP else (end[3], end[4]) if end[0] == BRANCH else ()
        handler = self.handlers.get(block)
        return after if handler is None else (*after, handler)

    def predecessors(self) -> list[list[int]]:
        """For each block those that lead to it, in the order of `phi` operands: by number, normal edges before exception edges."""
        found: list[list[int]] = [[] for _ in self.blocks]
        for block in range(len(self.blocks)):
            for after in self.successors(block):
                if block not in found[after]:
                    found[after].append(block)
        return found

    def instructions(self) -> Iterator[Instruction]:
        """All instructions, block by block."""
        for block in self.blocks:
            yield from block

    def without_receiver(self) -> Code:
        """C++: the code of a method that turns out to be static; what follows the receiver has moved up by one."""
        code = copy(self)
        code.flags, code.parameters = self.flags | {"static"}, self.parameters[1:]
        receivers = {one[2] for one in self.instructions() if one[0] == PARAM and one[3] == 0}

        def is_receiver(one: Instruction) -> bool:
            return (one[0] == PARAM and one[3] == 0) or (one[0] == BIND and one[3] in receivers)

        code.blocks = [[_moved_up(one) for one in block if not is_receiver(one)] for block in self.blocks]
        return code

    def dump(self) -> bytes:
        """The code as bytes; they do not hold its place in the file."""
        head = (self.number, self.name, self.qualname, self.kind, self.parent, self.class_name, tuple(sorted(self.flags)))
        parameters = tuple(tuple(one) for one in self.parameters)
        data: tuple[Any, ...] = (parameters, self.returns, self.cells, self.positions.tobytes(), self.registers)
        rest = (*data, self.templates, self.decorators, self.template, self.stores, self.statics, self.parts, self.declared)
        return marshal.dumps((head, (*rest, self.specialised, self.symbols), *_pack_blocks(self.blocks), self.handlers), 2)

    @classmethod
    def load(cls, data: bytes, first_row: int) -> Code:
        """The code that `dump` wrote, where it stands now."""
        head, rest, lengths, stream, handlers = marshal.loads(data)
        code = cls(*head[:4])
        code.parent, code.class_name, code.flags = head[4], head[5], frozenset(head[6])
        code.parameters = tuple(Parameter(*one) for one in rest[0])
        code.first_row, code.returns, code.cells = first_row, rest[1], rest[2]
        code.positions.frombytes(rest[3])
        code.registers, code.templates, code.decorators, code.template, code.stores, code.statics, code.parts, code.declared = rest[4:12]
        code.specialised, code.symbols = rest[12:14]
        code.blocks, code.handlers = _unpack_blocks(lengths, stream), handlers
        return code


def _moved_up(one: Instruction) -> Instruction:
    """An instruction that names a parameter behind the receiver, as it is without that."""
    place = 3 if one[0] == PARAM else 2
    return (*one[:place], one[place] - 1, *one[place + 1 :]) if one[0] in (PARAM, OUT) else one


def spelled(argument: TemplateArgument) -> str:
    """A type, or a template argument, as it may be written."""
    if not isinstance(argument, tuple):
        return str(argument).lower() if isinstance(argument, bool) else str(argument)
    name, args, pointers, reference, array = argument
    inner = f"<{','.join(map(spelled, args))}>" if args else ""
    return f"{name}{inner}{'*' * pointers}{'&' * reference}{'' if array is None else f'[{array or str()}]'}"


def _pack_blocks(blocks: list[list[Instruction]]) -> tuple[bytes, bytes]:
    """How many instructions each block has; all instructions, each behind its length. It takes half the room and time of `marshal`."""
    stream = array("i")
    for block in blocks:
        for instruction in block:
            stream.append(len(instruction))
            stream.extend(instruction)
    return array("i", map(len, blocks)).tobytes(), stream.tobytes()


def _unpack_blocks(lengths: bytes, stream: bytes) -> list[list[Instruction]]:
    numbers = array("i")
    numbers.frombytes(stream)
    values = numbers.tolist()
    counts = array("i")
    counts.frombytes(lengths)
    found: list[list[Instruction]] = []
    begin = 0
    for count in counts:
        block: list[Instruction] = []
        for _ in range(count):
            end = begin + 1 + values[begin]
            block.append(tuple(values[begin + 1 : end]))
            begin = end
        found.append(block)
    return found


def pack_position(at: Position, first_row: int) -> int:
    """A position relative to a function's first row, as one number. Columns past 4,095 and heights past 16,383 lines are cut."""
    row, column, end_row, end_column = at
    lines = end_row - row
    if column > _COLUMN_MASK or end_column > _COLUMN_MASK or lines > _LINE_MASK:
        column, end_column, lines = min(column, _COLUMN_MASK), min(end_column, _COLUMN_MASK), min(lines, _LINE_MASK)
    return row - first_row + _OFFSET << 38 | lines << 24 | column << 12 | end_column


class FieldIR(NamedTuple):
    """A data member that a class declares: its annotation or C++ type."""

    name: str
    annotation: str
    type: TypeTuple | None
    static: bool
    private: bool  # C++: only functions of its class may name it


class ClassIR(NamedTuple):
    """A class. ``body`` is the code of its body; ``methods`` are (name, code) pairs, overloads included; ``bases`` as written."""

    number: int
    name: str
    qualname: str
    body: int
    parent: int
    bases: tuple[str, ...]
    methods: tuple[tuple[str, int], ...]
    fields: tuple[FieldIR, ...]
    template: tuple[str, ...]
    row: int
    decorators: tuple[str, ...] = ()
    keywords: tuple[tuple[str, str], ...] = ()  # Python: ``metaclass=M``, as text
    specialised: tuple[TemplateArgument, ...] = ()  # C++: what it is specialised for


class DeclarationIR(NamedTuple):
    """C++: a function that is declared, and not defined in this file. Its parameters may have defaults."""

    qualname: str
    class_name: str
    static: bool
    parameters: tuple[Parameter, ...]
    annotation: str = ""  # what a comment declares of the result
    waits: bool = False  # a comment declares that it waits for its stream


class ModuleIR:
    """One file: its constants, its classes, and the codes of its functions. Code 0 is the module's body."""

    __slots__ = (
        "_codes",
        "_packed",
        "aliases",
        "annotations",
        "classes",
        "constants",
        "declared",
        "defined",
        "globals",
        "included_at",
        "includes",
        "inline",
        "language",
        "namespaces",
        "outline",
        "path",
        "problems",
        "using",
    )

    def __init__(self, path: str, language: str, constants: tuple[Any, ...], codes: list[Code], classes: list[ClassIR]) -> None:
        self.path = path
        self.language = language
        self.constants = constants
        self.classes = classes
        self.includes: tuple[str, ...] = ()
        self.included_at: tuple[Position, ...] = ()
        # C++: definitions of macros that headers of the runtime read: name, what it stands for, place, and how many includes are above.
        self.defined: tuple[tuple[str, str, Position, int], ...] = ()
        self.inline: list[ModuleIR] = []  # C++ in the strings of a Python file
        self.namespaces: dict[str, str] = {}
        self.using: tuple[str, ...] = ()
        self.problems: list[tuple[Position, str]] = []  # what the front end could not read, with its place
        self.globals: dict[str, TypeTuple] = {}  # C++: variables of the file and its namespaces, with their types
        self.aliases: dict[str, TypeTuple] = {}  # C++: typedef and using
        self.declared: tuple[DeclarationIR, ...] = ()
        # Declared types of names and attributes: (code, "self.x") -> annotation.
        self.annotations: dict[tuple[int, str], str] = {}
        # (name, qualified name, kind, parent, class, first row) of each code: enough to find one without loading it.
        self.outline = [(code.name, code.qualname, code.kind, code.parent, code.class_name, code.first_row) for code in codes]
        self._codes: list[Code | None] = list(codes)
        self._packed: list[bytes] = []

    def __len__(self) -> int:
        return len(self._codes)

    def code(self, number: int) -> Code:
        """The code of one function, loaded when it is first asked for."""
        found = self._codes[number]
        if found is None:
            found = self._codes[number] = Code.load(zlib.decompress(self._packed[number]), self.outline[number][5])
        return found

    def codes(self) -> Iterator[Code]:
        """All codes, in order."""
        for number in range(len(self._codes)):
            yield self.code(number)

    def dump(self) -> bytes:
        """The module as bytes; its path is not part of them, so that the bytes depend on the file's content alone."""
        codes = self._packed or [zlib.compress(self.code(number).dump(), _LEVEL) for number in range(len(self))]
        classes = [(*one[:7], tuple(tuple(field) for field in one.fields), *one[8:]) for one in self.classes]
        about = (self.language, self.includes, self.namespaces, self.using, self.annotations, self.globals, self.aliases, self.problems)
        declared = tuple((*one[:3], tuple(map(tuple, one.parameters)), *one[4:]) for one in self.declared)
        macros = (self.included_at, self.defined, [one.dump() for one in self.inline])
        return marshal.dumps((about, self.constants, classes, self.outline, codes, declared, macros), 2)

    @classmethod
    def load(cls, path: str, data: bytes) -> ModuleIR:
        """The module that `dump` wrote. Functions stay packed until they are asked for."""
        about, constants, classes, outline, codes, declared, macros = marshal.loads(data)
        module = cls(path, about[0], constants, [], [])
        module.includes, module.namespaces, module.using = about[1], about[2], about[3]
        module.annotations, module.globals, module.aliases, module.problems = about[4:]
        module.included_at, module.defined = macros[:2]
        module.inline = [cls.load(path, one) for one in macros[2]]
        module.classes = [ClassIR(*one[:7], tuple(FieldIR(*field) for field in one[7]), *one[8:]) for one in classes]  # type: ignore[call-arg]
        module.declared = tuple(
            DeclarationIR(one[0], one[1], one[2], tuple(Parameter(*each) for each in one[3]), one[4], one[5]) for one in declared
        )
        module.outline, module._packed, module._codes = outline, codes, [None] * len(codes)
        return module
