"""What objects answer by protocol: descriptors, ``__getattr__``, metaclasses, and what runs where a class is made."""

from __future__ import annotations

from streamlint.facts.code.functions import ClassInfo
from streamlint.facts.code.objects import BoundMethod, ClassObject, Constant, Instance, Object, PartialObject, Site
from streamlint.facts.files.autograd import has_context, is_differentiated
from streamlint.facts.values.callers import Callers
from streamlint.facts.values.frames import Arguments
from streamlint.facts.values.nodes import Node


class Protocols(Callers):
    """Value flow through the protocols of attributes and classes."""

    def applied(self, definition: ClassInfo, target: Node) -> bool:
        """Whether a class is a function of autograd: its ``apply`` runs ``forward`` with a context before the arguments."""
        found = self.hierarchy.lookup(definition, "forward") if is_differentiated(self.hierarchy, definition) else None
        for method in found[1] if found is not None else ():
            called: Object = self.function_object(method, None)
            if has_context(method):
                called = self.objects(PartialObject, called, self.given(None, self.objects(Instance, definition, True)))
            self.solver.add(target, called)
        return found is not None

    def given(self, site: Site | None, *values: Object) -> Arguments:
        """Arguments that Python itself hands over."""
        key = (site, values)
        found = self._given.get(key)
        if found is None:
            found = self._given[key] = Arguments(None, site)
            found.positional = [self.holding(value) for value in values]
        return found

    # --- attributes

    def described(self, value: Instance, receiver: Object, definition: ClassInfo, target: Node, site: Site | None) -> None:
        asked = self.objects(Constant, None) if isinstance(receiver, ClassObject) else receiver
        arguments = self.given(site, asked, self.objects(ClassObject, definition))
        self.solver.when(self.method_node(value, "__get__", site), lambda held: self.call(held, arguments, target))

    def asked_for(self, value: Instance, name: str, target: Node, site: Site | None) -> bool:
        order = self.hierarchy.order(value.definition)
        if name.startswith("__") or not any("__getattr__" in one.methods for one in order):
            return False
        if any(name in one.own_stores or any(member.name == name for member in one.ir.fields) for one in order):
            return False
        if self.hierarchy.has_of_language(value.definition, name):
            return False
        arguments = self.given(site, self.objects(Constant, name))
        self.solver.when(self.method_node(value, "__getattr__", site), lambda held: self.call(held, arguments, target))
        return True

    def set_described(self, value: Instance, name: str, arguments: Arguments, target: Node) -> None:
        """An attribute is set: ``__set__`` of the descriptor that the class has for it runs."""
        one = next((each for each in self.hierarchy.order(value.definition) if name in each.assigned), None)
        if one is None or not self.program.mentioning("__set__"):
            return
        site = arguments.site
        key = (value, arguments)
        given = self._set_arguments.get(key)
        if given is None:
            given = self._set_arguments[key] = Arguments(arguments.frame, site)
            given.positional = [self.holding(value), *arguments.positional]

        def arrived(held: Object) -> None:
            if isinstance(held, Instance) and self.has_method(held, "__set__"):
                self.solver.when(self.method_node(held, "__set__", site), lambda method: self.call(method, given, target))

        self.solver.when(self.class_attribute(one, name), arrived)

    # --- classes

    def of_metaclass(self, value: ClassObject, name: str, target: Node, site: Site | None) -> bool:
        if name == "apply" and self.applied(value.definition, target):
            return True
        metaclass = self.hierarchy.metaclass(value.definition)
        found = self.hierarchy.lookup(metaclass, name) if metaclass is not None else None
        for method in found[1] if found is not None else ():
            called = self.function_object(method, None)
            if method.is_property:
                self.enter(called, value, self.no_arguments(site), target)
            else:
                self.solver.add(target, called if method.is_static else self.objects(BoundMethod, called, value))
        return found is not None

    def class_made(self, definition: ClassInfo, site: Site) -> None:
        """A ``class`` statement runs: the metaclass makes the class, bases and descriptors are told."""
        made = self.objects(ClassObject, definition)
        metaclass = self.hierarchy.metaclass(definition)
        arguments = self.no_arguments(site)
        if metaclass is not None:
            for name, receiver in (("__new__", self.objects(ClassObject, metaclass)), ("__init__", made)):
                found = self.hierarchy.lookup(metaclass, name)
                for method in found[1] if found is not None else ():
                    self.notify(self.function_object(method, None), receiver, arguments)
        initializer = next((one for one in self.hierarchy.order(definition)[1:] if "__init_subclass__" in one.methods), None)
        for method in initializer.methods["__init_subclass__"] if initializer is not None else ():
            self.notify(self.function_object(method, None), made, arguments)
        if self.program.mentioning("__set_name__"):
            for name in definition.assigned:
                self._named(definition, name, site)

    def _named(self, definition: ClassInfo, name: str, site: Site) -> None:
        """A class's attribute that wants to know its name is told."""
        arguments = self.given(site, self.objects(ClassObject, definition), self.objects(Constant, name))

        def arrived(held: Object) -> None:
            if isinstance(held, Instance) and self.has_method(held, "__set_name__"):
                self.solver.when(self.method_node(held, "__set_name__", site), lambda method: self.call(method, arguments, Node(None)))

        self.solver.when(self.class_attribute(definition, name), arrived)
