"""The solver: nodes hold sets of abstract objects, edges carry them on, actions run for each object that arrives.

A node finds out where its objects come from when it is first demanded, so that only what a question needs is looked at. The result is
the least fixpoint and does not depend on the order of the questions.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from streamlint.facts.code.objects import Key, Name, Object, Site
from streamlint.support.records import field, record

if TYPE_CHECKING:
    from streamlint.facts.code.functions import Function
    from streamlint.ir import Instruction

AMPLE = 8
"""Of all questions together, in times of what is free: behind these steps each question has fewer."""
MANY = 24
"""A node of more objects keeps joined ones: of many constants that it is one of many, of many classes their common base."""
Action = Callable[[Object], None]
Make = Callable[["Node"], None]


class Source(NamedTuple):
    """Where a value of a node came from: the node before, and the call that it passed."""

    node: Node | None
    site: Site | None


NOWHERE = Source(None, None)


class Node:
    """A set of objects. ``values`` keeps, for each of them, the first source that brought it; ``place`` says where the node stands."""

    __slots__ = ("_applied", "_make", "actions", "edges", "fresh", "joins", "place", "values")

    def __init__(self, make: Make | None, place: Site | tuple[Function, Instruction] | None = None) -> None:
        self._make = make
        self.place = place
        self.values: dict[Object, Source] = {}
        self.joins = 0
        self.fresh: list[Object] | None = None  # what arrived and was not carried on yet
        self.edges: dict[Node, Site | None] | None = None
        self.actions: list[Action] | None = None
        self._applied: set[tuple[object, ...]] | None = None

    @property
    def site(self) -> Site | None:
        """The place of the node, if it stands somewhere."""
        place = self.place
        if type(place) is tuple:
            place = self.place = Site(*place)
        return place  # type: ignore[return-value]

    def begin(self) -> Make | None:
        """What finds the sources of the node; given out once."""
        make, self._make = self._make, None
        return make

    def first(self, *rule: object) -> bool:
        """Whether a rule is applied to the node for the first time: what is looked up again gives nothing new."""
        if self._applied is None:
            self._applied = {rule}
            return True
        if rule in self._applied:
            return False
        self._applied.add(rule)
        return True

    def trace(self, value: Object) -> Iterator[Site]:
        """The places on the way of an object to this node, the nearest first."""
        node: Node | None = self
        seen: set[int] = set()
        while node is not None and id(node) not in seen and value in node.values:
            seen.add(id(node))
            if node.site is not None:
                yield node.site
            before = node.values[value]
            if before.site is not None:
                yield before.site
            node = before.node


@record(eq=False, slots=True)
class Entry:
    """What is given for a key: the nodes, each with the call that it passed; ``node`` holds it all once somebody asks."""

    node: Node = field(init=False)
    given: dict[Node, Site | None] = field(default_factory=dict)
    begun: bool = False


@record(eq=False, slots=True)
class Keyed:
    """A dict or ``**kwargs``: its entries by key, None for keys that are not known; the others that take over what is given to this one,
    but for some keys; what holds all entries, if somebody asks for that."""

    entries: dict[Name, Entry] = field(default_factory=dict)
    links: dict[tuple[Keyed, frozenset[str]], None] = field(default_factory=dict)
    whole: Node | None = None
    asked: dict[Key, dict[Node, Site | None]] = field(default_factory=dict)  # who has asked for what is given for a key


class Solver:
    """Propagates objects until nothing changes.

    ``most`` bounds the steps of each question, once all of them together took ``free``, and ``rest`` once they took `AMPLE` times that.
    Where it takes more, the sources that were not looked at yet give `beyond`, until another question leads to them.
    """

    def __init__(self, *joins: Callable[[Object], Object]) -> None:
        self._joins = joins  # each gives the object that stands for one and its like; the next where there are too many of those
        self._as_joined: list[dict[Object, Object]] = [{} for _ in range(len(joins) + 1)]  # by the number of joins: what an object becomes
        self._open: deque[Node] = deque()
        self._changed: deque[Node] = deque()
        self._actions: deque[tuple[Action, tuple[Object, ...]]] = deque()
        self.wider: dict[Object, Object] = {}
        self._narrower: dict[Object, dict[Object, None]] = {}
        self._later: deque[Callable[[], None]] = deque()
        self._last: deque[Callable[[], None]] = deque()
        self.most: int | None = None
        self.free = 0
        self.rest: int | None = None
        self.beyond: Object | None = None
        self.cut = 0  # questions that took more
        self.steps = 0  # nodes that were looked at, objects that were carried on over an edge or given to an action

    def demand(self, node: Node) -> Node:
        """Have a node find its sources."""
        if node._make is not None:
            self._open.append(node)
        return node

    def add(self, node: Node, value: Object, source: Node | None = None, site: Site | None = None) -> None:
        """An object arrives at a node."""
        if value not in node.values:
            self._arrive(node, value, Source(source, site) if source is not None or site is not None else NOWHERE)

    def _arrive(self, node: Node, value: Object, source: Source) -> None:
        values = node.values
        if len(values) >= MANY or node.joins:
            value = self._joined(node, value, len(values) >= MANY)
            if value in values:
                return
        if value not in self.wider or not any(one in values for one in self._wider_than(value)):
            self._put(node, value, source)

    def _wider_than(self, value: Object) -> Iterator[Object]:
        while (wider := self.wider.get(value)) is not None:
            yield wider
            value = wider

    def widen(self, value: Object, wider: Object) -> None:
        """An object stands for all that another one stands for, and more: where both arrive, only the wider one stays."""
        self.wider[value] = wider
        self._narrower.setdefault(wider, {})[value] = None

    def gather(self, node: Node, value: Object, site: Site | None = None) -> None:
        """An object arrives at a node that holds any number of them."""
        if value not in node.values:
            self._put(node, value, Source(None, site) if site is not None else NOWHERE)

    def _put(self, node: Node, value: Object, source: Source) -> None:
        if value in self._narrower:
            for narrow in self._narrower[value]:
                node.values.pop(narrow, None)
        node.values[value] = source
        if node.fresh is not None:
            node.fresh.append(value)
        elif node.edges is not None or node.actions is not None:
            node.fresh = [value]
            self._changed.append(node)

    def _joined(self, node: Node, value: Object, more: bool) -> Object:
        if more and node.joins < len(self._joins):
            join = self._joins[node.joins]
            node.joins += 1
            for held, before in list(node.values.items()):
                if (joined := join(held)) is not held:
                    node.values.pop(held, None)
                    if joined not in node.values:
                        self._put(node, joined, before)
        known = self._as_joined[node.joins]
        if value not in known:
            joined = value
            for join in self._joins[: node.joins]:
                joined = join(joined)
            known[value] = joined
        return known[value]

    def edge(self, source: Node, target: Node, site: Site | None = None) -> None:
        """All objects of a node are objects of another one."""
        if source is target:
            return
        if source.edges is None:
            source.edges = {target: site}
        elif target in source.edges:
            return
        else:
            source.edges[target] = site
        if source._make is not None:
            self._open.append(source)
        if source.values:
            self._pass_on(tuple(source.values), source, target, site)

    def _pass_on(self, values: Sequence[Object], source: Node, target: Node, site: Site | None) -> None:
        held, came = target.values, None
        for value in values:
            if value not in held:
                came = came or Source(source, site)
                self._arrive(target, value, came)

    def when(self, node: Node, action: Action) -> None:
        """Run an action for each object of a node, now and later."""
        if node.actions is None:
            node.actions = [action]
        else:
            node.actions.append(action)
        if node._make is not None:
            self._open.append(node)
        if node.values:
            self._actions.append((action, tuple(node.values)))

    def later(self, action: Callable[[], None]) -> None:
        """Run an action in its turn."""
        self._later.append(action)

    def at_last(self, action: Callable[[], None]) -> None:
        """Run an action once all that is demanded is known: it may ask what did not arrive."""
        self._last.append(action)

    def solve(self) -> None:
        """Run until nothing changes."""
        cut = self.cut
        most = sys.maxsize
        if self.most is not None:
            mine = self.most if self.rest is None or self.steps <= AMPLE * self.free else self.rest
            most = max(self.free, self.steps + mine)
        while True:
            if self._changed:
                self._carry(self._changed.popleft())
            elif self._actions:
                action, values = self._actions.popleft()
                self.steps += len(values)
                for value in values:
                    action(value)
            elif self._later:
                self._later.popleft()()
                self.steps += 1
            elif self._open:
                if self.steps > most:
                    self.cut = cut + 1
                    self._give_up()
                    continue
                node = self._open.popleft()
                if (make := node.begin()) is not None:
                    make(node)
                self.steps += 1
            elif self._last:
                self._last.popleft()()
                self.steps += 1
            else:
                return

    def _give_up(self) -> None:
        """The sources that are left give what stands for anything."""
        assert self.beyond is not None
        while self._open:
            if (node := self._open.popleft())._make is not None:
                self.add(node, self.beyond)

    def _carry(self, node: Node) -> None:
        """Carry on what arrived at a node. Edges and actions that are new meanwhile see all that it holds by themselves."""
        assert node.fresh is not None
        self.steps += len(node.fresh) * (len(node.edges or ()) + len(node.actions or ()))
        fresh = [value for value in node.fresh if value in node.values]  # the others were joined meanwhile
        node.fresh = None
        for target, site in node.edges.items() if node.edges is not None else ():
            self._pass_on(fresh, node, target, site)
        for action in tuple(node.actions) if node.actions is not None else ():
            for value in fresh:
                action(value)
