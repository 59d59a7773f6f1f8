"""The solver: nodes hold sets of abstract objects, edges carry them on, actions run for each object that arrives.

A node finds out where its objects come from when it is first demanded, so that only what a question needs is looked at. The result is
the least fixpoint and does not depend on the order of the questions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from streamlint.facts.objects import Object, Site

Action = Callable[[Object], None]


MOST_VALUES = 400
"""A node of more objects is of no use to anybody."""


class Source(NamedTuple):
    """Where a value of a node came from: the node before, and the call that it passed."""

    node: Node | None
    site: Site | None


class Node:
    """A set of objects. ``values`` keeps, for each of them, the first source that brought it; ``site`` says where the node stands."""

    __slots__ = ("_done", "_make", "actions", "edges", "site", "values")

    def __init__(self, make: Callable[[Node], None] | None, site: Site | None = None) -> None:
        self._make = make
        self.site = site
        self.values: dict[Object, Source] = {}
        self.edges: dict[Node, Site | None] = {}
        self.actions: list[Action] = []
        self._done: set[tuple[object, ...]] = set()

    def begin(self) -> Callable[[Node], None] | None:
        """What finds the sources of the node; given out once."""
        make, self._make = self._make, None
        return make

    def first(self, *rule: object) -> bool:
        """Whether a rule is applied to the node for the first time: what is looked up again gives nothing new."""
        if rule in self._done:
            return False
        self._done.add(rule)
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


class Solver:
    """Propagates objects until nothing changes."""

    def __init__(self) -> None:
        self._open: deque[tuple[Callable[[Node], None], Node]] = deque()
        self._arrived: deque[tuple[Node, Object]] = deque()
        self._actions: deque[tuple[Action, Object]] = deque()
        self.steps = 0

    def demand(self, node: Node) -> Node:
        """Have a node find its sources."""
        if (make := node.begin()) is not None:
            self._open.append((make, node))
        return node

    def add(self, node: Node, value: Object, source: Node | None = None, site: Site | None = None) -> None:
        """An object arrives at a node."""
        if value not in node.values and len(node.values) < MOST_VALUES:
            node.values[value] = Source(source, site)
            if node.edges or node.actions:
                self._arrived.append((node, value))

    def edge(self, source: Node, target: Node, site: Site | None = None) -> None:
        """All objects of a node are objects of another one."""
        if source is target or target in source.edges:
            return
        source.edges[target] = site
        self.demand(source)
        for value in list(source.values):
            self.add(target, value, source, site)

    def when(self, node: Node, action: Action) -> None:
        """Run an action for each object of a node, now and later."""
        node.actions.append(action)
        self.demand(node)
        self._actions.extend((action, value) for value in node.values)

    def solve(self) -> None:
        """Run until nothing changes."""
        while True:
            if self._arrived:
                node, value = self._arrived.popleft()
                for target, site in node.edges.items():
                    self.add(target, value, node, site)
                self._actions.extend((action, value) for action in node.actions)
            elif self._actions:
                action, value = self._actions.popleft()
                action(value)
            elif self._open:
                make, node = self._open.popleft()
                make(node)
            else:
                return
            self.steps += 1
