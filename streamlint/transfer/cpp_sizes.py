"""C++: how large arrays, containers and blocks of the heap are."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Memory
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import TypeTuple, spelled
from streamlint.transfer.contexts import Contexts, Known
from streamlint.transfer.cpp_declared import declared_type

WIDTHS = {
    "char": 1, "unsigned char": 1, "signed char": 1, "bool": 1, "uint8_t": 1, "int8_t": 1, "std::uint8_t": 1, "std::byte": 1, "short": 2,
    "uint16_t": 2, "int16_t": 2, "half": 2, "__half": 2, "int": 4, "unsigned": 4, "unsigned int": 4, "float": 4, "uint32_t": 4,
    "int32_t": 4, "double": 8, "size_t": 8, "std::size_t": 8, "long": 8, "uint64_t": 8, "int64_t": 8, "long long": 8,
    "std::uint64_t": 8, "std::int64_t": 8, "std::uint32_t": 4, "std::int32_t": 4,
}  # fmt: skip
WHOLE = (
    frozenset({"int", "unsigned", "unsigned int", "size_t", "long", "long long"})
    | {f"{prefix}{sign}int{bits}_t" for prefix in ("", "std::") for sign in ("", "u") for bits in (32, 64)}
    | {"std::size_t"}
)
_MOST = 60
_DEEPEST = 6


class CppSizes:
    """Finds sizes of C++ objects; extends what `Contexts` knows of numbers."""

    def __init__(self, contexts: Contexts) -> None:
        self.contexts = contexts
        self.facts = contexts.facts
        contexts.number_of = self.number

    def number(self, known: Known, depth: int) -> int | None:
        """The number that an instruction gives: ``sizeof``, the length of a container, a constant of a namespace or a class."""
        one = self.contexts.definition(known)
        function = known.function
        if one is None:
            return None
        if one[0] == op.CALL and function.dotted(one[3]) == "sizeof" and len(one) == 6:
            return self._size_of(known._replace(register=one[5]))
        if one[0] in (op.CONSTRUCT, op.CALL) and len(one) == 6:
            return self.contexts.number(known._replace(register=one[5]), depth + 1)  # a cast: `size_t(n)`
        if one[0] == op.INVOKE and function.text(one[4]) == "size" and len(one) == 6:
            return self.elements(known._replace(register=one[3]))
        if one[0] == op.NAME:
            return self._named(known, one, depth)
        return None

    def _named(self, known: Known, one: Instruction, depth: int) -> int | None:
        """A constant of a namespace or of a class."""
        node = self.facts.values(known.function, known.register)
        sites = {site.function for value in node.values for site in list(node.trace(value))[1:]}
        unit, name = known.function.unit, known.function.text(one[3])
        found = [
            (function, each)
            for function in (*sites, unit.functions[0], *(each for each in unit.functions if each.code.kind == "class"))
            for each in function.by_opcode[op.SET_NAME]
            if function.text(each[2]).rpartition("::")[2] == name.rpartition("::")[2]
        ]
        numbers = {self.contexts.number(Known(function, each[3], ()), depth + 1) for function, each in found}
        return numbers.pop() if len(numbers) == 1 else None

    def _size_of(self, known: Known) -> int | None:
        one = self.contexts.definition(known)
        if one is None:
            return None
        if one[0] == op.NAME and known.function.text(one[3]) in WIDTHS:
            return WIDTHS[known.function.text(one[3])]
        kind = self.type_of(known)
        if kind is not None and kind[4] is not None:
            width = self.width(known.function, (kind[0], kind[1], kind[2], False, None))
            return kind[4] * width if width is not None and isinstance(kind[4], int) and kind[4] else None
        return self.width(known.function, kind) if kind is not None else None

    def type_of(self, known: Known) -> TypeTuple | None:
        """The declared type of a variable or member."""
        return declared_type(self.contexts, known)

    def width(self, function: Function, kind: TypeTuple) -> int | None:
        """How many bytes a plain type takes; of structures, that of their members."""
        if kind[2]:
            return 8
        kind = self.facts.cpp.resolved(function.unit, "", kind)
        name = str(kind[0])
        if name in WIDTHS:
            return WIDTHS[name]
        definition = self.facts.cpp.find_class(function.unit, "", name)
        if definition is None or not definition.ir.fields:
            return None
        total = 0
        for field in definition.ir.fields:
            inner = field.type
            width = self.width(function, (inner[0], inner[1], inner[2], False, None)) if inner is not None else None
            if width is None or inner is None:
                return None
            total += width * (inner[4] if isinstance(inner[4], int) and inner[4] else 1)
        return total

    # --- containers

    def elements(self, known: Known) -> int | None:
        """How many elements a container has, where its makers and all that resize it say the same kind of number."""
        known = self.contexts.traced(known)
        counts = [self.contexts.number(each) for each in self._counts(known)]
        return max(count or 0 for count in counts) if counts and None not in counts else None

    def counts(self, known: Known) -> list[Known]:
        """The registers that say how many elements a container has."""
        return list(self._counts(self.contexts.traced(known)))

    def _counts(self, known: Known) -> Iterator[Known]:
        one, function = self.contexts.definition(known), known.function
        if one is None:
            return
        kind = self.type_of(known)
        if one[0] == op.CONSTRUCT and len(one) > 5 and kind is not None and kind[0] in function.unit.models.marked("resized"):
            yield known._replace(register=one[5])
        if one[0] == op.NAME:
            yield from self._member_counts(known, one)
            return
        registers, waiting = set[int](), [known.register]
        while waiting and len(registers) < _MOST:
            register = waiting.pop()
            if register in registers:
                continue
            registers.add(register)
            waiting += [use[2] for use in function.uses[register] if use[0] == op.REBIND and use[5] == register]
            waiting += [use[2] for use in function.uses[register] if use[0] == op.PHI]
        for register in sorted(registers):
            yield from (known._replace(register=count) for count in self._resized(function, register))

    def _member_counts(self, known: Known, one: Instruction) -> Iterator[Known]:
        function = known.function
        method, name = function.method, function.text(one[3])
        owner = method.owner if method is not None else None
        if owner is None:
            return
        for store in owner.own_stores.get(name, []):
            made = store.function.definitions[store.value] if store.value >= 0 else None
            if made is not None and made[0] == op.CONSTRUCT and len(made) > 5:
                yield Known(store.function, made[5], known.context)
            elif store.value >= 0:
                yield Known(store.function, store.value, known.context)
        for methods in owner.methods.values():
            for each in methods:
                for named in each.by_opcode[op.NAME]:
                    if each.text(named[3]) == name:
                        yield from (Known(each, count, known.context) for count in self._resized(each, named[2]))

    def _resized(self, function: Function, register: int) -> Iterator[int]:
        for use in function.uses[register]:
            if use[0] == op.INVOKE and use[3] == register and function.text(use[4]) in function.known("resizes") and len(use) > 6:
                yield use[6]

    def bytes_at(self, known: Known) -> int | None:
        """The size of memory that an instruction makes or names."""
        one, function = self.contexts.definition(known), known.function
        if one is None:
            return None
        if one[0] in (op.CALL, op.INVOKE):
            return self._bytes_of_call(known, one)
        kind = self.type_of(known)
        if kind is None:
            return None
        if one[0] == op.NEW_ARRAY:
            return _product(self.contexts.number(known._replace(register=one[4])) if one[4] >= 0 else None, self.width(function, kind))
        if kind[4] is not None:
            return self._size_of(known)
        element = self.element(kind)
        return _product(self.elements(known), self.width(function, element)) if element is not None else None

    def _bytes_of_call(self, known: Known, one: Instruction) -> int | None:
        """The size of memory that a call allocates, or makes an array of: ``std::make_unique<float[]>(n)``."""
        function = known.function
        for call in self.contexts.calls(function, one):
            register = call.one("bytes") if call.row.effect == "alloc" else None
            if register is not None:
                return self.contexts.number(Known(function, register, known.context))
        count = self.contexts.number(known._replace(register=one[5])) if one[0] == op.CALL and len(one) == 6 else None
        template = function.code.templates.get(one[1])
        return _product(count, WIDTHS.get(spelled(template[0]).removesuffix("[]")) if template else None)

    def element(self, kind: TypeTuple) -> TypeTuple | None:
        """The type of the elements of a container."""
        return kind[1][0] if kind[1] else None

    def is_of_array(self, known: Known, depth: int = 0) -> bool:
        """Whether a number is computed from the size of a tensor or array."""
        known = self.contexts.traced(known)
        one = self.contexts.definition(known)
        if one is None or depth > _DEEPEST:
            return False
        if one[0] == op.INVOKE:
            held = self.facts.values(known.function, one[3]).values
            if any(isinstance(value, Memory) and "Tensor" in value.type for value in held):
                return True
        if one[0] in (op.BINARY, op.CAST, op.CALL, op.INVOKE, op.CONSTRUCT):
            return any(self.is_of_array(known._replace(register=each), depth + 1) for each in op.reads(one))
        return False

    def is_of_tensors(self, known: Known, depth: int = 0) -> bool:
        """Whether a number is that of the tensors in a container, times numbers that are known."""
        known = self.contexts.traced(known)
        one, function = self.contexts.definition(known), known.function
        if one is None or depth > _DEEPEST:
            return False
        if one[0] == op.BINARY and function.text(one[3]) == "*":
            parts = [known._replace(register=each) for each in one[4:6]]
            others = [each for each in parts if self.contexts.number(each) is None]
            return len(others) == 1 and self.is_of_tensors(others[0], depth + 1)
        if one[0] != op.INVOKE or function.text(one[4]) != "size" or len(one) != 6:
            return False
        kind = self.type_of(known._replace(register=one[3]))
        element = self.element(kind) if kind is not None else None
        name = str(self.facts.cpp.resolved(function.unit, "", element)[0]) if element is not None else ""
        row = self.facts.cpp_models.type_named(name)
        return row is not None and row.kind == "buffer"


def _product(count: int | None, width: int | None) -> int | None:
    return count * width if count is not None and width is not None else None
