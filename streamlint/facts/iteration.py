"""What loops, ``with`` and ``await`` get out of objects."""

from __future__ import annotations

from streamlint.facts.members import Members
from streamlint.facts.nodes import Node
from streamlint.facts.objects import Activation, Container, Group, Instance, Many, Object, Site


class Iteration(Members):
    """Value flow of loops and scopes."""

    def iterate(self, iterable: Node, target: Node) -> None:
        self.solver.when(iterable, lambda value: self.iterated(value, target, target.site))

    def iterated(self, value: Object, target: Node, site: Site | None) -> None:
        """The elements that a loop over an object gives."""
        if not target.first("iterated", value):
            return
        if isinstance(value, Many):
            self.through(value, ("iterated",), lambda one, node: self.iterated(one, node, None), target)
        elif isinstance(value, Instance):
            names = ("__iter__", "__next__") if self.has_method(value, "__iter__") else ("__next__", "__getitem__")
            if names[0] == "__iter__":
                held = Node(None)
                self._method_result(value, "__iter__", held, site)
                self.solver.when(held, lambda one: self._next_of(one, value, target, site))
            elif self.has_method(value, "__next__"):
                self._method_result(value, "__next__", target, site)
            else:
                self._method_result(value, "__getitem__", target, site)
        elif isinstance(value, Container) and value.kind == "dict":
            self.solver.add(target, self.scalar)
        elif isinstance(value, Group) and value.kind == "mapping":
            self.solver.edge(value.nodes[1], target)
        else:
            self.element(value, None, target, site)

    def _next_of(self, one: Object, value: Object, target: Node, site: Site | None) -> None:
        if one is value or (isinstance(one, Instance) and self.has_method(one, "__next__")):
            self._method_result(one, "__next__", target, site)
        elif one is not value:
            self.iterated(one, target, site)

    def entered(self, value: Object, target: Node, site: Site | None) -> None:
        """What ``with value as x`` gives."""
        if not target.first("entered", value):
            return
        if isinstance(value, Many):
            self.through(value, ("entered",), lambda one, node: self.entered(one, node, None), target)
        elif isinstance(value, Instance):
            name = "__enter__" if self.has_method(value, "__enter__") else "__aenter__"
            if self.has_method(value, name):
                self._method_result(value, name, target, site)
            else:
                self.solver.add(target, value)
        elif isinstance(value, Activation):
            self.solver.edge(self.yielded(value.frame), target)
        else:
            self.solver.add(target, value)

    def awaited(self, value: Object, target: Node) -> None:
        """What ``await value`` gives."""
        if isinstance(value, Activation):
            self.solver.edge(self.result(value.frame), target)
        else:
            self.solver.add(target, value)
