"""Which stream work is queued on, as a path names it, and whether two streams may be the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, Instance, LibraryObject, Object, Site, Unknown
from streamlint.facts.code.passing import attribute_of
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.kept_members import KeptMembers
from streamlint.ordering.paths.on_path import as_passed, default_on
from streamlint.ordering.paths.walk_names import aside
from streamlint.ordering.places.c_api import is_of_c
from streamlint.ordering.places.first_rounds import FirstRounds
from streamlint.ordering.places.flow import STREAM, Tracked
from streamlint.ordering.places.places import ANY, Element, Place, Places, register_place, rest_behind
from streamlint.ordering.places.rotation import turning
from streamlint.ordering.streams.bound_handles import Bound, BoundHandles, Scopes, behind_number, given_handle
from streamlint.ordering.streams.stream_owners import Owner, StreamOwners
from streamlint.ordering.streams.streams import Currents
from streamlint.transfer.actions import APART, CURRENT, HANDLE, NAMED, NULL, UNKNOWN, Stream, Viewed
from streamlint.transfer.modelled import stream_held
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import is_stream
from streamlint.waits.operands import argument_registers, operand_of

MADE = ("global", "made")
"""How the place of a stream begins that is named by where it was made; the instruction and the owner follow."""
WAITER = "waiter"
"""A stream that already waits for the operation that is followed."""
_CREATED = frozenset({"created", "blocking", "non-blocking"})
AMBIENT = Place(("global", "ambient"))
"""The stream that is current where a path begins; the default stream is the same."""


class Lane(NamedTuple):
    """A stream: ``kind`` is ``current`` for the ambient one, ``named`` or ``unknown``; its names on the path, where it was made, whether it
    is ordered with the null stream (None: not known). ``is_given``: an unknown call has given it; ``may_be_current``: it is one of
    several, of which one is the current one; ``takes_turns``: each round of a loop has another one of a list that its function builds;
    ``owner``: the object of the program whose constructor has made it, if that is known; ``is_made_once``: a function on the path has
    made it, and no other one there."""

    kind: str
    places: tuple[Place, ...]
    made: frozenset[Site]
    blocking: bool | None
    library: str
    is_given: bool = False
    may_be_current: bool = False
    takes_turns: bool = False
    owner: Owner | None = None
    is_made_once: bool = False

    def tracked(self, kind: str) -> frozenset[Tracked]:
        """The lane as it is tracked."""
        if self.kind == CURRENT:
            return frozenset({Tracked(kind, AMBIENT)})
        places = [*self.places]
        if self.is_made_once or not self.is_element:
            places += [Place(("global", "made", site, self.owner)) for site in self.made]
        return frozenset(Tracked(kind, place) for place in places)

    @property
    def is_element(self) -> bool:
        """Whether it is one of several that are made at one place."""
        return any(isinstance(key, Element) for place in self.places for key in place.path)

    @property
    def is_one(self) -> bool:
        """Whether it is a stream of the program's own for sure, always the same one."""
        may_be_other = self.is_given or self.may_be_current or self.takes_turns or self.is_element or AMBIENT in self.places
        return self.kind == NAMED and len(self.made) == 1 and not may_be_other


class Lanes:
    """The lanes of the work of a program."""

    per_thread: Callable[[Unit], bool] = staticmethod(lambda unit: False)
    """Whether the default stream of a file is one of its own for each thread."""

    def __init__(self, transfer: Transfer, places: Places, currents: Currents) -> None:
        self.transfer = transfer
        self.places = places
        self.currents = currents
        self.first = transfer.one_of(FirstRounds, transfer)
        self.handles = BoundHandles(transfer, places)
        self.scopes = Scopes(transfer, places, currents)
        self.members = transfer.one_of(KeptMembers, transfer, places)
        self.owners = transfer.one_of(StreamOwners, transfer)

    def of(self, frame: Frame, one: Instruction, stream: Stream, depth: int | None = None) -> Lane:
        """The lane that an instruction means by a stream."""
        depth = frame.depth if depth is None else depth
        if stream.kind == CURRENT:
            return self._current(frame, one, stream, depth)
        if stream.kind == NULL:
            return Lane(CURRENT, (), frozenset(), not self.per_thread(frame.function.unit), stream.library)
        if stream.kind == APART:
            return Lane(NAMED, (), frozenset({Site(frame.function, one)}), False, stream.library)
        if stream.kind == HANDLE:
            return self._of_handle(frame, one, stream, depth)
        if stream.kind == UNKNOWN and stream.register >= 0:
            return self._bound(self.scopes.of(frame.function, stream.register), frame, stream, depth)
        if stream.kind == UNKNOWN or stream.register < 0:
            return Lane(UNKNOWN, (), frozenset(), None, stream.library)
        return self._named(frame, one, stream, depth)

    def _named(self, frame: Frame, one: Instruction, stream: Stream, depth: int) -> Lane:
        passed = self._caller_stream(frame, stream)
        if passed is not None and frame.caller is not None and frame.call is not None:
            return self.of(frame.caller, frame.call, passed, depth)
        function, register = frame.function, behind_number(frame.function, stream.register)
        if self._is_computed(function, register):
            return Lane(UNKNOWN, (), frozenset(), None, stream.library)
        holder, held = self._first_held(frame, register)
        if (lane := self._left_out(holder, held, stream.library, depth)) is not None:
            return lane
        values = self._held(holder.function, held, function.homes[one][0] if holder is frame and one in function.homes else NOBODY)
        values = self._of_path(holder, held, _in_use(values, function.is_cpp))
        obtained = self._obtained_as(frame, register, values)
        if obtained is not None:
            return self.of(*obtained, depth)
        wrapped = (*self._wrapped(function, register), *self._initial(function, register))
        kept = self._kept(holder, held, frame, register, one)
        own = (*self.places.names(function, register), *self._members(function, register, values), *kept, *wrapped)
        names = _seen_from(frame, depth, own)
        creations = _made(values)
        details = {value.detail for value in values if isinstance(value, LibraryObject)}
        is_one_of = _is_one_of(names, values, details)
        is_given = not (creations or wrapped) and self._is_given(function, register)  # a getter may give the current one
        if is_given or _may_be_current(details - {"current", "default"} if is_one_of else details):
            names = (*names, AMBIENT)
        takes_turns = is_one_of and turning(function, register) is not None and self._is_of_list(function, register)
        owner = self.owners.of(frame, register, own, creations)
        lane = Lane(NAMED, names, creations, self._blocking(stream, values, creations), stream.library, is_given, is_one_of, takes_turns)
        return lane._replace(owner=owner, is_made_once=_is_made_once(frame, values))

    def _kept(self, holder: Frame, held: int, frame: Frame, register: int, one: Instruction) -> Iterator[Place]:
        """The members that hold a stream, and where the function has what it has put into the element that it takes it from."""
        yield from self.members.of(frame.function, register, one)
        yield from self.places.names(frame.function, held) if holder is frame else ()

    def _of_path(self, frame: Frame, register: int, values: list[Object]) -> list[Object]:
        """C++: of an object that a path has made, no streams that nobody in view has given it."""
        is_made = frame.function.is_cpp and self.members.is_made_on(frame, register)
        return ([value for value in values if _is_known(value)] or values) if is_made else values

    def _first_held(self, frame: Frame, register: int) -> tuple[Frame, int]:
        """Who on a path has a stream first: who passes it, or in C++ who makes the object with it that a method is called on."""
        holder, held = as_passed(self.transfer, frame, register)
        while (given := self.members.given_on(holder.function, held, holder)) is not None:
            holder, held = as_passed(self.transfer, *given)
        stored = self.members.stored(holder.function, held)
        return (holder, held) if stored is None else (holder, stored)

    def _left_out(self, holder: Frame, held: int, library: str, depth: int) -> Lane | None:
        """The lane that a parameter means by its default, where the call on the path leaves it out; None of a stream that is given."""
        default = default_on(self.transfer, holder, held)
        if default is None or holder.caller is None or holder.call is None:
            return None
        stream = stream_held(*default, list(self.transfer.values(*default)), library)
        return self.of(holder.caller, holder.call, stream, depth) if stream.register < 0 else None

    def _held(self, function: Function, register: int, block: int) -> list[Object]:
        """What a register holds in a block, and the streams whose handles that wraps."""
        values = self._streams(function, register, block)
        return values + [value for value in self._behind_external(values) if value not in values]

    def _is_computed(self, function: Function, register: int) -> bool:
        """Python: whether a stream is an attribute by a name that is not known."""
        one = function.definitions[register] if register >= 0 else None
        return (
            one is not None and attribute_of(function, one) is not None and self.places.of(function, register) == register_place(register)
        )

    def _is_given(self, function: Function, register: int) -> bool:
        """Whether a call or several ways give a stream that has no other name."""
        one = function.definitions[register]
        if one is None or one[0] not in (op.CALL, op.INVOKE, op.PHI):
            return False
        return one[0] != op.PHI or self.places.of(function, register).root[0] == "register"

    def _is_of_list(self, function: Function, register: int) -> bool:
        """Whether a register holds an element of a list or tuple that its function builds."""
        root = self.places.of(function, register).root
        one = function.definitions[int(str(root[1]))] if root[0] == "register" else None
        return one is not None and one[0] == op.BUILD

    def _wrapped(self, function: Function, register: int) -> Iterator[Place]:
        """C++: the stream that a wrapper is made of. Python: the one whose handle an attribute is (``stream.ptr``)."""
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] == op.ATTR and not function.is_cpp and is_stream(self.transfer.values(function, one[3])):
            is_handle = any(isinstance(each, Viewed) for each in self.transfer.of(function, one))
            yield from self.places.names(function, one[3]) if is_handle else ()
        for call in self.transfer.modelled(function, one) if one is not None and one[0] == op.CALL and function.is_cpp else ():
            source = call.one("from") if call.row.effect == "stream_of" else None
            if source is not None and source >= 0:
                yield from self.places.names(function, source)

    def _behind_external(self, values: Iterable[Object]) -> Iterator[Object]:
        """The streams whose handles other libraries' streams wrap: ``cuda.external_stream(stream.ptr)`` is that stream."""
        sites = (
            value.site for value in values if isinstance(value, LibraryObject) and value.detail == "external" and value.site is not None
        )
        for function, one in sites:
            for call in self.transfer.modelled(function, one):
                source = call.one("from") if call.row.effect == "stream_of" else None
                if source is not None and source >= 0:
                    yield from self.transfer.values(function, self._viewed(function, source))

    def _obtained_as(self, frame: Frame, register: int, values: list[Object]) -> tuple[Frame, Instruction, Stream] | None:
        """Where a wrapper was made on a path of the handle of the stream that was the current one there, or of the null stream's."""
        wrappers = {value.site for value in values if isinstance(value, LibraryObject) and value.detail == "external"}
        site = wrappers.pop() if len(wrappers) == 1 else None
        call = next(iter(self.transfer.modelled(*site)), None) if site is not None else None
        source = call.one("from") if call is not None else None
        if site is None or source is None or source < 0:
            return None
        stream = self._behind(site.function, source, "")
        if stream.kind not in (CURRENT, NULL):
            return None
        if (inner := frame.of(site.function)) is not None:
            return inner, site.instruction, stream
        definition = frame.function.definitions[register]
        is_called = definition is not None and any(edge.callee is site.function for edge in self.transfer.edges(frame.function, definition))
        return (frame, definition, stream._replace(register=op.NONE)) if definition is not None and is_called else None

    def _initial(self, function: Function, register: int) -> Iterator[Place]:
        """C++, in a constructor: the stream that it has put into a member (``: stream_(stream)``, ``stream_ = stream;``)."""
        one = function.definitions[register] if function.is_cpp and register >= 0 else None
        if one is None or one[0] != op.NAME:
            return
        member, home = function.text(one[3]), function.homes.get(one)
        given = [init[5] for init in function.by_opcode[op.INIT] if function.text(init[3]) == member and len(init) == 6]
        stored = [store for store in function.by_opcode[op.SET_NAME] if function.text(store[2]) == member]
        before = [store[3] for store in stored if home is not None and function.homes[store][0] == home[0] and function.homes[store] < home]
        if len(before) == len(stored) and (before or len(given) == 1):
            yield from self.places.names(function, (given + before)[-1])

    def _streams(self, function: Function, register: int, block: int) -> list[Object]:
        """What a register holds; C++: of an object that converts to a stream, what the conversion gives."""
        values = list(self.first.values(function, register, block))
        is_object = function.is_cpp and values and all(isinstance(value, Instance) for value in values)
        methods = list(self._conversions(values)) if is_object else []
        given = ((method, end[2]) for method in methods for end in method.by_opcode[op.RETURN] if end[2] >= 0)
        return values + [value for method, held in given for value in self.transfer.values(method, held)]

    def _members(self, function: Function, register: int, values: list[Object]) -> Iterator[Place]:
        """C++: the member that a method gives back, or an object is converted to: ``lane.get()``, ``lane``."""
        one = function.definitions[register] if function.is_cpp and register >= 0 else None
        if one is None:
            return
        methods = list(self._giving(function, one, values))
        owner = self.places.of(function, one[3] if one[0] == op.INVOKE else register)
        for method in methods if len(methods) == 1 else ():
            given = [self.places.of(method, end[2]) for end in method.by_opcode[op.RETURN] if end[2] >= 0]
            for place in given if method.is_cpp and method.method is method else ():
                if place.root == ("parameter", 0) and not any(isinstance(key, Element) for key in place.path):
                    yield owner.behind(*place.path)

    def _giving(self, function: Function, one: Instruction, values: list[Object]) -> Iterator[Function]:
        """The methods that give a value: those that a call may run, or the conversions of an object."""
        if one[0] == op.INVOKE:
            yield from (edge.callee for edge in self.transfer.edges(function, one) if edge.is_followed)
        else:
            yield from self._conversions(values)

    @staticmethod
    def _conversions(values: Iterable[Object]) -> Iterator[Function]:
        """C++: the conversions of objects."""
        for value in values:
            named = value.definition.methods if isinstance(value, Instance) else {}
            yield from (each for name, methods in named.items() if name.startswith("operator ") for each in methods)

    def _caller_stream(self, frame: Frame, stream: Stream) -> Stream | None:
        """C++ that Python calls: the stream whose handle an argument is, as the caller has it."""
        function, caller, call = frame.function, frame.caller, frame.call
        if not function.is_cpp or caller is None or call is None or caller.function.is_cpp or call[0] not in (op.CALL, op.INVOKE):
            return None
        root, path = self.places.of(function, stream.register)
        if root[0] != "parameter":
            return None
        if is_of_c(caller.function, function):
            index = path[0].key if path and isinstance(path[0], Element) else int(str(root[1])) - 1
            given = [register for kind, register in argument_registers(caller.function, call) if kind is None]
            register = given[index] if isinstance(index, int) and 0 <= index < len(given) else None
        else:
            register = operand_of(caller.function, call, function, int(str(root[1]))) if not path else None
        return self._behind(caller.function, register, stream.library) if register is not None and register >= 0 else None

    def _viewed(self, function: Function, register: int) -> int:
        """The register that another one is a view of, over all views."""
        one = function.definitions[register]
        views = (each.register for each in self.transfer.of(function, one) if isinstance(each, Viewed)) if one is not None else iter(())
        view = next(views, None)
        return register if view is None else self._viewed(function, view)

    def _behind(self, function: Function, register: int, library: str) -> Stream:
        """Python: the stream whose handle a number is (``stream.cuda_stream``); 0 is the null stream."""
        register = self._viewed(function, register)
        values = list(self.transfer.values(function, register))
        streams = [value for value in values if isinstance(value, LibraryObject) and value.kind == "stream"]
        library = streams[0].type.partition(".")[0] if streams else library
        details = {value.detail for value in streams}
        is_null = bool(values) and all(isinstance(value, Constant) and value.value in (None, 0) for value in values)
        if is_null or (details and details <= {"default", "null"}):
            return Stream(NULL, library=library)
        return Stream(CURRENT if details == {"current"} else NAMED, register, library)

    def _of_handle(self, frame: Frame, one: Instruction, stream: Stream, depth: int) -> Lane:
        """The stream that a handle was given: before, by those who pass it, or where it was made."""
        inner: Frame = frame
        at, register = one, stream.register
        while True:
            bound = self.handles.before(inner.function, at, register)
            if bound is not None:
                return self.of(inner, at, Stream(NAMED, bound, stream.library), depth)
            index = given_handle(inner.function, register)
            if index is None or inner.caller is None or inner.call is None or inner.call[0] not in (op.CALL, op.INVOKE):
                break
            given = operand_of(inner.caller.function, inner.call, inner.function, index)
            if given is None or given < 0:
                break
            at, register, inner = inner.call, given, inner.caller
        bound_elsewhere = self.handles.elsewhere(inner.function, register)
        if bound_elsewhere is None and self.handles.is_unbound(inner.function, register):
            return self.of(inner, at, Stream(NULL, library=stream.library), depth)
        return self._bound(bound_elsewhere, inner, stream, depth)

    def _bound(self, found: Bound | None, frame: Frame, stream: Stream, depth: int) -> Lane:
        """A stream that another function has named."""
        if found is None:
            return Lane(UNKNOWN, (), frozenset(), None, stream.library)
        values = _in_use(self.transfer.values(found.function, found.register), found.function.is_cpp)
        names = tuple(aside(name, frame.depth) for name in found.places) if frame.depth != depth else found.places
        creations = _made(values)
        if not names and not creations:
            return Lane(UNKNOWN, (), frozenset(), None, stream.library)
        return Lane(NAMED, names, creations, self._blocking(stream, values, creations), stream.library)

    def _current(self, frame: Frame, one: Instruction, stream: Stream, depth: int) -> Lane:
        at: Instruction | None = one
        if stream.register >= 0:  # ``current_stream()`` means the one where it was called
            obtained = self._obtained(frame, stream.register)
            if obtained is None:
                return Lane(CURRENT, (), frozenset(), True, stream.library)
            frame, at = obtained
        inner: Frame | None = frame
        while inner is not None and at is not None:
            is_own = _is_of_arrays(inner.function, stream.library)
            found = self.currents.of_library(inner.function, at, stream.library) if is_own else self.currents.at(inner.function, at)
            if found is not None and (found.kind != CURRENT or found.register >= 0):
                return self.of(inner, at, found, depth)
            at, inner = inner.call, inner.caller
        return Lane(CURRENT, (), frozenset(), True, stream.library)

    def _obtained(self, frame: Frame, register: int) -> tuple[Frame, Instruction] | None:
        """Where ``current_stream()`` was called on a path that a register holds the result of: by its function, or by a caller."""
        definition = frame.function.definitions[register]
        if definition is not None and self._is_obtained(frame.function, register):
            return frame, definition
        sites = {value.site for value in self.transfer.values(frame.function, register) if isinstance(value, LibraryObject)}
        site, inner = sites.pop() if len(sites) == 1 else None, frame.caller
        while site is not None and inner is not None:
            if inner.function is site.function:
                return inner, site.instruction
            inner = inner.caller
        return None

    def _is_obtained(self, function: Function, register: int, depth: int = 4) -> bool:
        """Whether a stream is asked for where a register gets it: by a call, or by a property or method that does so each time."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or one[0] not in (op.CALL, op.INVOKE, op.ATTR):
            return False
        callees = [edge.callee for edge in self.transfer.edges(function, one) if edge.is_direct]
        if one[0] == op.ATTR and not callees:
            return False
        ends = [(callee, end[2]) for callee in callees for end in callee.by_opcode[op.RETURN] if depth]
        return all(self._is_obtained(callee, given, depth - 1) for callee, given in ends)

    def _blocking(self, stream: Stream, values: list[Object], made: frozenset[Site]) -> bool | None:
        """Whether a stream is ordered with the null stream: so is the per-thread default stream. Callers in view say so for the others."""
        known = [value for value in values if _is_known(value)] if made else values
        kept = (value.detail for value in known if isinstance(value, LibraryObject))
        details = {"blocking" if detail == "ptds" else detail for detail in kept}
        if details & {"blocking", "non-blocking"}:
            return None if len(details) > 1 else "blocking" in details
        said = {self._is_made_blocking(site) for site in made}
        if said:
            return said.pop() if len(said) == 1 else None
        return False if stream.library in ("torch", "") else None

    def _is_made_blocking(self, site: Site) -> bool | None:
        for call in self.transfer.modelled(site.function, site.instruction):
            if call.row.effect == "stream":
                return call.switch("blocking")[1]
        return False

    def is_same(self, tracked: frozenset[Tracked], lane: Lane, kinds: tuple[str, ...] = (STREAM, WAITER)) -> bool:
        """Whether a lane may be one of those that are tracked."""
        if lane.kind == UNKNOWN:
            return True
        held = {each.place for each in tracked if each.kind in kinds}
        if not held.isdisjoint(each.place for each in lane.tracked(kinds[0])) or _may_be_made_as(held, lane):
            return True
        each_of = [each.place for each in tracked if each.kind == WAITER and WAITER in kinds and each.place.path[-1:] == (ANY,)]
        return any(rest_behind(every, place) == () for every in each_of for place in lane.places)


def _is_known(value: Object) -> bool:
    """Whether a stream is one that the program makes: what others might give says nothing of an object that a path has made."""
    return not (isinstance(value, LibraryObject) and value.kind == "stream" and value.site is None and not value.detail)


def _may_be_made_as(held: set[Place], lane: Lane) -> bool:
    """Whether a lane was made where one of some places says, by whoever of the two is not known to be of another object."""
    if lane.is_element:
        return False
    owners = [place.root[3] for place in held if place.root[:2] == MADE and place.root[2] in lane.made]
    return any(owner is None or lane.owner is None for owner in owners)


def _seen_from(frame: Frame, depth: int, names: tuple[Place, ...]) -> tuple[Place, ...]:
    """Places of a function on a path, as the one at a depth sees them."""
    return names if frame.depth == depth else tuple(aside(name, frame.depth) for name in names)


def _is_one_of(names: Iterable[Place], values: Iterable[Object], details: set[str]) -> bool:
    """Whether a stream is an element of a container of several: that one of them is the current one tells nothing of each."""
    if not any(isinstance(key, Element) for name in names for key in name.path):
        return False
    has_others = bool(details & {*_CREATED, ""}) or any(isinstance(value, Unknown) for value in values)
    return has_others and bool(details & {"current", "default"})


def _is_made_once(frame: Frame, values: list[Object]) -> bool:
    """Whether a value is one stream, which a function on a path makes, and not one in each round of a loop."""
    only = values[0] if len(values) == 1 else None
    site = only.site if isinstance(only, LibraryObject) and only.detail in _CREATED else None
    maker = frame.of(site.function) if site is not None else None
    return site is not None and maker is not None and maker.function.control.innermost[maker.function.homes[site.instruction][0]] == NOBODY


def _in_use(values: Iterable[Object], is_cpp: bool) -> list[Object]:
    """What a variable for a stream holds where work is queued: what is null in C++ beside what is created was null before."""
    held = list(values)
    streams = [value for value in held if isinstance(value, LibraryObject) and value.kind == "stream"]
    if not is_cpp or not any(value.detail in _CREATED for value in streams):
        return held
    return [value for value in held if value not in streams or value.detail != "null"]


def _may_be_current(details: set[str]) -> bool:
    """Whether a stream may be the current one."""
    return bool(details & {"current", "default", "attribute", "null"})


def _made(values: list[Object]) -> frozenset[Site]:
    """Where streams were made."""
    held = [value for value in values if isinstance(value, LibraryObject) and value.detail != "external"]
    created = frozenset(value.site for value in held if value.detail == "created" and value.site)
    return created or frozenset(value.site for value in held if value.kind == "stream" and value.site)


def _is_of_arrays(function: Function, library: str) -> bool:
    """Whether a library of Python has arrays, and so a current stream of its own."""
    return not function.is_cpp and library in function.unit.models.marked("arrays")
