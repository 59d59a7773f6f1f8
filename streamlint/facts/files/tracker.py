"""A value followed forward through its function and those that it is passed to: proposed places, some of them wrong."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import last_name, repeats
from streamlint.facts.code.passing import is_stored, put_by_function
from streamlint.facts.files.program import Unit
from streamlint.facts.files.scopes import Definition, ExternalName
from streamlint.facts.files.steps import MOST_AROUND, Following
from streamlint.ir import Instruction, Parameter
from streamlint.ir import opcodes as op

_PASSED_ON = frozenset({op.PHI, op.COPY, op.CAST, op.AWAIT, op.ENTER, op.INPLACE, op.ITER})
_NAMING = frozenset({op.STORE, op.SET_NAME, op.SET_ATTR})
_CALLING_OBJECT = frozenset({op.ENTER, op.EXIT, op.NEXT, op.ITEM, op.SET_ITEM})
"""What calls methods of an object itself, not of what it holds."""
ITERATING = frozenset({"__iter__", "__next__"})
OF_OBJECTS = (
    frozenset({"__call__", "forward", "__enter__", "__exit__", "__aenter__", "__aexit__", "__getitem__", "__setitem__"}) | ITERATING
)
"""Methods that are called without their names."""


class Tracker(Following):
    """Follows one value forward from the registers where it is made."""

    def taken_out(self, function: Function, register: int, depth: int) -> None:
        """A register holds what is taken out of the value, or of something that holds it."""
        self.follow(function, register, max(depth - 1, 0))

    def given_on(self, function: Function, register: int, depth: int, around: int) -> None:
        """A register holds an iterable of what the value, or something that holds it, has as elements: alone, or in tuples."""
        self.follow(function, register, depth + around if depth else 0)

    def _use(self, function: Function, register: int, use: Instruction, depth: int) -> None:
        opcode = use[0]
        if opcode in _CALLING_OBJECT and depth == 0 and use[2 if opcode == op.SET_ITEM else 3] == register:
            self.called(function, use)
        if _passes_on(function, use):
            self.follow(function, use[2], depth)
            if opcode == op.INPLACE and use[4] == register:
                self.changed(function, use)
        elif opcode in _NAMING:
            self._named(function, register, use, depth)
        elif opcode in (op.CALL, op.INVOKE):
            self._call(function, register, use, depth)
        elif opcode == op.FUNCTION:
            self._default(function, register, use, depth)
        elif opcode in (op.BUILD, op.DICT):
            self.follow(function, use[2], depth + 1)
        elif opcode in (op.ITEM, op.NEXT, op.UNPACK):
            self.taken_out(function, use[2], depth)
        elif opcode in (op.SET_ITEM, op.APPEND, op.PUT):
            self._put(function, register, use, depth)
        elif opcode in (op.RETURN, op.YIELD):
            self.given_back(function, depth)

    def _put(self, function: Function, register: int, use: Instruction, depth: int) -> None:
        """Something is put into the value, or the value into something else."""
        if use[2] == register:
            self.changed(function, use)
        elif use[-1] == register:
            self._held_by(function, use[2], depth)

    def _named(self, function: Function, register: int, use: Instruction, depth: int) -> None:
        """The value is given a name; or it is an object, one of whose attributes is set."""
        if use[0] == op.STORE:
            self._cell(function, use, depth)
        elif use[0] == op.SET_NAME:
            self._name(function, function.text(use[2]), depth)
        elif use[4] == register:
            self.attribute(function.text(use[3]), function.unit, depth)
        else:
            self.changed(function, use)

    def _cell(self, function: Function, use: Instruction, depth: int) -> None:
        for inner, one in function.on_variable(op.LOAD, use[2]):
            self.follow(inner, one[2], depth)

    def _name(self, function: Function, name: str, depth: int) -> None:
        """The value has a name of the module or of a class body."""
        if function.code.kind == "class":
            self.attribute(name, function.unit, depth)
            return
        for inner, one in function.unit.name_uses.get(name, ()):
            self.follow(inner, one[2], depth)
        for unit in self.flow.nearest(name, function.unit.path):
            for inner, one in unit.taken.get(name, ()) if unit is not function.unit else ():
                self.follow(inner, one[2], depth)
            if unit is not function.unit and unit.stars:
                for inner, one in unit.name_uses.get(name, ()):
                    self.follow(inner, one[2], depth)
            is_named = any(self.flow.program.imported(module, unit) is function.unit for module in unit.named_modules)
            for inner, one in unit.attribute_uses.get(name, ()):
                if is_named or function.unit in self.flow.scopes.find(unit, inner.dotted(one[3])):
                    self._attribute_use(inner, one, depth)

    def look_up(self, name: str, unit: Unit, depth: int) -> None:
        """Note the uses of an attribute."""
        nearest = self.flow.nearest(name, unit.path)
        for near in nearest:
            for function, one in near.attribute_uses.get(name, ()):
                self._attribute_use(function, one, depth)
        is_text, around = any(name in near.texts for near in nearest), frozenset(nearest)
        for near in self.flow.nearest("getattr", unit.path):
            is_near = near in around
            for function, one, taken in near.computed_uses:
                is_asked = _may_mean(function, one[6], name, is_text) if taken is None else taken == name
                if is_asked or (taken is None and is_near and _may_be_computed(function, name)):
                    self._later(self.follow, function, one[2], depth)

    def _attribute_use(self, function: Function, one: Instruction, depth: int) -> None:
        if one[0] == op.INVOKE:
            self.called(function, one)
        else:
            self.follow(function, one[2], depth)

    def _call(self, function: Function, register: int, use: Instruction, depth: int) -> None:
        if use[3] == register:
            if use[0] == op.CALL:
                self.called(function, use)
            else:
                self._method_of_it(function, use, depth)
        first, shape = (6, use[5]) if use[0] == op.INVOKE else (5, use[4])
        if register not in use[first:]:
            return
        self.called(function, use)
        kinds = function.unit.ir.constants[shape] if shape != op.NONE else (None,) * (len(use) - first)
        for index, (argument, kind) in enumerate(zip(use[first:], kinds, strict=False)):
            if argument == register:
                self._argument(function, use, index, kind, depth)

    def _method_of_it(self, function: Function, use: Instruction, depth: int) -> None:
        name = function.text(use[4])
        if is_stored(function, use):
            self.changed(function, use)
        if name in function.known("takes"):
            self.taken_out(function, use[2], depth)
        elif name in function.known("shows"):
            self.given_on(function, use[2], depth, int(function.invokes(use, "gives-entries")))
        if name in self.flow.starting:
            self.called(function, use)
        if name in self.flow.same:
            self.follow(function, use[2], depth)

    def _put_or_taken(self, function: Function, use: Instruction, index: int, depth: int) -> None:
        """A function of the library puts the value into a list, or takes something out of it."""
        if (put := put_by_function(function, use)) is not None:
            self._held_by(function, put[0], depth) if index else self.changed(function, use)
        if not index and last_name(function, use) in function.known("takes-of-first"):
            self.taken_out(function, use[2], depth)

    def _argument(self, function: Function, use: Instruction, index: int, kind: object, depth: int) -> None:
        """The value is an argument of a call."""
        name = function.text(use[4]) if use[0] == op.INVOKE else ""
        if is_stored(function, use):
            self._held_by(function, use[3], depth)
        self._put_or_taken(function, use, index, depth)
        targets = list(self._static_targets(function, use, name))
        for target, offset in targets:
            self._parameter(target, index + offset, kind, depth)
        if not targets and use[0] == op.CALL:
            for target, offset in self._made_decorators(function, use):
                self._later(self._parameter, target, index + offset, kind, depth)
        if not targets and use[0] == op.CALL and last_name(function, use) in {"enumerate", *function.known("zips")}:
            self.given_on(function, use[2], depth, 1)
        elif not targets or any(one.decorations for one, _ in targets):
            self.follow(function, use[2], depth)  # a library's function, or a decorator, may give it back

    def _parameter(self, target: Function, position: int, kind: object, depth: int) -> None:
        """The value is the argument of a function at this position."""
        for number in _positions(target.code.parameters, position, kind):
            for one in target.by_opcode[op.PARAM]:
                if one[3] == number:
                    spread = target.code.parameters[number].kind in ("star", "double")
                    self.follow(target, one[2], depth + (1 if spread else 0))

    def _made_decorators(self, function: Function, use: Instruction) -> Iterator[tuple[Function, int]]:
        """The functions that the callee of a call is, where another function has returned it, or that the callee's class calls: a decorator
        with arguments. Each with the number of arguments before the first."""
        made = _call_behind(function, use[3])
        if made is None:
            return
        for maker, _ in self._static_targets(function, made, function.text(made[4]) if made[0] == op.INVOKE else ""):
            inner = (_local_function(maker, end[2]) for end in maker.by_opcode[op.RETURN] if end[2] >= 0)
            yield from ((each, 0) for each in inner if each is not None)
            called = self.flow.hierarchy.lookup(maker.owner, "__call__") if maker.owner and maker.code.name == "__init__" else None
            yield from ((each, 1) for each in (called[1] if called is not None else ()))

    def _static_targets(self, function: Function, use: Instruction, name: str) -> Iterator[tuple[Function, int]]:
        """The functions that a call may enter by the names in it, each with the number of arguments before the first."""
        made = _call_behind(function, use[3])
        if use[0] == op.CALL and made is not None:
            return  # what another call has given
        dotted = function.dotted(use[3])
        found = self.flow.scopes.find(function.unit, f"{dotted}.{name}" if name else dotted) if dotted else ()
        is_of_object = made is not None and made[0] == op.CALL  # ``Class().method``, no ``Class.method``
        for one in found:
            yield from self._entered(one, is_of_object)
        named = [one.name for one in found if isinstance(one, ExternalName)]
        yield from ((target, 0) for target in self.flow.bound_to(named, name))
        if use[0] == op.CALL and not found and (local := _local_function(function, use[3])) is not None:
            yield local, 0
        if use[0] == op.INVOKE and not any(map(self._is_known, found)):
            yield from ((method, int(method.has_receiver)) for method in self.flow.methods_named(name, function.unit))

    def _entered(self, meant: Definition, is_of_object: bool) -> Iterator[tuple[Function, int]]:
        """The functions that a call of what a name means enters, each with the number of arguments before the first."""
        if isinstance(meant, Function):
            yield meant, int(meant.has_receiver and (is_of_object or meant.is_class_method))
        elif isinstance(meant, ClassInfo):
            constructor = self.flow.hierarchy.lookup(meant, "__init__")
            yield from ((method, 1) for method in (constructor[1] if constructor is not None else ()))

    def _is_known(self, meant: Definition) -> bool:
        """Whether a name means something of the program, or of a library that a model knows."""
        return not isinstance(meant, ExternalName) or self.flow.models.is_known(meant.name.partition(".")[0])

    def _default(self, function: Function, register: int, use: Instruction, depth: int) -> None:
        inner = function.unit.function(use[3])
        defaults = [index for index, parameter in enumerate(inner.code.parameters) if parameter.default]
        for number, value in zip(defaults, use[4:], strict=False):
            if value == register:
                for one in inner.by_opcode[op.PARAM]:
                    if one[3] == number:
                        self.follow(inner, one[2], depth)

    def _held_by(self, function: Function, register: int, depth: int) -> None:
        """The value is put into the container that a register holds: it comes out wherever that is named the same."""
        self.follow(function, register, depth + 1)
        one = function.definitions[register]
        if one is None:
            return
        if one[0] == op.ATTR:
            self.attribute(function.text(one[4]), function.unit, depth + 1)
        elif one[0] == op.CALL:
            for name in _names_computed(function, one):
                self._later(self.attribute, name, function.unit, depth + 1)
        elif one[0] == op.ITEM or (one[0] == op.INVOKE and function.text(one[4]) in function.known("takes", "puts-if-absent")):
            if depth < MOST_AROUND:  # ``held[key].append(value)``
                self._held_by(function, one[3], depth + 1)
        elif one[0] == op.NAME:
            self._name(function.unit.body, function.text(one[3]), depth + 1)
        elif one[0] == op.LOAD:
            for inner, load in function.on_variable(op.LOAD, one[3]):
                self.follow(inner, load[2], depth + 1)


class ContainerTracker(Tracker):
    """Follows a container: what is taken out of it is another object, which may go anywhere."""

    def taken_out(self, function: Function, register: int, depth: int) -> None:
        if depth > 0:
            self.follow(function, register, depth - 1)

    def given_on(self, function: Function, register: int, depth: int, around: int) -> None:
        if depth > 0:
            self.follow(function, register, depth + around)


def _names_computed(function: Function, one: Instruction) -> Iterator[str]:
    """The attributes that a call of ``getattr`` may mean: the one that it names, or the containers of the class's body."""
    if len(one) <= 6 or function.dotted(one[3]) != "getattr":
        return
    name = function.constant(one[6])
    owner = function.method.owner if function.method is not None else None
    if isinstance(name, str):
        yield name
    elif owner is not None:
        yield from (held for held in owner.assigned if _may_be_computed(function, held))


def _may_be_computed(function: Function, name: str) -> bool:
    """Whether a computed name in a method may be that of a container which its class's body makes."""
    owner = function.method.owner if function.method is not None else None
    if owner is None:
        return False
    made = (owner.body.definitions[register] for register in owner.assigned.get(name, ()))
    return any(one is not None and one[0] in (op.BUILD, op.DICT) for one in made)


def _may_mean(function: Function, register: int, name: str, is_text: bool) -> bool:
    """Whether a computed name may be that of a member: a text of the program is the name (``is_text``), or what it is put together with is
    a part of it."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or one[0] not in (op.FORMAT, op.BINARY):
        return is_text and one is not None and one[0] != op.CONST
    texts = function.unit.ir.constants[one[3]] if one[0] == op.FORMAT else map(function.constant, op.reads(one))
    return any(isinstance(text, str) and text and text in name for text in texts or ())


def _passes_on(function: Function, use: Instruction) -> bool:
    """Whether the result of an instruction is the value, or the list that is filled later: ``[None] * count``."""
    return use[0] in _PASSED_ON or repeats(function, use)


def _positions(parameters: tuple[Parameter, ...], position: int, kind: object) -> list[int]:
    """The parameters that an argument may reach."""
    if isinstance(kind, str):
        named = [number for number, one in enumerate(parameters) if one.name == kind and one.kind != "star"]
        return named or [number for number, one in enumerate(parameters) if one.kind == "double"]
    if kind is None:
        if position < len(parameters) and parameters[position].kind == "plain":
            return [position]
        return [number for number, one in enumerate(parameters) if one.kind == "star"]
    return [number for number, one in enumerate(parameters) if one.kind != "captured"]


def _call_behind(function: Function, register: int) -> Instruction | None:
    """The call that has given what a register holds."""
    made = function.definitions[register]
    return made if made is not None and made[0] in (op.CALL, op.INVOKE) else None


def _local_function(function: Function, register: int) -> Function | None:
    """The function that a register, or the cell that it was loaded from, is defined as in the same file."""
    one = function.definitions[register]
    if one is not None and one[0] == op.LOAD:
        name, owner = function.unit.ir.constants[one[3]]
        home = function.unit.function(owner)
        stored = [store[3] for store in home.by_opcode[op.STORE] if home.unit.ir.constants[store[2]] == (name, owner)]
        one = home.definitions[stored[0]] if len(stored) == 1 else None
    return function.unit.function(one[3]) if one is not None and one[0] == op.FUNCTION else None
