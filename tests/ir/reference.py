"""A reference interpreter of the intermediate representation: it runs the IR of Python code on Python's own values.

It is as plain as can be: what it computes must be what CPython computes (`test_against_cpython.py`).
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

from streamlint.frontends import python
from streamlint.ir import Code, Instruction, ModuleIR
from streamlint.ir import opcodes as op
from streamlint.ir.modules import lower

_BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "**": operator.pow, "@": operator.matmul, "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift,
    ">>": operator.rshift,
}  # fmt: skip
_INPLACE = {
    "+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv, "//": operator.ifloordiv, "%": operator.imod,
    "**": operator.ipow, "&": operator.iand, "|": operator.ior, "^": operator.ixor, "<<": operator.ilshift, ">>": operator.irshift,
}  # fmt: skip
_COMPARE = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "is": operator.is_,
    "is not": operator.is_not, "in": lambda a, b: a in b, "not in": lambda a, b: a not in b,
}  # fmt: skip
_UNARY = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "not": operator.not_}
_MOST_STEPS = 200_000


class Undefined:
    """What a variable holds that nothing has bound; reading it is an error of the lowering."""


class Shifting:
    """An iterator that can be asked whether it has one more element."""

    def __init__(self, values: Any) -> None:
        self.values = iter(values)
        self.ahead: list[Any] = []

    def more(self) -> bool:
        if not self.ahead:
            try:
                self.ahead.append(next(self.values))
            except StopIteration:
                return False
        return True


class Reference:
    """Runs one module."""

    def __init__(self, text: str, **names: Any) -> None:
        self.module: ModuleIR = ModuleIR.load("test.py", lower(python.lower("test.py", text)).dump())
        self.names: dict[str, Any] = dict(names)
        self.steps = 0

    def run(self) -> dict[str, Any]:
        """Run the module's body; its names."""
        self.call(self.module.code(0), (), {}, {}, self.names)
        return self.names

    def call(self, code: Code, args: tuple[Any, ...], keywords: dict[str, Any], cells: dict[Any, Any], space: dict[str, Any]) -> Any:
        """The result of a function; of a generator, the generator."""
        frame = self.execute(code, args, keywords, dict(cells), space)
        if "generator" in code.flags:
            return frame
        try:
            next(frame)
        except StopIteration as end:
            return end.value
        raise AssertionError("a function that is no generator has yielded")

    def bind(self, code: Code, args: tuple[Any, ...], keywords: dict[str, Any], defaults: dict[str, Any]) -> list[Any]:
        """The values of a function's parameters."""
        left, given, found = list(args), dict(keywords), []
        for parameter in code.parameters:
            name = parameter.name
            if parameter.kind == "star":
                found.append(tuple(left))
                left = []
            elif parameter.kind == "double":
                found.append(given)
                given = {}
            elif parameter.kind == "captured":
                found.append(defaults[name])
            elif parameter.kind == "plain" and left:
                found.append(left.pop(0))
            elif name in given:
                found.append(given.pop(name))
            elif name in defaults:
                found.append(defaults[name])
            else:
                raise TypeError(f"missing {name}")
        if left or given:
            raise TypeError("too many arguments")
        return found

    def execute(
        self, code: Code, args: tuple[Any, ...], keywords: dict[str, Any], cells: dict[Any, Any], space: dict[str, Any]
    ) -> Generator[Any, Any, Any]:
        """Run a body block by block."""
        registers: dict[int, Any] = {}
        order = code.predecessors()
        block, before, caught = 0, -1, None
        for variable, owner in code.cells:
            if owner == code.number:
                cells[variable, owner] = [Undefined]
        while True:
            phis = [one for one in code.blocks[block] if one[0] == op.PHI]
            values = [registers[one[3 + order[block].index(before)]] for one in phis]
            registers.update(zip((one[2] for one in phis), values, strict=True))
            try:
                following: Any = None
                for one in code.blocks[block][len(phis) :]:
                    self.steps += 1
                    if self.steps > _MOST_STEPS:
                        raise AssertionError("does not end")
                    opcode = one[0]
                    if opcode == op.YIELD:
                        registers[one[2]] = yield self.value(registers, one[3])
                    elif opcode == op.YIELD_FROM:
                        registers[one[2]] = yield from registers[one[3]]
                    elif opcode == op.CAUGHT:
                        registers[one[2]] = caught
                    elif opcode == op.RETURN:
                        return self.value(registers, one[2])
                    elif opcode == op.JUMP:
                        following = one[2]
                    elif opcode == op.BRANCH:
                        following = one[3] if registers[one[2]] else one[4]
                    elif opcode == op.RAISE:
                        raise registers[one[2]]
                    elif opcode == op.UNREACHABLE:
                        raise AssertionError("reached what cannot be reached")
                    else:
                        self.step(code, one, registers, cells, space, args, keywords)
            except AssertionError as error:
                if str(error).startswith(("reached", "does not end", "a function that")):
                    raise
                following, caught = self.unwound(code, block, error)
            except Exception as error:
                following, caught = self.unwound(code, block, error)
            before, block = block, following

    def unwound(self, code: Code, block: int, error: Exception) -> tuple[int, Exception]:
        handler = code.handlers.get(block)
        if handler is None:
            raise error
        return handler, error

    def value(self, registers: dict[int, Any], operand: int) -> Any:
        return None if operand < 0 else registers[operand]

    def arguments(self, shape: int, values: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments."""
        kinds = self.module.constants[shape] if shape >= 0 else (None,) * len(values)
        args: list[Any] = []
        keywords: dict[str, Any] = {}
        for kind, value in zip(kinds, values, strict=True):
            if kind == 1:
                args += value
            elif kind == 2:
                keywords.update(value)
            elif kind is None:
                args.append(value)
            else:
                keywords[kind] = value
        return tuple(args), keywords

    def step(
        self,
        code: Code,
        one: Instruction,
        registers: dict[int, Any],
        cells: dict[Any, Any],
        space: dict[str, Any],
        args: Any,
        keywords: Any,
    ) -> None:
        """One instruction that goes nowhere."""
        opcode, constants = one[0], self.module.constants
        get = registers.__getitem__
        if opcode == op.PARAM:
            if one[3] == 0:
                registers["params"] = self.bind(code, args, keywords, cells.get("defaults", {}))  # type: ignore[index]
            registers[one[2]] = registers["params"][one[3]]  # type: ignore[index]
        elif opcode == op.CONST:
            registers[one[2]] = constants[one[3]]
        elif opcode == op.UNDEF:
            registers[one[2]] = Undefined
        elif opcode == op.NAME:
            registers[one[2]] = self.name(constants[one[3]], space)
        elif opcode == op.SET_NAME:
            space[constants[one[2]]] = get(one[3])
        elif opcode == op.DEL_NAME:
            del space[constants[one[2]]]
        elif opcode == op.LOAD:
            found = cells[constants[one[3]]][0]
            if found is Undefined:
                raise NameError(constants[one[3]][0])
            registers[one[2]] = found
        elif opcode == op.STORE:
            cells[constants[one[2]]][0] = get(one[3])
        elif opcode in (op.BIND, op.UNBIND):
            pass
        elif opcode == op.ATTR:
            registers[one[2]] = getattr(get(one[3]), constants[one[4]])
        elif opcode == op.SET_ATTR:
            setattr(get(one[2]), constants[one[3]], get(one[4]))
        elif opcode == op.DEL_ATTR:
            delattr(get(one[2]), constants[one[3]])
        elif opcode == op.ITEM:
            registers[one[2]] = get(one[3])[get(one[4])]
        elif opcode == op.SET_ITEM:
            get(one[2])[get(one[3])] = get(one[4])
        elif opcode == op.DEL_ITEM:
            del get(one[2])[get(one[3])]
        elif opcode == op.SLICE:
            registers[one[2]] = slice(*(self.value(registers, each) for each in one[3:]))
        elif opcode == op.UNARY:
            registers[one[2]] = _UNARY[constants[one[3]]](get(one[4]))
        elif opcode in (op.BINARY, op.INPLACE):
            registers[one[2]] = (_BINARY if opcode == op.BINARY else _INPLACE)[constants[one[3]]](get(one[4]), get(one[5]))
        elif opcode == op.COMPARE:
            registers[one[2]] = _COMPARE[constants[one[3]]](get(one[4]), get(one[5]))
        elif opcode == op.CALL:
            given, named = self.arguments(one[4], [get(each) for each in one[5:]])
            registers[one[2]] = get(one[3])(*given, **named)
        elif opcode == op.INVOKE:
            given, named = self.arguments(one[5], [get(each) for each in one[6:]])
            registers[one[2]] = getattr(get(one[3]), constants[one[4]])(*given, **named)
        elif opcode == op.BUILD:
            registers[one[2]] = self.build(constants[one[3]], [get(each) for each in one[4:]])
        elif opcode == op.DICT:
            registers[one[2]] = self.mapping(registers, one[3:])
        elif opcode == op.APPEND:
            (get(one[2]).append if isinstance(get(one[2]), list) else get(one[2]).add)(get(one[3]))
        elif opcode == op.PUT:
            get(one[2])[get(one[3])] = get(one[4])
        elif opcode == op.FUNCTION:
            registers[one[2]] = self.function(one, registers, cells, space if code.kind != "class" else self.names)
        elif opcode == op.CLASS:
            registers[one[2]] = self.define(one, registers, cells)
        elif opcode == op.ITER:
            registers[one[2]] = Shifting(get(one[3]))
        elif opcode == op.MORE:
            registers[one[2]] = get(one[3]).more()
        elif opcode == op.NEXT:
            registers[one[2]] = get(one[3]).ahead.pop()
        elif opcode == op.UNPACK:
            registers[one[2]] = self.unpacked(get(one[3]), *one[4:])
        elif opcode == op.ENTER:
            registers[one[2]] = get(one[3]).__enter__()
        elif opcode == op.EXIT:
            raised = self.value(registers, one[4])
            registers[one[2]] = get(one[3]).__exit__(type(raised) if raised is not None else None, raised, None)
        elif opcode == op.CATCHES:
            registers[one[2]] = isinstance(get(one[3]), get(one[4]))
        elif opcode == op.MATCH:
            registers[one[2]] = self.fits(get(one[3]), constants[one[4]], [get(each) for each in one[5:]])
        elif opcode == op.CAPTURE:
            registers[one[2]] = self.captured(get(one[3]), *constants[one[4]])
        elif opcode == op.FORMAT:
            registers[one[2]] = "".join(str(get(each)) for each in one[4:])
        else:
            raise NotImplementedError(op.NAMES[opcode])

    def fits(self, subject: Any, shape: tuple[Any, ...], values: list[Any]) -> bool:
        if shape[0] == "sequence":
            _, count, star = shape
            is_sequence = isinstance(subject, Sequence) and not isinstance(subject, str | bytes | bytearray)
            return is_sequence and (len(subject) == count if star < 0 else len(subject) >= count - 1)
        if shape[0] == "mapping":
            return isinstance(subject, Mapping) and all(key in subject for key in values)
        return isinstance(subject, values[0]) and all(hasattr(subject, name) for name in shape[2])

    def captured(self, subject: Any, kind: str, *where: Any) -> Any:
        if kind == "rest":
            return {key: value for key, value in subject.items() if key not in where[0]}
        index, name = where
        return subject if name in ("int", "str", "list", "dict", "tuple") else getattr(subject, self.names[name].__match_args__[index])

    def name(self, name: str, space: dict[str, Any]) -> Any:
        for names in (space, self.names, vars(builtins)):
            if name in names:
                return names[name]
        raise NameError(name)

    def build(self, kind: Any, values: list[Any]) -> Any:
        name, starred = (kind, ()) if isinstance(kind, str) else kind
        found: list[Any] = []
        for index, value in enumerate(values):
            if index in starred:
                found += value
            else:
                found.append(value)
        return {"list": list, "tuple": tuple, "set": set}[name](found)

    def mapping(self, registers: dict[int, Any], operands: tuple[int, ...]) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, value in zip(operands[::2], operands[1::2], strict=True):
            if key < 0:
                found.update(registers[value])
            else:
                found[registers[key]] = registers[value]
        return found

    def function(self, one: Instruction, registers: dict[int, Any], cells: dict[Any, Any], space: dict[str, Any]) -> Any:
        code = self.module.code(one[3])
        with_default = [parameter.name for parameter in code.parameters if parameter.default is True]
        defaults = dict(zip(with_default, (registers[each] for each in one[4:]), strict=True))
        inner = {**{key: cell for key, cell in cells.items() if key != "defaults"}, "defaults": defaults}
        return lambda *args, **keywords: self.call(code, args, keywords, inner, self.names)

    def define(self, one: Instruction, registers: dict[int, Any], cells: dict[Any, Any]) -> type:
        described = self.module.classes[one[3]]
        space: dict[str, Any] = {}
        self.call(self.module.code(described.body), (), {}, cells, space)
        return type(described.name, tuple(registers[each] for each in one[5:]), space)

    def unpacked(self, value: Any, index: int, count: int, star: int) -> Any:
        values = list(value)
        if star < 0:
            if len(values) != count:
                raise ValueError("unpack")
            return values[index]
        if len(values) < count - 1:
            raise ValueError("unpack")
        behind = count - 1 - star
        if index == star:
            return values[star : len(values) - behind]
        return values[index] if index < star else values[len(values) - (count - index)]


def elements(values: Iterator[Any]) -> list[Any]:
    """All that a generator gives."""
    return list(values)
