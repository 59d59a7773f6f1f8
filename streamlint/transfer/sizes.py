"""How large memory is: from the shapes and numbers of bytes that its makers are given, as far as they are known."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import Constant, Container, External, Group, Memory, Site, are_plain
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.traits import Trait
from streamlint.transfer.contexts import Known
from streamlint.transfer.cpp_declared import bound_type
from streamlint.transfer.cpp_sizes import WHOLE, WIDTHS, CppSizes
from streamlint.transfer.gaps import signed_number
from streamlint.transfer.host_copies import HostCopy
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.origin import Origin, appended
from streamlint.transfer.origins import Origins
from streamlint.waits.entered import Context
from streamlint.waits.indices import is_mask
from streamlint.waits.operands import argument_registers, makes_nothing

STAGED = 1 << 16
"""Bytes up to which the driver stages pageable memory without a wait."""
_BYTES: tuple[tuple[Trait, int], ...] = (("bytes-1", 1), ("bytes-2", 2), ("bytes-4", 4), ("bytes-8", 8), ("bytes-16", 16))
_DEEPEST = 6
_CPP_TYPES = frozenset({"pointer", "array", "element"})


class Size(NamedTuple):
    """``bytes`` is None where it is not known. ``counts``: whole numbers of which nothing shows how many there are."""

    bytes: int | None = None
    counts: bool = False

    @property
    def is_small(self) -> bool:
        return self.bytes is not None and self.bytes <= STAGED


class Sizes:
    """Finds how large memory is."""

    def __init__(self, origins: Origins) -> None:
        self.origins = origins
        self.contexts = origins.contexts
        self.transfer = origins.transfer
        self.cpp = CppSizes(origins.contexts)
        models = self._models = self.transfer.facts.models
        self._widths = {**WIDTHS, **{name: width for trait, width in _BYTES for name in models.known(trait)}}
        self._whole, self._truth = models.known("whole-type"), models.known("truth-type")
        self._known: dict[tuple[Known, str, str, int], Size] = {}

    def _number(self, known: Known) -> int | None:
        """The whole number that a register holds, if it is known; of several, as callers or classes give them, the largest."""
        return self.contexts.number(known, otherwise=self._largest_number)

    def _largest_number(self, known: Known) -> int | None:
        values = list(self.contexts.facts.values(known.function, known.register).values)
        numbers = [value.value if isinstance(value, Constant) and type(value.value) is int else None for value in values]
        return _largest(numbers) or _largest(list(self._given(known)))

    def _given(self, known: Known) -> Iterator[int | None]:
        """The whole numbers that the callers of a function give for a parameter."""
        one, function = self.contexts.definition(known), known.function
        if one is not None and one[0] == op.PARAM:
            for place in self.transfer.callers(function):
                given = self.contexts.given(function, one, Site(*place))
                yield self.contexts.number(Known(*given, ())) if given is not None else None

    def of(self, origin: Origin, depth: int = 0) -> Size:
        """The size of memory at its origin."""
        if depth > _DEEPEST:
            return Size()
        key = (origin.known, origin.how, origin.type, depth)
        if key not in self._known:
            self._known[key] = self._at_origin(origin, depth)
        return self._known[key]

    def of_copy(self, copy: HostCopy) -> Size:
        """The size of a copy: of the bytes that it is given, or else of the memory."""
        size, host = self.of(copy.origin), Known(copy.call.function, copy.host, copy.origin.known.context)
        if size.bytes is not None and not copy.call.function.is_cpp:
            size = size._replace(bytes=self.of_part(host, size.bytes, copy.origin))
        register = copy.call.one("bytes") if copy.call.function.is_cpp else None
        if register is None:
            return size
        known = host._replace(register=register)
        given = self.contexts.number(known)
        is_for_each = given is None and copy.direction == "h2d" and self.cpp.is_of_tensors(known)
        return size._replace(bytes=size.bytes if given is None else given, counts=size.counts or is_for_each)

    def _at_origin(self, origin: Origin, depth: int) -> Size:
        site = origin.site
        if site is None:
            return Size()
        function, one = site.function, site.instruction
        context = origin.known.context
        if function.is_cpp and (origin.type in _CPP_TYPES or origin.type in function.unit.models.marked("contiguous")):
            return Size(self.cpp.bytes_at(origin.known), self._holds_counts(origin))
        if one[0] == op.ITEM and (picked := self._of_rows(origin, one, depth)) is not None:
            return Size(picked)
        if one[0] == op.ITEM and _picks_numbers(function, one):
            return self._joined(origin, [one[4]], depth)
        if one[0] in (op.BINARY, op.UNARY, op.COMPARE, op.INPLACE, op.ITEM):
            return self._joined(origin, list(op.reads(one)), depth)
        if origin.how == "module":
            return self._of_module(function, one, context)
        return self._of_call(origin, one, depth)

    def _of_call(self, origin: Origin, one: Instruction, depth: int) -> Size:
        """The size of what a library's function gives."""
        function, context = origin.known.function, origin.known.context
        for call in self.origins.calls(origin.known, one):
            effect = call.row.effect
            if effect == "factory":
                return self._made(call, context, depth)
            if effect == "compute":
                return self._computed(origin, call, depth)
            if effect in ("transfer", "pin") and (source := call.one("of", call.receiver)) is not None:
                found = [self.of(each, depth + 1) for each in self.origins.of(function, source, context)]
                return found[0] if len(found) == 1 else Size()
        return Size()

    def _of_rows(self, origin: Origin, one: Instruction, depth: int) -> int | None:
        """The size of the rows that a tensor of whole numbers picks out of a whole tensor, where both shapes are known."""
        function, context = origin.known.function, origin.known.context
        table, index = (self.contexts.traced(Known(function, register, context)) for register in one[3:5])
        tables, picks = self.origins.of(*table), self.origins.of(*index) if one[4] >= 0 else []
        if len(tables) != 1 or len(picks) != 1 or tables[0].known[:2] != table[:2] or is_mask(self.contexts.facts, *index[:2]):
            return None
        whole, (rows, *_), counted = self.of(tables[0], depth + 1).bytes, self._shape(tables[0]) or [None], self._shape(picks[0])
        if not (whole and rows) or not counted or None in counted:
            return None
        return whole * self.of_part(index, math.prod(each or 0 for each in counted), picks[0]) // rows

    def _shape(self, origin: Origin) -> list[int | None]:
        """The dimensions that memory is made with, also before it is pinned; empty where no call says them."""
        for call in self.origins.calls(origin.known, origin.site.instruction) if origin.site is not None else ():
            if shapes := call.all("shape"):
                return [each for register in shapes for each in self._dimensions(Known(call.function, register, origin.known.context))]
            source = call.one("of", call.receiver) if call.row.effect == "pin" else None
            before = self.origins.of(call.function, source, origin.known.context) if source is not None else []
            if len(before) == 1:
                return self._shape(before[0])
        return []

    def count(self, function: Function, registers: list[int], context: Context = ()) -> int | None:
        """How many elements dimensions make, if all are known."""
        known = [each for register in registers for each in self._dimensions(Known(function, register, context))]
        return _product(known)

    def count_at(self, origin: Origin) -> int | None:
        """How many elements memory is made with, if its maker says so."""
        return _product(self._shape(origin))

    def _of_module(self, function: Function, made: Instruction, context: Context) -> Size:
        """The parameters of a layer: as many as the numbers that it is made with multiply to; of several layers nobody knows."""
        given = (self._number(Known(function, register, context)) for _, register in argument_registers(function, made))
        numbers = [max(each, 1) for each in given if each is not None]
        return Size(4 * math.prod(numbers)) if numbers else Size()

    def dtype(self, call: ModelledCall, context: Context) -> str:
        """The name of the type of numbers that a call asks for."""
        for register in call.all("dtype"):
            for value in self.contexts.values(Known(call.function, register, context)):
                name = value.name if isinstance(value, External) else str(value.value) if isinstance(value, Constant) else ""
                if (last := name.rpartition(".")[2]) in self._widths:
                    return last
        return ""

    def _made(self, call: ModelledCall, context: Context, depth: int) -> Size:
        row, name = call.row, call.name.rpartition(".")[2]
        if makes_nothing(call.function, call.instruction):
            return Size(0)
        dtype = self.dtype(call, context) or (name if name in self._widths and name in self._models.known("tensor-class") else "")
        if row.get("counts") or (name in self._models.known("whole-numbers") and not dtype):
            dtype = dtype or "int64"
        width = self._widths.get(dtype, 4)
        data = call.one("data")
        if data is not None and not (row.get("shape") and self._are_numbers(Known(call.function, data, context))):
            return self._of_data(Known(call.function, data, context), dtype, width, depth)
        dimensions = [each for register in call.all("shape") for each in self._dimensions(Known(call.function, register, context))]
        return self._of_shape(dimensions, dtype, width, bool(row.get("counts")))

    def _of_shape(self, dimensions: list[int | None], dtype: str, width: int, counts: bool) -> Size:
        """The size of memory of a shape. Of a factory that ``counts``, two dimensions are where it begins and ends."""
        known = [size for size in dimensions if size is not None]
        total, unknown = math.prod(known), len(dimensions) - len(known)
        if not dimensions:
            return Size(None, dtype in self._whole)
        if unknown:
            return self._at_least(total * width, dtype in self._truth or (dtype in self._whole and unknown == 1 and total <= 16) or counts)
        return Size((max(known) if counts and len(known) == 2 else total) * width)

    def _dimensions(self, known: Known) -> list[int | None]:
        known = self.contexts.traced(known)
        one = self.contexts.definition(known)
        if one is not None and one[0] == op.BUILD:
            return [self._number(known._replace(register=each)) for each in one[4:]]
        number = self._number(known)
        if number is None and any(isinstance(value, Container) for value in self.contexts.values(known)):
            return [None, None]
        return [number]

    def _of_data(self, known: Known, dtype: str, width: int, depth: int) -> Size:
        """Data that is copied in: numbers in a display are counted; of a list that grows nothing shows how many there are."""
        values = list(self.contexts.values(known))
        one = self.contexts.definition(known)
        if one is not None and one[0] == op.UNPACK:
            if self.origins.is_beside(known, one):
                return Size(width)
            given = self.origins.returned(known, one) if depth <= _DEEPEST else []
            if len(given) == 1:
                return self._of_data(given[0], dtype, width, depth + 1)
        if any(isinstance(value, Memory) for value in values):
            found = [self.of(each, depth + 1) for each in self.origins.of(*known)]
            joined = self._largest(found)
            return joined._replace(counts=joined.counts or (dtype in self._whole and joined.bytes is None))
        if self._are_numbers(known):
            return Size(width)
        number = self._elements(known, depth)
        if number is not None:
            return Size(number * width)
        is_list = any(isinstance(value, (Container, Group)) for value in values)
        return Size(None, dtype in self._whole or is_list)

    def _are_numbers(self, known: Known) -> bool:
        """Whether a register holds numbers alone: of a constructor that takes data or sizes they are sizes."""
        return are_plain(list(self.contexts.values(known)))

    def _elements(self, known: Known, depth: int) -> int | None:
        """How many numbers a display holds. A list of numbers is taken for a short one, however it is built."""
        known = self.contexts.traced(known)
        one = self.contexts.definition(known)
        function = known.function
        if one is None or depth > _DEEPEST:
            return None
        if one[0] != op.BUILD:
            return 1 if self._are_numbers(known) else self._elements_of_memory(known, depth)
        grown = list(appended(function, one[2]))
        parts = [self._elements(known._replace(register=each), depth + 1) for each in (*one[4:], *grown)]
        is_whole = any(use[0] == op.INPLACE and use[4] == one[2] for use in function.uses[one[2]])
        return None if is_whole else _sum(parts)

    def _elements_of_memory(self, known: Known, depth: int) -> int | None:
        """How many numbers of four bytes the tensors have that a register holds."""
        values = list(self.contexts.values(known))
        if not values or not all(isinstance(value, Memory) for value in values):
            return None
        total = _sum([self.of(each, depth + 1).bytes for each in self.origins.of(*known)])
        return total // 4 if total is not None else None

    def _computed(self, origin: Origin, call: ModelledCall, depth: int) -> Size:
        one = call.instruction
        name = call.function.text(one[4]) if one[0] == op.INVOKE else call.name.rpartition(".")[2]
        asked = self.dtype_of_keyword(origin, call)
        if call.row.get("counts") or (call.row.get("cast") and name in self._whole) or asked in self._whole:
            return Size(None, True)
        if call.row.get("cast") and name in self._widths:
            return self._joined(origin, list(call.operands), depth)._replace(counts=False)
        if name in self._models.known("enlarges"):
            joined = self._joined(origin, list(call.operands), depth)
            total = self._of_display(origin, call, depth) if name in self._models.known("joins") else None
            return self._at_least(joined.bytes, joined.counts) if total is None else Size(total)
        if name in self._models.known("picks"):
            context = origin.known.context
            memory = [each for each in call.operands if self.origins.of(call.function, each, context)]
            return self._joined(origin, memory[:1], depth)
        joined = self._joined(origin, list(call.operands), depth)
        return joined._replace(counts=joined.counts and not asked)

    def _of_display(self, origin: Origin, call: ModelledCall, depth: int) -> int | None:
        """The size of what is put together of the tensors in a display, if it holds no others and all of them are known."""
        function, context = call.function, origin.known.context
        for _, register in argument_registers(function, call.instruction)[:1]:
            one = function.definitions[register] if register >= 0 else None
            if one is None or one[0] != op.BUILD or any(use[0] != call.instruction[0] for use in function.uses[register]):
                return None
            parts = [self.of(each, depth + 1).bytes for part in one[4:] for each in self.origins.of(function, part, context)[:1]]
            return sum(part or 0 for part in parts) if len(parts) == len(one) - 4 and None not in parts else None
        return None

    def dtype_of_keyword(self, origin: Origin, call: ModelledCall) -> str:
        """The type of numbers that any argument of a call names."""
        for register in call.operands:
            for value in self.contexts.values(Known(call.function, register, origin.known.context)):
                if isinstance(value, External) and (last := value.name.rpartition(".")[2]) in self._widths and "." in value.name:
                    return last
        return ""

    def _joined(self, origin: Origin, registers: list[int], depth: int) -> Size:
        """The size of what is computed from operands: that of the largest."""
        function, context = origin.known.function, origin.known.context
        found: list[Size] = []
        for register in registers:
            if self._are_numbers(Known(function, register, context)):
                continue
            for each in self.origins.of(function, register, context):
                if each.known != origin.known:
                    found.append(self.of(each, depth + 1))
            for way in self.origins.elements(function, register, context):
                found += [self.of(each, depth + 1) for each in self.origins.of(*way) if each.known != origin.known]
        return self._largest(found)

    def _at_least(self, _: int | None, counts: bool) -> Size:
        """The size of memory of which a part is known alone."""
        return Size(None, counts)

    def _largest(self, sizes: list[Size]) -> Size:
        """The largest of some sizes, if all are known."""
        known = [size.bytes for size in sizes if size.bytes is not None]
        counts = any(size.counts for size in sizes) and all(size.counts or size.is_small for size in sizes)
        return Size(max(known) if known and len(known) == len(sizes) else None, counts)

    # --- C++

    def _holds_counts(self, origin: Origin) -> bool:
        """C++: whether a container holds whole numbers: offsets, lengths."""
        kind = self.cpp.type_of(origin.known)
        element = self.cpp.element(kind) if kind is not None else None
        if element is None or element[2]:
            return False
        element = bound_type(self.contexts, origin.known, element)
        resolved = self.cpp.facts.cpp.resolved(origin.known.function.unit, "", element)
        return str(resolved[0]) in WHOLE

    def is_of_array(self, origin: Origin, call: ModelledCall) -> bool:
        """C++: whether the size is that of a tensor or array."""
        register = call.one("bytes")
        asked = [Known(call.function, register, origin.known.context)] if register is not None else []
        return any(self.cpp.is_of_array(each) for each in (*asked, *self.cpp.counts(origin.known)))

    # --- parts

    def of_part(self, known: Known, whole: int, origin: Origin) -> int:
        """The size of what a register holds, of memory of a size: less of it where that is a slice of constant length."""
        known = self.contexts.traced(known)
        one = self.contexts.definition(known)
        index = known.function.definitions[one[4]] if one is not None and one[0] == op.ITEM and one[4] >= 0 else None
        if index is None or index[0] != op.SLICE or origin.site is None:
            return whole
        (rows, *_), length = self._shape(origin) or [None], self._length(known, index)
        return whole * length // rows if rows and length is not None and length < rows else whole

    def _length(self, known: Known, index: Instruction) -> int | None:
        """How many elements a slice takes at most: ``[:n]``, ``[a:b]``, ``[i : i + n]``, ``[-n:]``."""
        begin, end = (known._replace(register=each) if each >= 0 else None for each in index[3:5])
        first, last = (signed_number(self.contexts, each) if each is not None else None for each in (begin, end))
        if end is None:
            return -first if first is not None and first < 0 else None
        start = 0 if begin is None else first
        if last is not None and start is not None:
            return last - start if last >= start >= 0 else None
        one = self.contexts.definition(end)
        if one is None or begin is None or one[0] != op.BINARY or known.function.text(one[3]) != "+" or one[4] != begin.register:
            return None
        return self._number(end._replace(register=one[5]))


class LeastSizes(Sizes):
    """How large memory is at least, where unknown callers leave parameters at their defaults, and no axis is empty."""

    def _joined(self, origin: Origin, registers: list[int], depth: int) -> Size:
        """The size of what is computed from operands: that of the largest, of which indices may pick a few."""
        site = origin.site
        picks = site is not None and (
            site.instruction[0] == op.ITEM or last_name(site.function, site.instruction) in self._models.known("picks")
        )
        return Size() if picks else super()._joined(origin, registers, depth)

    def given(self, call: ModelledCall, context: Context) -> int | None:
        """The number of bytes that a copy is given."""
        register = call.one("bytes")
        return None if register is None else self._number(Known(call.function, register, context))

    def _number(self, known: Known) -> int | None:
        return self.contexts.number(known, otherwise=self._usual)

    def _usual(self, known: Known) -> int | None:
        """The number of a parameter that no caller in view gives: its default; of a variable of a function around, or an attribute: what it
        is given."""
        one, around = self.contexts.definition(known), known.function.parent
        if one is not None and one[0] == op.PARAM and around is not None:
            default = known.function.default_register(one[3])
            return None if default is None else self.contexts.number(Known(around, default, ()))
        if one is None or one[0] not in (op.ATTR, op.LOAD):
            return None
        node = self.contexts.facts.values(known.function, known.register)
        sites = [site for value in node.values for site in node.trace(value) if op.DEFINES[site.instruction[0]]]
        made = sites[-1] if len(node.values) == 1 and sites else None
        return None if made is None else self.contexts.number(Known(made.function, made.instruction[2], ()))

    def _at_least(self, least: int | None, counts: bool) -> Size:
        return Size(least, counts)

    def _largest(self, sizes: list[Size]) -> Size:
        return super()._largest([size for size in sizes if size.bytes is not None])


def _picks_numbers(function: Function, one: Instruction) -> bool:
    """``x.expand_as(mask)[mask]``: a number for each element that is true, no rows."""
    made = function.definitions[one[3]]
    return made is not None and made[0] == op.INVOKE and function.text(made[4]) == "expand_as" and made[6:7] == (one[4],)


def _product(dimensions: list[int | None]) -> int | None:
    """The product of dimensions; None where there are none, or some are not known."""
    known = [each for each in dimensions if each is not None]
    return math.prod(known) if known and len(known) == len(dimensions) else None


def _largest(numbers: list[int | None]) -> int | None:
    """The largest of some numbers; None where there are none, or some are not known."""
    known = [each for each in numbers if each is not None]
    return max(known) if known and len(known) == len(numbers) else None


def _sum(counts: list[int | None]) -> int | None:
    """The sum of what is counted; None where nothing is, or one is not known."""
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None
