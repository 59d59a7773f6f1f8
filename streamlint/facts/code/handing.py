"""Arguments that were passed before a call: to a partial object, or to a thread that is started."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint import TYPE_CHECKING
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import LIST, arguments_of, last_name, placeholder, uncast, uncopied
from streamlint.facts.code.objects import BoundMethod, External, FunctionObject, PartialObject
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Row, Selector

if TYPE_CHECKING:
    from streamlint.facts.files.program import Unit
    from streamlint.facts.graph.facts import Facts

_DEEPEST = 4


class Called(NamedTuple):
    """What a call calls: the register of the function or of the bound method, and all arguments, each with its keyword: 1 or 2 where it
    is spread (``*``, ``**``), None by position."""

    callee: int
    given: list[tuple[object, int]]


class Handing:
    """The arguments of calls, with those that were passed before."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._threads: dict[tuple[Function, Instruction], Called | None] = {}
        self._partials: dict[tuple[Function, Instruction], Called | None] = {}
        self._bound: dict[tuple[Function, Instruction], frozenset[Function]] = {}
        self._plain: dict[tuple[Function, Instruction], frozenset[Function]] = {}

    def of(self, function: Function, one: Instruction) -> Called | None:
        """What a call runs if some of its arguments are not its own: those that a partial object or a thread was given before, or that a
        library hands on. As far as the function shows them; None of any other call."""
        if one[0] not in ((op.CALL, op.CONSTRUCT, op.INVOKE) if function.is_cpp else (op.CALL, op.INVOKE)):
            return None
        if function.is_cpp:
            return self._given_in_cpp(function, one)
        if last_name(function, one) in self._starting and (found := self._started(function, one)) is not None:
            return found
        if last_name(function, one) in function.known("calls-with-elements") and self._is_of_elements(function, one):
            found = _of_elements(function, _given(function, one), last_name(function, one) in function.known("folds"))
            return self._unfolded(function, found) if found is not None else None
        if function.invokes(one, "hooks-leaf", "hooks-forward"):
            given = list(_given(function, one))
            return self._unfolded(function, Called(given[0][1], [(None, one[3])])) if given else None
        return self.prepared(function, one)

    def _given_in_cpp(self, function: Function, one: Instruction) -> Called | None:
        if one[0] == op.INVOKE:
            is_start = function.invokes(one, "emplaces") and function.unit in self._naming_threads
        elif len(one) == 7 and one[0] == op.CALL and function.dotted(one[3]) in self.facts.cpp_models.marked("calls-with-parts"):
            return Called(one[5], list(_parts(function, one[6])))
        else:
            is_start = last_name(function, one) in self._starting_cpp
        return self._of_cpp(function, one) if is_start else self._of_bound(function, one)

    def prepared(self, function: Function, one: Instruction) -> Called | None:
        """What a call of a partial object calls; None of any other call."""
        if one[0] != op.CALL or made_by(function, one[3]) is None:
            return None
        key = (function, one)
        if key not in self._partials:
            self._partials[key] = self._prepared(function, one)
        return self._partials[key]

    def is_bound(self, function: Function, call: Instruction, callee: Function) -> bool:
        """Whether a call runs a function on an object whose class holds it and that is written elsewhere, as what a decorator gives: the
        object is an argument like any other."""
        if callee.owner is not None or callee.is_cpp or function.is_cpp or call[0] not in (op.CALL, op.INVOKE):
            return False
        known = self._bound.get((function, call))
        if known is None:
            values = self.facts.callees(function, call)
            known = frozenset(value.method.function for value in values if isinstance(value, BoundMethod))
            self._bound[function, call] = known
        return callee in known

    def is_plain(self, function: Function, call: Instruction, callee: Function) -> bool:
        """Whether a call runs a method as the function that its class was written with, as a decorator's closure does: the object is the
        first argument."""
        if call[0] != op.CALL or function.is_cpp or callee.owner is None:
            return False
        known = self._plain.get((function, call))
        if known is None:
            values = self.facts.callees(function, call)
            bound = {value.method.function for value in values if isinstance(value, BoundMethod)}
            known = frozenset(value.function for value in values if isinstance(value, FunctionObject)) - bound
            self._plain[function, call] = known
        return callee in known

    def kept(self, function: Function, made: Instruction) -> Called | None:
        """What a partial object or a thread is given where it is made; None of a call that makes neither."""
        if function.is_cpp or made[0] not in (op.CALL, op.INVOKE):
            return None
        if last_name(function, made) in self._starting:
            found = self._of_thread(function, made)
            return found if found is not None and any(row.get("style") == "object" for row in self.facts.rows(function, made)) else None
        given = list(_given(function, made))
        if not given or given[0][0] is not None or function.unit not in self._preparing:
            return None
        if not any(isinstance(value, External) and value.name == "functools.partial" for value in self.facts.callees(function, made)):
            return None
        return Called(given[0][1], given[1:])

    @cached_property
    def _preparing(self) -> frozenset[Unit]:
        """The files that may make partial objects."""
        return frozenset(unit for unit in self.facts.program.mentioning("partial") if not unit.is_cpp)

    def _is_partial(self, function: Function, register: int) -> bool:
        return any(isinstance(value, PartialObject) for value in self.facts.values(function, register).values)

    def _prepared(self, function: Function, one: Instruction) -> Called | None:
        found = self._unfolded(function, Called(one[3], list(_given(function, one))))
        return found if found.callee != one[3] else None

    def _unfolded(self, function: Function, found: Called) -> Called:
        """What is called, with all arguments, where a partial object is called that the function shows, or several in one another."""
        for _ in range(_DEEPEST):
            made = made_by(function, found.callee)
            if made is None or not self._is_partial(function, found.callee):
                break
            first = list(_given(function, made))
            named = {kind for kind, _ in found.given if isinstance(kind, str)}
            before = [each for each in first[1:] if each[0] in (None, LIST)]
            behind = [each for each in first[1:] if each[0] not in (None, LIST) and each[0] not in named]
            found = Called(first[0][1], [*before, *found.given, *behind])
        return found

    def _is_of_elements(self, function: Function, one: Instruction) -> bool:
        """Whether a call is one of a function of the language that calls another one with elements."""
        names = self.facts.models.marked("calls-with-elements")
        return any(
            isinstance(value, External) and value.name.removeprefix("builtins.") in names for value in self.facts.callees(function, one)
        )

    # --- threads

    @cached_property
    def _starting(self) -> frozenset[str]:
        """The last parts of the names of what makes or starts threads."""
        return frozenset(name for effect in ("call", "thread", "start") for name in self.facts.models.with_effect(effect))

    @cached_property
    def _starting_cpp(self) -> frozenset[str]:
        return frozenset(name for effect in ("call", "thread") for name in self.facts.cpp_models.with_effect(effect))

    def _starts(self, function: Function, one: Instruction) -> bool:
        """Whether a call starts a thread that was made before."""
        return any(row.effect == "start" for row in self.facts.rows(function, one))

    def _of_cpp(self, function: Function, one: Instruction) -> Called | None:
        """C++: what a thread runs that a constructor or a function starts, with its arguments; the object of a method is the first."""
        given: list[tuple[object, int]] = [(None, each) for each in one[6 if one[0] == op.INVOKE else 5 :]]
        for row in self.facts.rows(function, one):
            selector = row.get("function")
            callee = _selected(given, selector) if isinstance(selector, Selector) else None
            places = row.get("arguments")
            is_all = any(isinstance(each, Selector) and each.kind == "all" for each in (places if isinstance(places, tuple) else (places,)))
            if callee is not None and (is_all or row.effect == "call"):
                return Called(callee, given[[each for _, each in given].index(callee) + 1 :])
        return None

    @cached_property
    def _naming_threads(self) -> frozenset[Unit]:
        """The files that name a class of threads, whose objects a container may make."""
        names = self.facts.cpp_models.with_effect("thread")
        return frozenset(unit for name in names for unit in self.facts.program.mentioning(name) if unit.is_cpp)

    @cached_property
    def _binding_cpp(self) -> frozenset[Unit]:
        """The files of C++ that may bind arguments."""
        names = {name.rpartition("::")[2] for name in self.facts.cpp_models.marked("binds-cpp")}
        return frozenset(unit for name in names for unit in self.facts.program.mentioning(name) if unit.is_cpp)

    def _of_bound(self, function: Function, one: Instruction) -> Called | None:
        """C++: what the call of an object runs that binds arguments, with those and its own, where placeholders say."""
        if function.unit not in self._binding_cpp or one[0] != op.CALL:
            return None
        key = (function, one)
        if key not in self._partials:
            register = uncast(function, one[3])
            made = function.definitions[register] if register >= 0 else None
            is_bound = made is not None and made[0] == op.CALL and len(made) > 5 and self._binds(function, made)
            self._partials[key] = _bound(function, made, one[5:]) if is_bound and made is not None else None
        return self._partials[key]

    def _binds(self, function: Function, made: Instruction) -> bool:
        names = self.facts.cpp_models.marked("binds-cpp")
        return any(isinstance(value, External) and value.name in names for value in self.facts.callees(function, made))

    def _started(self, function: Function, one: Instruction) -> Called | None:
        """What a call has a thread run, with its arguments, or starts a thread that was made to run it."""
        key = (function, one)
        if key not in self._threads:
            made = one if one[0] == op.CALL else uncopied(function, one[3]) if self._starts(function, one) else one
            found = self._of_thread(function, made) if made is not None else None
            self._threads[key] = self._unfolded(function, found) if found is not None else None
        return self._threads[key]

    def _of_thread(self, function: Function, made: Instruction) -> Called | None:
        """What a call has a thread run, with its arguments."""
        if made[0] not in (op.CALL, op.INVOKE):
            return None
        given = list(_given(function, made))
        for row in self.facts.rows(function, made):
            selector = row.get("function")
            if row.effect not in ("call", "thread") or not isinstance(selector, Selector):
                continue
            callee = _selected(given, selector)
            if callee is None:
                return None
            style = "call" if row.effect == "call" else row.get("style")
            if style == "call":
                return Called(callee, _behind_callee(given, callee, row))
            if style == "each":
                return _of_elements(function, given, False)
            if style in ("object", "packed"):
                packed = (_selected(given, each) for each in _selectors(row, "arguments"))
                return Called(callee, [each for register in packed if register is not None for each in _unpacked(function, register)])
        return None


def _of_elements(function: Function, given: Iterable[tuple[object, int]], folds: bool) -> Called | None:
    """What a call has a function run with the elements of iterables: known where each is written out with one, else at no known place."""
    registers = [register for kind, register in given if kind is None]
    if len(registers) < 2:
        return None
    callee, *iterables = registers
    begun, iterables = (iterables[1:], iterables[:1]) if folds else ([], iterables)
    elements = [_only_element(function, register) for register in iterables]
    if op.NONE in elements or (folds and not begun):
        return Called(callee, [(LIST, op.NONE)])
    return Called(callee, [(None, register) for register in (*begun, *elements)])


def _only_element(function: Function, register: int) -> int:
    """The one element of a list that is written out and has no other use; NONE of any other."""
    built = uncopied(function, register)
    if built is None or built[0] != op.BUILD or len(built) != 5 or len(function.uses[built[2]]) != 1:
        return op.NONE
    return op.NONE if isinstance(function.unit.ir.constants[built[3]], tuple) else built[4]


def _bound(function: Function, made: Instruction, own: tuple[int, ...]) -> Called:
    """What an object calls that `std::bind` has made."""
    places = [placeholder(function, register) for register in made[6:]]
    if not any(places):
        return Called(made[5], [(None, register) for register in (*made[6:], *own)])
    given = (own[place - 1] if place <= len(own) else op.NONE for place in places if place is not None)
    return Called(made[5], [(None, register if place is None else next(given)) for place, register in zip(places, made[6:], strict=True)])


def _behind_callee(given: list[tuple[object, int]], callee: int, row: Row) -> list[tuple[object, int]]:
    """What a call hands to the function that it is given: all behind that, but for what it keeps itself."""
    keeps = {each.keyword for each in _selectors(row, "keeps")}
    registers = [register for _, register in given]
    return [each for each in given[registers.index(callee) + 1 :] if each[0] not in keeps]


def _selectors(row: Row, word: str) -> list[Selector]:
    """The selectors that a row has under a word."""
    found = row.get(word)
    return [each for each in found if isinstance(each, Selector)] if isinstance(found, tuple) else []


def _selected(given: list[tuple[object, int]], selector: Selector) -> int | None:
    """The register of the argument that a selector means."""
    for number, (kind, register) in enumerate(given):
        if kind == selector.keyword if kind is not None else number == selector.position:
            return register
    return None


def _parts(function: Function, register: int) -> Iterator[tuple[object, int]]:
    """C++: the parts of a tuple that a function makes; what is not made there is spread."""
    made = function.definitions[uncast(function, register)] if register >= 0 else None
    if made is not None and made[0] in (op.CALL, op.CONSTRUCT) and len(made) > 6:
        yield from ((None, each) for each in made[5:])
    else:
        yield LIST, register


def _unpacked(function: Function, register: int) -> Iterator[tuple[object, int]]:
    """The arguments in a tuple or in a dict; what is not written there is spread."""
    built = uncopied(function, register)
    if built is not None and built[0] == op.BUILD:
        yield from ((None, each) for each in built[4:])
    elif built is not None and built[0] == op.DICT and all(isinstance(function.constant(key), str) for key in built[3::2] if key >= 0):
        yield from ((function.constant(key), each) for key, each in zip(built[3::2], built[4::2], strict=False) if key >= 0)
    else:
        yield LIST, register


def receiver_of(function: Function, callee: int) -> int | None:
    """The object of a bound method that a register holds."""
    made = function.definitions[callee] if callee >= 0 else None
    return made[3] if made is not None and made[0] == op.ATTR else None


def made_by(function: Function, register: int) -> Instruction | None:
    """The call with arguments by position that a register holds the result of."""
    made = uncopied(function, register)
    if made is None or made[0] not in (op.CALL, op.INVOKE) or function.is_cpp:
        return None
    first = next(_given(function, made), None)
    return made if first is not None and first[0] is None else None


def _given(function: Function, call: Instruction) -> Iterator[tuple[object, int]]:
    return ((kind, register) for register, kind in arguments_of(function, call))
