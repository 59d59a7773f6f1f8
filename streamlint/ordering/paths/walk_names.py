"""By what names the two functions of a call know what is tracked: arguments and parameters, results, and the indices in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.counters import iterable_of
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import FunctionObject
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import State
from streamlint.ordering.places.c_api import is_of_c
from streamlint.ordering.places.called_objects import called_object
from streamlint.ordering.places.constant_indices import Given, by_parameters
from streamlint.ordering.places.enclosed import maker_of, shared_parameters
from streamlint.ordering.places.flow import EXACT, Flow, Tracked
from streamlint.ordering.places.iterated import iterated, taken_of
from streamlint.ordering.places.member_names import HANDLES, kept_names
from streamlint.ordering.places.places import (
    ADDRESS,
    ANY,
    ARROW,
    ASIDE,
    NEWEST,
    OWN,
    Element,
    Place,
    Places,
    Root,
    in_lambdas,
    is_own_cell,
    object_of,
    register_place,
    rest_behind,
)
from streamlint.ordering.places.prepared import prepared
from streamlint.ordering.places.rotation import EARLIER, named_before
from streamlint.ordering.places.spread import spread, spread_to
from streamlint.transfer import carried, carried_calls
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import argument_registers, deferred_target, ended_parameter, operand_of
from streamlint.waits.questions import Key, alike

_COMPUTED = frozenset({op.ATTR, op.ITEM, op.UNARY, op.BINARY, op.COMPARE, op.CONST})
_IMPLICIT = frozenset({op.EXIT, op.DESTROY, op.ENTER, op.NEXT, op.ITEM, op.ATTR, op.SET_ATTR, op.SET_ITEM})
"""Instructions that run functions without being written as calls."""
_Call = tuple[Function, Instruction, Function]


class WalkNames:
    """Renames what is tracked where a path enters a function or returns from it."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.places = transfer.one_of(Places, transfer.facts)
        self.flow = Flow(self.places)
        self.carriers = transfer.one_of(carried.Carriers, transfer)
        self._arguments: dict[_Call, list[tuple[tuple[Place, ...], Place]]] = {}
        self._by_root: dict[_Call, dict[Root, list[tuple[tuple[Place, ...], Place]]]] = {}
        self._made_around: dict[_Call, list[tuple[tuple[Place, ...], Place]]] = {}
        self._renaming: dict[tuple[_Call, bool], dict[Key, Element]] = {}
        self._constants_given: dict[_Call, Given] = {}

    def _given(self, state: State, one: Instruction, callee: Function) -> frozenset[Tracked]:
        """What is tracked, by the names that a callee has for it; the rest is put aside under the caller's names."""
        function = state.frame.function
        call = _call_of(function, one, callee)
        found = {held for held in state.tracked if held.place.root[0] in ("global", "cell", "this", ASIDE)}
        own = state.tracked - found
        if function.code.kind == "lambda" and callee.has_receiver:
            found.update(self._of_object(function, one, callee, found))
        for sources, target in self._enclosed(function, call, callee):
            found.update(list(self.flow.moved(state.tracked, sources, target)))
        found.update(self._by_global_names(function, one, callee, found))
        if not own:
            return frozenset(found)
        passed = self._ways_down(function, one, callee)
        keys, constants = self.keys(function, call, callee, is_down=True), self.constants(function, call, callee)
        for held in own:
            ways = passed.get(held.place.root, ())
            inner = [moved for sources, target in ways for moved in self.flow.moved([held], sources, target)]
            renamed = [self._rekeyed(moved, keys) for moved in inner]
            found.update(renamed, *(by_parameters(name, constants) for name in renamed))
            pairs = zip(inner, renamed, strict=True)
            is_named = any(moved.place.path and _open_keys(moved.place) == _open_keys(name.place) for moved, name in pairs)
            if not is_named:  # the callee has no name for it, or not for its index
                found.add(held._replace(place=aside(held.place, state.frame.depth)))
        return frozenset(found)

    def _by_global_names(self, function: Function, one: Instruction, callee: Function, held: Iterable[Tracked]) -> list[Tracked]:
        """C++: what is known by a global name alone, by the names of what a call gives."""
        shared = [each for each in held if each.place.root[0] == "global"] if function.is_cpp else []
        passed = self._ways_down(function, one, callee) if shared else {}
        ways = ((each, way) for each in shared for way in passed.get(each.place.root, ()))
        return [moved for each, (sources, target) in ways for moved in self.flow.moved([each], sources, target)]

    def _of_object(self, function: Function, one: Instruction, callee: Function, held: Iterable[Tracked]) -> list[Tracked]:
        """C++: what the object has of the method around a lambda, by the names of a method that the lambda calls on the object."""
        ways = self._ways_down(function, one, callee).get(object_of(function).root, ())
        return [moved for sources, target in ways for moved in self.flow.moved(held, sources, target)]

    def _ways_down(self, function: Function, one: Instruction, callee: Function) -> dict[Root, list[tuple[tuple[Place, ...], Place]]]:
        """By the root of what a call has: where it is, and the place that it has in the function that the call enters."""
        known = self._by_root.get((function, one, callee))
        if known is None:
            known = self._by_root[function, one, callee] = {}
            lent = ((outer, each) for outer, inner in _lent(function, one, callee) for each in self.transfer.shared(callee, inner))
            inside = (((outer,), register_place(each)) for outer, each in lent)
            for sources, target in (*self._given_to(function, _call_of(function, one, callee), callee), *inside):
                for root in dict.fromkeys(source.root for source in sources):
                    known.setdefault(root, []).append((sources, target))
        return known

    def _given_to(self, function: Function, one: Instruction, callee: Function) -> list[tuple[tuple[Place, ...], Place]]:
        """Where a call has what it gives, each with the place that it has in the function that it enters."""
        known = self._arguments.get((function, one, callee))
        if known is None:
            params = range(len(callee.code.parameters))
            known = [(self.sources(function, one, callee, param), Place(("parameter", param))) for param in params]
            known += [((source,), target) for source, target in spread(self.places, function, one, callee) if target.path]
            known += [((OWN,), in_lambdas(function))] if self._may_run_lambda(function, one, callee) else []
            self._arguments[function, one, callee] = known
        return known

    def _enclosed(self, function: Function, one: Instruction, callee: Function) -> list[tuple[tuple[Place, ...], Place]]:
        """Where a call of a closure has what was given to the function that has made it, each with its place in the closure."""
        known = self._made_around.get((function, one, callee))
        if known is None:
            made, around = maker_of(self.facts, function, one, callee), callee.parent
            shared = shared_parameters(around) if made is not None and around is not None else ()
            known = [
                (self.sources(function, made, around, index), target) for index, target in shared if made is not None and around is not None
            ]
            self._made_around[function, one, callee] = known
        return known

    def _may_run_lambda(self, function: Function, one: Instruction, callee: Function) -> bool:
        """Whether a method of C++ runs a lambda of its own, or calls what may run one: not a method of its object that is given none."""
        if not function.is_cpp or function.method is not function or len(function.below) < 2:
            return False
        if callee in function.below or (callee.owner is None and callee.code.kind != "lambda"):
            return True
        values = (value for _, register in argument_registers(function, one) for value in self.transfer.values(function, register))
        is_given = any(isinstance(value, FunctionObject) and value.function in function.below for value in values)
        return is_given or OWN not in self.sources(function, one, callee, 0)

    def sources(self, function: Function, one: Instruction, callee: Function, index: int) -> tuple[Place, ...]:
        """Where the value of a parameter is found in the function that calls."""
        one = _call_of(function, one, callee)
        if index < len(callee.code.parameters) and callee.code.parameters[index].kind == "captured":
            held = callee.default(index) if callee.parent is function else None
            return self.places.names(function, held) if held is not None and held >= 0 else ()
        if is_of_c(function, callee):
            return spread_to(self.places, function, one, callee, index)
        if one[0] in _IMPLICIT:
            return self._of_implicit(function, one, index - (ended_parameter(callee) if one[0] == op.DESTROY else 0))
        if index == 0 and callee.has_receiver and (receiver := self._receiver(function, one, callee)) is not None:
            return receiver
        return self._of_call(function, one, callee, index)

    def _of_call(self, function: Function, one: Instruction, callee: Function, index: int) -> tuple[Place, ...]:
        """Where the argument of a call is found, or what the object that is called holds for it."""
        if one[0] not in (op.CALL, op.INVOKE, op.LAUNCH) and (not function.is_cpp or deferred_target(function, one) is None):
            place = 5 + index - (1 if callee.has_receiver else 0)
            return self.places.names(function, one[place]) if 5 <= place < len(one) else ()
        if (held := prepared(self.places, function, one, callee, index)) is not None:
            return held
        register = operand_of(function, one, callee, index)
        if register is None:
            return spread_to(self.places, function, one, callee, index)
        if register < 0:
            return ()
        converted = self.places.converted(function, register, callee, index)
        return (*(() if converted is None else (converted,)), *self.places.names(function, register))

    def _of_implicit(self, function: Function, one: Instruction, index: int) -> tuple[Place, ...]:
        """Where an instruction that is no call has what it gives for a parameter."""
        if one[0] in (op.ITEM, op.SET_ITEM):
            register = _of_subscript(one, index)
            return self.places.names(function, register) if register is not None else ()
        if index:
            return self.places.names(function, one[4]) if one[0] == op.SET_ATTR else ()
        names = self.places.names(function, one[2 if one[0] in (op.DESTROY, op.SET_ATTR) else 3])
        over = iterable_of(function, one)
        return names + self.places.names(function, over) if over >= 0 else names

    def _receiver(self, function: Function, one: Instruction, callee: Function) -> tuple[Place, ...] | None:
        """Where the object of a method is found that the call does not name as such; None of other calls."""
        if arguments := iterated(self.facts, function, one, callee):
            return tuple(name for register in arguments for name in self.places.names(function, register))
        if function.is_cpp and one[0] == op.CALL and deferred_target(function, one) is not None:
            return None  # it is among what was bound
        if callee.code.name in ("__init__", "__post_init__") and not _is_plain_method(function, one):
            return self._constructed(function, one)
        if one[0] == op.INVOKE and function.is_cpp:
            return self._behind_arrow(function, one, callee)
        if (called := called_object(self.facts, function, one, callee)) is not None:
            return tuple(name.behind(*called[1]) for name in self.places.names(function, called[0]))
        if function.is_cpp and function.method is not None:
            return (object_of(function),)  # a method of the same object
        return None

    def _constructed(self, function: Function, one: Instruction) -> tuple[Place, ...]:
        """Where the object of a constructor is found: of ``jobs.emplace_back(...)`` also in the container."""
        if one[0] == op.INIT and self.facts.member_of(function, function.text(one[3])) is not None:
            return (self.places.of(function, one[2]).behind(function.text(one[3])),)
        inside = (self.places.of(function, one[3]).behind(ANY),) if one[0] == op.INVOKE and function.is_cpp else ()
        return (*self.places.names(function, one[2]), *inside)

    def _behind_arrow(self, function: Function, one: Instruction, callee: Function) -> tuple[Place, ...] | None:
        """C++: the object to which the `operator->` of the receiver leads whose method a call runs; None where it is the receiver."""
        if callee.code.name == ARROW or not self.facts.program.defines(ARROW):
            return None
        behind = self.places.receiver(function, one)
        return None if behind == self.places.of(function, one[3]) else (behind,)

    def _passed_back(self, state: State, register: int, caller: Function, call: Instruction) -> Iterator[Tracked]:
        """What is tracked at a function's end, by the names that its caller has for it."""
        function = state.frame.function
        mine = [held for held in state.tracked if held.place.root[0] != ASIDE]
        keys = self.keys(caller, call, function, is_down=False)
        if register >= 0 and op.DEFINES[call[0]]:
            given = self.flow.moved(mine, self.places_returned(function, register), register_place(call[2]), taken_of(function, call))
            yield from (self._rekeyed(held, keys) for held in given)
        for outer, inner in _lent(caller, call, function):
            yield from (self._rekeyed(held, keys) for held in self.flow.moved(mine, self.places.names(function, inner), outer))
        for sources, inside in self._enclosed(caller, call, function):
            yield from (held for source in sources for held in self.flow.moved(mine, (inside,), source))
        for one in function.by_opcode[op.OUT]:  # C++: what a parameter that is a reference holds at the end
            for source in self.sources(caller, call, function, one[2]) if one[3] >= 0 else ():
                yield from self.flow.moved(mine, self.places_returned(function, one[3]), source)
        for held in mine:
            yield from self._passed_by_name(self._rekeyed(held, keys), state.frame.caller is not None, caller, call, function)

    def _passed_by_name(
        self, held: Tracked, is_entered: bool, caller: Function, call: Instruction, function: Function
    ) -> Iterator[Tracked]:
        """What is tracked in an object, a parameter or a variable outside of a function, by the names that its caller has for it."""
        root = held.place.root
        if root[0] == "this" and root != in_lambdas(function).root:
            yield held._replace(place=object_of(caller).behind(*held.place.path)) if root == in_lambdas(caller).root else held
        elif root[0] == "parameter":
            yield from self._in_argument(is_entered, held, caller, call, function)
        elif root[0] == "global" or (root[0] == "cell" and not is_own_cell(root, function)):
            yield held

    def _in_argument(self, is_entered: bool, held: Tracked, caller: Function, call: Instruction, function: Function) -> Iterator[Tracked]:
        """What is tracked in a parameter, by the names of the argument; of a call on the path, the caller knows the argument itself."""
        place = held.place
        if place.path and is_of_c(caller, function):
            yield from self._in_c_argument(caller, call, function, held)
        elif place.path or not is_entered or held.kind not in EXACT:
            passed = list(self._passed(caller, call, function, int(str(place.root[1])), bool(place.path)))
            known = [each for each in passed if held.kind not in EXACT or not _is_wider(each, place)]
            yield from (held._replace(place=source.behind(*place.path)) for source in known)
            yield from self._collected(caller, call, function, held) if not passed and place.path else ()

    def _behind_return(self, state: State, register: int, caller: Frame, call: Instruction) -> frozenset[Tracked]:
        """What is tracked behind a call on the path: also what was put aside for it."""
        taken_up = ((held, _taken_up(held.place, caller.depth)) for held in state.tracked)
        tracked = frozenset(held._replace(place=place) for held, place in taken_up if place is not None)
        back = frozenset(held for held in self._passed_back(state, register, caller.function, call) if _as_before(held) not in tracked)
        return tracked.union(back, *(self._made_of(caller.function, held) for held in back))

    def _collected(self, caller: Function, call: Instruction, function: Function, held: Tracked) -> Iterator[Tracked]:
        """What ``*args`` or ``**options`` holds, by the names of the arguments."""
        for source, target in spread(self.places, caller, call, function):
            rest = rest_behind(target, held.place) if target.path else None
            if rest is not None:
                yield held._replace(place=source.behind(*rest))

    def _in_c_argument(self, caller: Function, call: Instruction, function: Function, held: Tracked) -> Iterator[Tracked]:
        """What a function of the C API has taken out of its arguments, by the names of these, and of the memory that they lead to."""
        for source, target in spread(self.places, caller, call, function):
            rest = rest_behind(target, held.place)
            names: list[Place] = [source]
            if source.root[0] == "register" and not source.path and not rest:
                for each in self.transfer.shared(caller, int(str(source.root[1]))):
                    names += self.places.names(caller, each)
            yield from (held._replace(place=name.behind(*rest)) for name in names if rest is not None)

    def _passed(self, caller: Function, call: Instruction, function: Function, index: int, is_inside: bool) -> Iterator[Place]:
        """Where a caller has what it passed for a parameter: for what the parameter itself holds, also the memory that it is a view of."""
        sources = self.sources(caller, call, function, index)
        if sources and sources[0].path:  # elements of what is spread
            yield from sources
            return
        if is_inside or not sources or sources[0].root[0] != "register":
            yield from sources[-1:]
            return
        for register in self.transfer.shared(caller, int(str(sources[0].root[1]))):
            yield from self.places.names(caller, register)

    def places_returned(self, function: Function, register: int) -> tuple[Place, ...]:
        """The places of what a function returns."""
        return self.places.names(function, register)

    def keys(self, caller: Function, call: Instruction, callee: Function, is_down: bool) -> dict[Key, Element]:
        """What indices of one function are called in the other. It is looked up once, and is nobody's to change."""
        key = (caller, call, callee), is_down
        known = self._renaming.get(key)
        if known is None:
            known = self._renaming[key] = self._keys(caller, call, callee, is_down)
        return known

    def _keys(self, caller: Function, call: Instruction, callee: Function, is_down: bool) -> dict[Key, Element]:
        """What indices of one function are called in the other: arguments are parameters."""
        found: dict[Key, Element] = {}
        for param in callee.by_opcode[op.PARAM]:
            register = _operand(caller, call, callee, param[3])
            if register is None or register < 0:
                continue
            outer, inner = self.places.element(caller, register), Element(alike(callee, param[2]))
            if is_down:  # of a number too: ``ring[3 % 2]`` is ``ring[turn % 2]`` there
                found[outer.key if isinstance(outer.key, tuple) else alike(caller, register)] = inner
            elif isinstance(inner.key, tuple):
                found[inner.key] = outer
        return found

    def constants(self, caller: Function, call: Instruction, callee: Function) -> Given:
        """By type and value: the parameters for which a call gives constants."""
        known = self._constants_given.get((caller, call, callee))
        if known is None:
            known = self._constants_given[caller, call, callee] = {}
            for param in callee.by_opcode[op.PARAM]:
                register = _operand(caller, call, callee, param[3])
                constant = self.places.element(caller, register).key if register is not None and register >= 0 else None
                if constant is not None and not isinstance(constant, tuple):
                    known.setdefault((type(constant), constant), []).append(alike(callee, param[2]))
        return known

    def _rekeyed(self, held: Tracked, keys: dict[Key, Element]) -> Tracked:
        """Something tracked with indices as another function has them: of what it cannot name, a stream or event is any, memory none."""
        path = tuple(
            renamed(key.key, keys) or (ANY if held.kind not in EXACT else Element((EARLIER, key.key)))
            if isinstance(key, Element) and isinstance(key.key, tuple) and key.key[:1] != (EARLIER,) and key != NEWEST
            else key
            for key in held.place.path
        )
        return held if path == held.place.path else held._replace(place=Place(held.place.root, path))

    def _made_of(self, function: Function, held: Tracked) -> Iterator[Tracked]:
        """What a function knows by the name that it had before it was put into a record, an object or a container, or that what leads to it
        had, if nothing else can be there."""
        root, path = held.place
        if root[0] != "register" or not path:
            return
        if function.is_cpp:
            names = kept_names(self.transfer, self.places, self.sources, (function, int(str(root[1])), str(path[0])), held.kind in HANDLES)
            yield from (held._replace(place=name.behind(*path[1:])) for name in names)
            return
        number = next((index for index, key in enumerate(path) if str(key).endswith("()")), len(path))  # all memory of what is before it
        for length in range(number, 0, -1):
            parts = self.carriers.parts(function, int(str(root[1])), tuple(map(_as_key, path[:length])))
            if len(parts) == 1 and parts[0].function is function:
                yield from (held._replace(place=name.behind(*path[length:])) for name in self.places.names(function, parts[0].register))
                return


def _is_wider(source: Place, place: Place) -> bool:
    """C++: whether a place is of any element behind a pointer that a function was given to one: what stands there comes back by itself."""
    element = source.path[-2] if len(source.path) > 1 and source.path[-1] == ADDRESS else ANY
    return element != ANY and isinstance(element, Element) and place.path[:1] == (ANY,)


def scope_call(function: Function, one: Instruction) -> Instruction | None:
    """The call of a generator that an instruction ends as a context manager."""
    definition = function.definitions[one[3]] if one[0] == op.EXIT and one[3] >= 0 and not function.is_cpp else None
    return definition if definition is not None and definition[0] in (op.CALL, op.INVOKE) else None


def _call_of(function: Function, one: Instruction, callee: Function) -> Instruction:
    """The instruction that gives a function its arguments: of a generator that the end of a scope runs on, the call that has made it."""
    return (scope_call(function, one) if callee.by_opcode[op.YIELD] else None) or one


def _lent(function: Function, one: Instruction, generator: Function) -> Iterator[tuple[Place, int]]:
    """What a generator gives as a context manager: where it is in the function whose scope ends, and its register in the generator."""
    given = [end[3] for end in generator.by_opcode[op.YIELD]] if scope_call(function, one) is not None else []
    for use in function.uses.get(one[3], ()) if len(given) == 1 and given[0] >= 0 else ():
        if use[0] == op.ENTER:
            yield register_place(use[2]), given[0]


def _is_plain_method(function: Function, one: Instruction) -> bool:
    """Whether a constructor is called as a method: ``super().__init__()``, ``Base.__init__(self)``."""
    return one[0] == op.INVOKE and function.text(one[4]) == "__init__"


def aside(place: Place, depth: int) -> Place:
    """A place of a function on the path, as those that it called see it."""
    return place if place.root[0] == ASIDE else Place((ASIDE, depth, place.root), place.path)


def _open_keys(place: Place) -> int:
    """How many indices of a place a function cannot name."""
    return sum(key == ANY or named_before(key) is not None for key in place.path)


def _as_before(held: Tracked) -> Tracked | None:
    """Something tracked by the indices that it had before a function was entered that could not name them; None where it named all."""
    path = tuple(key if (index := named_before(key)) is None else Element(index) for key in held.place.path)
    return held._replace(place=Place(held.place.root, path)) if path != held.place.path else None


def renamed(key: Key, keys: dict[Key, Element]) -> Element | None:
    """What another function has for an index: as a whole, or for all that it is computed from; None where it has no name for it."""
    if key in keys:
        return keys[key]
    if len(key) < 2 or key[0] not in _COMPUTED:
        return None
    found: list[object] = []
    for part in key:
        if isinstance(part, tuple):
            inner = _key_of(renamed(part, keys))
            if inner is None:
                return None
            part = inner
        found.append(part)
    return Element(tuple(found))


def _key_of(element: Element | None) -> Key | None:
    """The key of an index within an expression, also of a whole number."""
    index = element.key if element is not None else None
    return (op.CONST, str(index), 1) if type(index) is int else index if isinstance(index, tuple) else None


def _as_key(key: str | Element) -> carried_calls.Key:
    """A key as it is asked for: an index that is computed may be any."""
    if isinstance(key, str):
        return carried_calls.Key(key, False)
    return carried_calls.Key(key.key if isinstance(key.key, int | str) else None)


def _taken_up(place: Place, depth: int) -> Place | None:
    root = place.root
    if root[0] != ASIDE:
        return None
    return Place(root[2], place.path) if root[1] == depth else place  # type: ignore[arg-type]


def _operand(caller: Function, call: Instruction, callee: Function, index: int) -> int | None:
    """The register that a call, or what calls a method behind a subscript, gives for a parameter."""
    if call[0] in (op.ITEM, op.SET_ITEM):
        return _of_subscript(call, index)
    return operand_of(caller, call, callee, index) if call[0] in (op.CALL, op.INVOKE) else None


def _of_subscript(one: Instruction, index: int) -> int | None:
    """The register that ``o[key]`` or ``o[key] = value`` gives for a parameter of the object's method."""
    operands = one[3:5] if one[0] == op.ITEM else one[2:5]
    return operands[index] if index < len(operands) else None
