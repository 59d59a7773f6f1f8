"""The pieces of work from which races are followed: those near to work on a stream that was chosen.

A race needs memory that two streams touch. So the search begins where a stream is made current, or passed to work, goes from there to
what that work touches, and then to the other work on that. Of functions that know one stream only, nothing is asked.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import cast

from streamlint.facts.code.functions import Function
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Models
from streamlint.models.vocabulary import Row, Selector
from streamlint.ordering.captures.graph_memory import GraphMemory
from streamlint.ordering.places.open_methods import backward_passes
from streamlint.ordering.places.origins import Origins
from streamlint.ordering.places.parameters import Parameters
from streamlint.ordering.places.places import POINTEE, Place, Places, is_object
from streamlint.ordering.places.rotation import turning
from streamlint.ordering.places.sharing import Held, Sharing
from streamlint.ordering.streams.bound_handles import BoundHandles
from streamlint.ordering.streams.streams import Currents
from streamlint.ordering.streams.unknown_calls import with_result
from streamlint.transfer.actions import CURRENT, HANDLE, NAMED, NULL, Copied, Stream, Viewed
from streamlint.transfer.kernel_texts import on_named_stream
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.transfer.work import Worked
from streamlint.waits.operands import ahead, operand_of

CHOOSING = frozenset({"scope", "set_stream"})
_ON_CURRENT = frozenset({"compute", "copy", "transfer"})
"""Effects of calls of libraries of arrays that put work on the current stream."""
_ON_TENSORS = _ON_CURRENT | {"factory"}
"""The same, and those of calls that make memory of it."""
WORKING = frozenset({"launch", "copy", "memset", "free", "transfer", "compute", "write", "read"})
"""Effects of calls that may be given a stream."""
_MAKING = frozenset({"stream"})
_HOLDING = frozenset({op.PHI, op.COPY, op.BUILD, op.DICT, op.ATTR, op.ITEM, op.UNPACK})
_KEEPING = frozenset({op.RETURN, op.YIELD, op.SET_ATTR, op.SET_NAME, op.STORE, op.SET_ITEM, op.APPEND})
_MOST_INSIDE = 60
"""Functions that are looked at for one that makes a stream current."""
_MOST_FILES = 8
"""Files that mention an attribute, beyond which its calls are not looked for."""
_DEEPEST = 20
_MOST_ABOVE = 8
"""Callers of one another in which tensors are looked for."""
_HIGHEST = 2
"""Callers of one another in which the steps of optimizers are looked for."""
Begun = tuple[Function, Instruction, Worked]
Key = tuple[object, ...]


class Beginnings:
    """Looks for the work from which races are followed."""

    waiting = False
    """Whether copies for which the host waits are work on a stream of their own."""

    def __init__(self, transfer: Transfer, places: Places, currents: Currents) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.places = places
        self.currents = currents
        self.sharing = Sharing(transfer)
        self.handles = BoundHandles(transfer, places)
        self.parameters = Parameters(transfer, places)
        self.origins = Origins(transfer, places)
        self.graphs = transfer.one_of(GraphMemory, transfer, places)
        self._tensors: dict[tuple[Function, frozenset[str]], bool] = {}
        self.casts: dict[tuple[Function, Instruction], set[Function]] = {}
        """The casts of the memory that work on a chosen stream touches, each with the functions of that work."""
        self.harmless: set[Begun] = set()
        """Work that may touch the memory of work on a chosen stream, but no two of which may conflict: both only read it."""

    @cached_property
    def found(self) -> list[tuple[Begun, frozenset[Function] | None]]:
        """The work, in the order of the program, each with the functions of the work that it may race with; None for all functions."""
        return list(self._find())

    def _find(self) -> Iterator[tuple[Begun, frozenset[Function] | None]]:
        found: dict[Begun, set[Function] | None] = {}
        active: set[Begun] = set()
        for function, instructions in self.chosen.items():
            chosen = [
                (function, one, with_result(function, one, work)) for one in instructions for work in self.transfer.works(function, one)
            ]
            held = [(function, register) for _, _, work in chosen for register in _registers(work) if register >= 0]
            if function.is_cpp:
                shared = self.sharing.with_any(held) if self._is_shared(function) else []
                for holder, one in self._cast(shared):
                    self.casts.setdefault((holder, one), set()).add(function)
                others = self._on(shared)
                found.update(dict.fromkeys((*chosen, *others)))
                active.update(found)
            else:
                active.update(self._pair(found, function, chosen, self.sharing.origins_of(held)))
        self.harmless = found.keys() - active
        order = {one: index for function in {each[0] for each in found} for index, one in enumerate(function.code.instructions())}
        for each in sorted(found, key=lambda each: (each[0].unit.number, each[0].code.number, order[each[1]])):
            partners = found[each]
            yield each, frozenset(partners) if partners is not None else None

    def _is_shared(self, function: Function) -> bool:
        """Whether other work may touch the memory of a function of C++: it or a caller sets a stream, or makes or works with tensors."""
        if self._is_scoped(function) or any(self._works_with_tensors(each, _ON_TENSORS) for each in around(function)):
            return True
        above = {function: 0}
        for called in (waiting := [function]):
            for caller in (each for place, _ in self.facts.call_places(called) for each in around(place)):
                if not caller.is_cpp or self._works_with_tensors(caller):
                    return True
                if caller not in above and above[called] < _MOST_ABOVE:
                    above[caller] = above[called] + 1
                    waiting.append(caller)
        return False

    def _pair(
        self, found: dict[Begun, set[Function] | None], function: Function, chosen: list[Begun], shared: dict[Held, bool]
    ) -> Iterator[Begun]:
        """Note the work of a function of Python that has a stream, and all work that may touch its memory, as partners of each other;
        gives what may conflict."""
        touching = list(self._on(shared))
        others = [*self._stepping(function), *self._replaying(shared)]
        for holder, one in self._cast(shared):
            self.casts.setdefault((holder, one), set()).add(function)
        listed = self.parameters.written(function)
        others += listed
        if any(work.moves for _, _, work in chosen):
            others += self._running(shared)
        others += self._running_modules(dict.fromkeys(module for those in listed.values() for module in those))
        found.update(dict.fromkeys(each for each in chosen if each[-1].leaves))  # of an optimizer nobody says where it steps
        is_changed = any(_changes(work) for _, _, work in chosen)
        yield from (*chosen, *others, *(each for each in touching if is_changed or _feeds(each, shared)))
        others += touching
        partners = {function, *(each[0] for each in others)}
        for begun, those in ((chosen, partners), (others, {function})):
            for each in begun:
                known = found.setdefault(each, set())
                if known is not None:
                    known |= those

    def _running_modules(self, modules: Iterable[Held]) -> Iterator[Begun]:
        """The calls that run some modules, under whatever names."""
        alike = self.sharing.with_any(modules)
        yield from (each for each in (*self._on(alike), *self._running(alike)) if each[-1].runs)

    def _stepping(self, function: Function, depth: int = 0) -> Iterator[Begun]:
        """The steps of optimizers in a function; in its callers as well, if it asks a module for its parameters."""
        for one in function.by_opcode[op.INVOKE] if "step" in function.called_names else ():
            if function.text(one[4]) == "step":
                yield from ((function, one, work) for work in self.transfer.works(function, one) if work.steps)
        registering = dict.fromkeys(caller for caller, _ in self.transfer.registered(function))
        for caller in registering:
            yield from self._stepping(caller, max(depth, 1))
        asks = depth > 0 or self._asks(function)
        for method in dict.fromkeys(method for method, _ in backward_passes(self.transfer, function)) if asks else ():
            yield from self._stepping(method, _HIGHEST)
        for caller in dict.fromkeys(caller for caller, _ in self.transfer.callers(function)) if asks and depth < _HIGHEST else ():
            yield from self._stepping(caller, depth + 1)

    def _asks(self, function: Function) -> bool:
        """Whether a function asks a module for its parameters, or the constructor of its object does."""
        makers = function.owner.methods.get("__init__", ()) if function.owner is not None else ()
        return any(not self.parameters.listing.isdisjoint(each.called_names) for each in (function, *makers))

    def _on(self, held: Iterable[Held]) -> Iterator[Begun]:
        """The work on some memory."""
        for function, register in held:
            made = function.definitions[register]
            for one in (*((made,) if made is not None else ()), *function.uses.get(register, ())):
                for work in self.transfer.works(function, one):
                    if register in _registers(work):
                        yield function, one, work

    def _replaying(self, held: Iterable[Held]) -> Iterator[Begun]:
        """The replays of graphs, if one reads or writes some of the memory."""
        asked = (self.graphs.graphs, self.graphs.makers) if self.graphs.replays else ()
        if any(True for each, register in held for place in self.places.names(each, register) for ask in asked for _ in ask(each, place)):
            for call in self.graphs.replays:
                yield from ((call.function, call.instruction, work) for work in self.transfer.works(call.function, call.instruction))

    def _cast(self, held: Iterable[Held]) -> Iterator[tuple[Function, Instruction]]:
        """The casts that have made some memory."""
        for function, register in held:
            one = function.definitions[register] if register >= 0 else None
            if one is not None and casts(self.transfer, function, one):
                yield function, one

    def _running(self, held: Iterable[Held]) -> Iterator[Begun]:
        """The calls that run modules which are attributes: by the names of those."""
        for name in dict.fromkeys(name for function, register in held for name in _attributes(function, register)):
            units = [unit for unit in self.facts.program.mentioning(name) if not unit.is_cpp]
            for function in (each for unit in units if len(units) <= _MOST_FILES for each in unit.functions):
                for one in function.by_opcode[op.INVOKE] if name in function.called_names else ():
                    if function.text(one[4]) == name:
                        yield from ((function, one, work) for work in self.transfer.works(function, one) if work.runs)

    # --- where work is on a stream that was chosen

    @cached_property
    def chosen(self) -> dict[Function, list[Instruction]]:
        """By function: the instructions that may be work on a stream that was chosen."""
        found: dict[Function, dict[Instruction, None]] = defaultdict(dict)
        for function in self._scoped:
            for one in self._inside(function):
                found[function][one] = None
                for callee in self._called(function, one):
                    found[callee].update(dict.fromkeys(self._lasting(callee)))
        for function, instructions in self._explicit().items():
            found[function].update(dict.fromkeys(instructions))
        return {function: list(instructions) for function, instructions in found.items()}

    @cached_property
    def _scoped(self) -> list[Function]:
        """The functions that make a stream current."""
        sites = list(self.transfer.sites(CHOOSING))
        found = {call.function: None for call in sites}
        giving = {call.function for call in sites if _is_given(call.function, call.instruction)}
        names = (*self.transfer.names(_MAKING), *sorted(self.facts.models.marked("stream-scopes")))
        units = {unit.number: unit for name in names for unit in self.facts.program.mentioning(name)}
        for _, unit in sorted(units.items()):
            if not unit.is_cpp:
                found.update({function: None for function in unit.functions if function.by_opcode[op.ENTER]})
        for function in list(found):  # a context manager of the program is entered where nothing else speaks of streams
            if not function.is_cpp and (function in giving or self._is_manager(function)):
                found.update((caller, None) for caller, _ in self.facts.call_places(function))
        return [function for function in found if self._is_scoped(function)]

    def _is_manager(self, function: Function) -> bool:
        """Whether a function runs where a scope begins, and makes a stream current."""
        return (function.code.name == "__enter__" or bool(function.by_opcode[op.YIELD])) and self._is_scoped(function)

    def _is_scoped(self, function: Function) -> bool:
        return any(self._inside(function))

    def _inside(self, function: Function) -> Iterator[Instruction]:
        """The instructions for which another stream is current than at the function's beginning."""
        for one in function.code.instructions():
            stream = self.currents.at(function, one)
            if stream is not None and (stream.kind != CURRENT or stream.register >= 0):
                yield one

    def _called(self, function: Function, one: Instruction) -> list[Function]:
        """The functions that an instruction runs."""
        found: dict[Function, None] = {}
        waiting = [(function, one)]
        while waiting and len(found) < _MOST_INSIDE:
            caller, call = waiting.pop(0)
            for edge in self.transfer.edges(caller, call):
                if edge.is_direct and edge.callee not in found and edge.callee is not function:
                    found[edge.callee] = None
                    waiting += [(edge.callee, inner) for opcode in (op.CALL, op.INVOKE) for inner in edge.callee.by_opcode[opcode]]
        return list(found)

    def _lasting(self, function: Function) -> Iterator[Instruction]:
        """The instructions of a function that may be work on memory which others have as well."""
        for one in function.code.instructions():
            registers = [*op.reads(one), *((one[2],) if op.DEFINES[one[0]] else ())]
            if one[0] not in (op.PHI, op.CONST, op.PARAM) and any(self._lasts(function, each) for each in registers):
                yield one

    def _lasts(self, function: Function, register: int) -> bool:
        """Whether a register holds what came from outside, by itself or as an element that a loop takes, or is given to it."""
        if self.places.of(function, register).root[0] != "register":
            return True
        if any(place.root[0] != "register" for place in self.origins.of(function, register)):
            return True
        return any(use[0] in _KEEPING for _, use in ahead(function, register, _HOLDING))

    # --- streams that are passed to work

    def _explicit(self) -> dict[Function, list[Instruction]]:
        """The work that names its stream, of functions from which a second one can be reached."""
        work = self._given_streams()
        streams: dict[Function, set[Key]] = {}
        for function, calls in work.items():
            streams[function] = {self._key(function, one, stream) for one, stream in calls}
            if not function.is_cpp or self._works_with_tensors(function):
                streams[function].add((NULL,))  # work that names no stream is on the current one
        several = self._several(streams)
        several |= {function for function, calls in work.items() if any(self._turns(function, stream.register) for _, stream in calls)}
        return {function: [one for one, _ in calls] for function, calls in work.items() if function in several}

    def _works_with_tensors(self, function: Function, effects: frozenset[str] = _ON_CURRENT) -> bool:
        """C++: whether a function works with tensors, on the current stream, beside what it puts on a stream of its own."""
        found = self._tensors.get((function, effects))
        if found is None:
            arrays = self.facts.models.marked("arrays")
            calls = (
                call
                for opcode in (op.CALL, op.INVOKE)
                for one in function.by_opcode[opcode]
                for call in self.transfer.modelled(function, one)
            )
            found = any(call.row.effect in effects and call.row.library in arrays for call in calls)
            self._tensors[function, effects] = found
        return found

    def _turns(self, function: Function, register: int) -> bool:
        """Whether the rounds of a loop put work on another stream each."""
        return turning(function, register) is not None

    def _is_of_turning(self, function: Function, key: Key) -> bool:
        """Whether a stream is that of an object that the rounds of a loop take in turn."""
        place = key[-1]
        if key[0] is not function or not isinstance(place, Place) or not place.path or place.root[0] != "register":
            return False
        return self._turns(function, int(str(place.root[1])))

    def _given_streams(self) -> dict[Function, list[tuple[Instruction, Stream]]]:
        found: dict[Function, list[tuple[Instruction, Stream]]] = defaultdict(list)
        for call in self.transfer.sites(WORKING, "stream", lambda row: isinstance(row.get("stream"), Selector)):
            found[call.function].append((call.instruction, call.stream()))
        among = [unit for unit in self.facts.program.units.values() if unit.is_cpp] if self.waiting and self._cpp else self._cpp
        for call in self.transfer.sites(WORKING, among=among):
            if call.row.library in self.facts.models.marked("device-memory") and (self.waiting or not self._waits(call)):
                found[call.function].append((call.instruction, _stream_or_handle(call)))
        for unit in self._cpp:
            for function in unit.functions:
                for one in function.by_opcode[op.LAUNCH]:
                    found[function] += [(one, work.stream) for work in self.transfer.works(function, one)]
        for function, one, stream in self._kernels():
            found[function].append((one, stream))
        return found

    def _kernels(self) -> Iterator[tuple[Function, Instruction, Stream]]:
        """Python: the launches of kernels that are given their stream: those of numba, and of kernels that are objects of a library."""
        for function, one in self.transfer.configured:
            yield from ((function, one, work.stream) for work in self.transfer.works(function, one) if work.library == "numba")
        libraries = self.facts.models.gathered(_launching_by_call)
        for unit in dict.fromkeys(unit for library in libraries for unit in self.facts.program.mentioning(library)):
            for function in unit.functions if not unit.is_cpp else ():
                for call in on_named_stream(self.facts, self.transfer.libraries, function):
                    yield function, call.instruction, call.stream()

    def _waits(self, call: ModelledCall) -> bool:
        return any(isinstance(each, Copied) and not each.asynchronous for each in self.transfer.of(call.function, call.instruction))

    @cached_property
    def _cpp(self) -> list[Unit]:
        """The files of C++ that name streams, and those that include one."""
        cpp = self.facts.program.cpp
        giving = self.transfer.names({"stream_of"}, _gives_own)
        names = (*self.transfer.names(CHOOSING | _MAKING), *giving, *self.facts.models.marked("raw-stream"))
        naming = {unit for name in names for unit in cpp.mentioning(name)}
        units = (unit for unit in self.facts.program.units.values() if unit.is_cpp and not naming.isdisjoint(cpp.visible(unit)))
        return sorted(units, key=lambda unit: unit.number)

    def _key(self, function: Function, one: Instruction, stream: Stream) -> Key:
        """A stream, as a function names it."""
        if stream.kind == HANDLE:
            if (register := self.handles.before(function, one, stream.register)) is not None:
                return (function, self.places.of(function, register))
            bound = self.handles.elsewhere(function, stream.register)
            if bound is None:
                return (NULL,)
            return (function, bound.places[0]) if bound.places else (bound.function, self.places.of(bound.function, bound.register))
        if stream.kind in (NULL, CURRENT) or stream.register < 0:
            return (stream.kind if stream.kind == NAMED else NULL,)
        return (function, self.places.of(function, stream.register))

    def _several(self, streams: dict[Function, set[Key]]) -> set[Function]:
        """The functions of which a caller, or they themselves, know several streams."""
        callees: dict[Function, set[Function]] = defaultdict(set)
        kept = _Kept()
        waiting = deque((function, key, 0) for function, keys in streams.items() for key in keys)
        while waiting:
            function, key, depth = waiting.popleft()
            for caller, call in self.facts.call_places(function) if depth < _DEEPEST and kept.adds(function, key, streams) else ():
                callees[caller].add(function)
                own: set[Key] = {(NULL,)} if caller not in streams and caller.is_cpp and self._works_with_tensors(caller) else set()
                above, mine = self._above(caller, call, function, key), streams.setdefault(caller, own)
                if above not in mine:
                    mine.add(above)
                    waiting.append((caller, above, depth + 1))
        owners: dict[object, set[Key]] = defaultdict(set)
        for function, keys in streams.items():
            if function.owner is not None:
                owners[function.owner] |= {key for key in keys if _is_member(key)}
        return self._below({function for function, keys in streams.items() if self._has_several(function, keys, owners)}, callees)

    def _has_several(self, function: Function, keys: set[Key], owners: dict[object, set[Key]]) -> bool:
        """Whether a function knows several streams, or its class does, or the rounds of a loop take one each."""
        return (
            len(keys) > 1
            or (function.owner is not None and len(owners[function.owner]) > 1)
            or any(self._is_of_turning(function, key) for key in keys)
        )

    @staticmethod
    def _below(above: set[Function], callees: dict[Function, set[Function]]) -> set[Function]:
        """Some functions, and those that they call, over others."""
        found, front = set(above), above
        for _ in range(_DEEPEST):
            front = {callee for function in front for callee in callees[function]} - found
            found |= front
        return found

    def _above(self, caller: Function, call: Instruction, function: Function, key: Key) -> Key:
        """What a caller has for the stream of a function that it calls."""
        place = key[-1]
        if len(key) < 2 or key[0] is not function or not isinstance(place, Place) or place.root[0] != "parameter":
            return key
        index = int(str(place.root[1]))
        if call[0] not in (op.CALL, op.INVOKE):
            return key
        register = operand_of(caller, call, function, index)
        if register is None or register < 0:
            return (caller, Place(("parameter", 0), place.path)) if index == 0 and function.has_receiver else (NULL,)
        return (caller, self.places.of(caller, register).behind(*place.path))


class _Kept:
    """The streams that were passed on to the callers of functions: a further one may tell nothing new of them."""

    def __init__(self) -> None:
        self._all: Counter[Function] = Counter()
        self._members: Counter[Function] = Counter()
        self._heads: dict[tuple[Function, object], set[object]] = defaultdict(set)

    def adds(self, function: Function, key: Key, streams: dict[Function, set[Key]]) -> bool:
        """Whether callers, or their classes, may have several streams by one more of a function; it counts from now on.

        Callers name as it is a stream that no parameter of the function holds: two of such tell as much as more. Of what is behind one
        parameter, callers name all in the same way: two that begin differently tell as much as more.
        """
        place = key[-1]
        if self._members[function] > 1:
            return False
        if (
            isinstance(place, Place)
            and place.root[0] == "parameter"
            and (key[0] is function or key not in streams.get(cast(Function, key[0]), ()))
        ):
            if key[0] is not function or not place.path or place.path[0] == POINTEE:
                return True
            heads = self._heads[function, place.root]
            adds = len(heads) < 2
            heads.add(place.path[0])
            return adds
        is_member = _is_member(key)
        adds = self._all[function] < 2 or is_member
        self._all[function] += 1
        self._members[function] += is_member
        return adds


def casts(transfer: Transfer, function: Function, one: Instruction) -> bool:
    """Whether a call gives memory of another type of elements."""
    return one[0] in CALLING and any(isinstance(action, Viewed) and action.casts for action in transfer.of(function, one))


def _gives_own(row: Row) -> bool:
    """Whether a function gives a stream that is neither the current nor the default one."""
    return row.get("which") in ("pool", "external")


def _attributes(function: Function, register: int) -> Iterator[str]:
    """The attributes that a register was read from, or is stored in."""
    one = function.definitions[register]
    if one is not None and one[0] == op.ATTR:
        yield function.text(one[4])
    yield from (function.text(use[3]) for use in function.uses[register] if use[0] == op.SET_ATTR and use[4] == register)


def _is_given(function: Function, one: Instruction) -> bool:
    """Whether a function gives back what a call gives, or that on one of several ways."""
    return op.DEFINES[one[0]] and any(use[0] in (op.RETURN, op.PHI) for use in function.uses.get(one[2], ()))


def _is_member(key: Key) -> bool:
    place = key[-1]
    return isinstance(place, Place) and bool(place.path) and is_object(place.root)


def _changes(work: Worked) -> bool:
    """Whether work changes memory that was there before, or may do so."""
    return bool(work.writes or work.moves or work.leaves or work.steps or work.symbols or work.assumed)


def _feeds(begun: Begun, shared: Mapping[Held, bool]) -> bool:
    """Whether work may change memory that it shares with other work, or makes what that has come from."""
    function, _, work = begun
    return _changes(work) or bool(work.runs) or shared.get((function, work.made), False)


def _registers(work: Worked) -> tuple[int, ...]:
    """What work touches: memory, and modules that are called by their own name."""
    return (work.made, *work.writes, *work.reads, *work.moves, *(module.register for module in work.runs if not module.name))


def _stream_or_handle(call: ModelledCall) -> Stream:
    """The stream of a call, or the handle of a library that holds it."""
    handle = call.one("handle") if call.row.get("stream") == HANDLE else None
    return Stream(HANDLE, handle, call.row.library) if handle is not None else call.stream()


def around(function: Function) -> Iterator[Function]:
    """A function, and those that a lambda stands in."""
    yield function
    while function.code.kind == "lambda" and function.parent is not None:
        function = function.parent
        yield function


def _launching_by_call(models: Models) -> list[str]:
    """The libraries of Python whose kernels are objects that are called."""
    return sorted({row.library for name, row in models.calls.items() if name.endswith(".__call__") and row.effect == "launch"})
