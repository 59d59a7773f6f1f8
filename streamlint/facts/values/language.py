"""What functions and containers of the language give back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from streamlint.facts.code.objects import (
    Chosen,
    ClassObject,
    Constant,
    External,
    FunctionObject,
    Group,
    Instance,
    ModuleObject,
    Object,
    PartialMethod,
    PartialObject,
    Scalar,
    SomeClass,
    Text,
    Unknown,
)
from streamlint.facts.values.container_calls import ContainerCalls
from streamlint.facts.values.frames import Arguments
from streamlint.facts.values.nodes import Node

Rule = Callable[["Language", External, Arguments, Node], None]


class Language(ContainerCalls):
    """Value flow through builtins, the standard library's containers and its helpers."""

    def language_call(self, callee: External, arguments: Arguments, target: Node) -> bool:
        name = callee.name
        self.called_by_language(name.removeprefix("builtins."), callee.receiver, arguments)
        rule = LANGUAGE.get(name.removeprefix("builtins."))
        if rule is not None:
            rule(self, callee, arguments, target)
        elif name.startswith("builtins.container."):
            self._container_method(callee, name.rpartition(".")[2], arguments, target)
        elif self._is_of_mapping(callee) and isinstance(callee.receiver, Instance) and self.keyed(callee.receiver) is not None:
            self._of_mapping(callee.receiver, name.rpartition(".")[2], arguments, target)
        elif name == "builtins.class.__subclasses__" and isinstance(callee.receiver, ClassObject):
            self._subclasses(callee.receiver, target)
        elif name.startswith("builtins.scalar."):
            self.solver.add(target, self.scalar)
        elif name.endswith(".__new__") and arguments.positional:
            self._new(arguments.positional[0], target)
        else:
            return False
        return True

    def _new(self, given: Node, target: Node) -> None:
        """``super().__new__(cls)``: an object of the class."""

        def arrived(value: Object) -> None:
            if isinstance(value, ClassObject):
                self.solver.add(target, self.objects(Instance, value.definition, not isinstance(value, SomeClass)), given)
            else:
                self.unknown(target, "external")

        self.solver.when(given, arrived)

    def _subclasses(self, value: ClassObject, target: Node) -> None:
        """The classes that derive from one directly."""
        nodes = tuple(self.holding(self.objects(SomeClass, one)) for one in self.hierarchy.children(value.definition))
        self.solver.add(target, self.objects(Group, "iterable", nodes))

    def kind_made_by(self, factory: External) -> str | None:
        rule = LANGUAGE.get(factory.name.removeprefix("builtins."))
        return _KINDS.get(rule) if rule is not None else None


# --- the language


def _partial(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    rest = flow.rest_of(arguments)

    def arrived(value: Object) -> None:
        inner = value
        while isinstance(inner, PartialObject) and inner.arguments is not rest:
            inner = inner.callee
        again = isinstance(inner, PartialObject)  # a loop that wraps what it has wrapped
        flow.solver.add(target, value if again else flow.objects(PartialObject, value, rest))
        if not again:
            flow.hand_over(value, rest, False)

    if arguments.positional:
        flow.solver.when(arguments.positional[0], arrived)


def _field(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    """`dataclasses.field`: what an object holds that is given nothing for it, a value or what a factory makes."""
    if arguments.double:
        flow.unknown(target, "external")

    def arrived(value: Object) -> None:
        kind = _KINDS.get(LANGUAGE.get(value.name.removeprefix("builtins."), _first)) if isinstance(value, External) else None
        if kind is not None and arguments.frame is not None and arguments.site is not None:
            flow.solver.add(target, flow.container(kind, arguments.frame, arguments.site.instruction))
        else:
            flow.call(value, flow.no_arguments(arguments.site), target)

    for name, node in arguments.keywords.items():
        if name == "default":
            flow.solver.edge(node, target)
        elif name == "default_factory":
            flow.solver.when(node, arrived)


def _replaced(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    """`dataclasses.replace`: another object of the class, made with some other fields."""

    def arrived(value: Object) -> None:
        flow.solver.add(target, value)
        if isinstance(value, Instance):
            flow.call(flow.objects(ClassObject, value.definition), rest, Node(None))

    rest = flow.rest_of(arguments)
    for source in arguments.positional[:1]:
        flow.solver.when(source, arrived)


def _partial_method(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    rest = flow.rest_of(arguments)
    if arguments.positional:
        flow.solver.when(arguments.positional[0], lambda value: flow.solver.add(target, flow.objects(PartialMethod, value, rest)))


def _first(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    if arguments.positional:
        flow.solver.edge(arguments.positional[0], target)


def _awaited(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    """A loop of events runs what it is given to its end."""
    for coroutine in arguments.positional[:1]:
        flow.solver.when(coroutine, lambda value: flow.awaited(value, target))


def _decorated(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    """`@dataclass` gives back the class, `@dataclass(frozen=True)` a decorator that does."""
    if not arguments.positional:
        flow.solver.add(target, flow.objects(External, "builtins.identity"))
    _first(flow, callee, arguments, target)


def _generic(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    """`@singledispatch`: a call runs the function, or the one that is registered with it for the class of the first argument."""

    def arrived(value: Object) -> None:
        registered = flow.dispatched.registered(value.function) if isinstance(value, FunctionObject) else ()
        bodies = [value, *(flow.function_object(each, None) for each in registered)]
        is_method = isinstance(value, FunctionObject) and value.function.has_receiver
        for body in bodies:
            flow.solver.add(target, body if is_method or not registered else flow.objects(Chosen, body, flow.no_arguments(None)))

    for given in arguments.positional[:1]:
        flow.solver.when(given, arrived)


def _reference(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    """A call of what `weakref.ref(value)` gives is a question for the value, and no call of it."""
    for source in arguments.positional[:1]:
        flow.solver.when(source, lambda value: flow.solver.add(target, flow.objects(External, "weakref.ref.__call__", value)))


def _referenced(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    if callee.receiver is not None:
        flow.solver.add(target, callee.receiver)


def _lacked(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    flow.unknown(target, "external")
    if isinstance(callee.receiver, Instance):
        flow.of_factory(callee.receiver, arguments.site, target)


def _made_container(kind: str) -> Rule:
    def rule(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
        if arguments.frame is not None and arguments.site is not None:
            flow.solver.add(target, flow.container(kind, arguments.frame, arguments.site.instruction))

    return rule


def _elements(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    """An iterable of the elements of the first argument (`iter`, `reversed`, `sorted`, `tqdm`)."""
    if arguments.positional:
        flow.solver.add(target, flow.objects_of_node(flow.given_elements(arguments.positional[0])))


def _kept(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    """Those elements of the second argument that a function lets pass."""
    for source in arguments.positional[1:2]:
        flow.solver.add(target, flow.objects_of_node(flow.given_elements(source)))


def _an_element(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    if arguments.positional:
        flow.iterate(arguments.positional[0], target)


def _entered(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    """A stack of contexts enters what it is given."""
    for context in arguments.positional[:1]:
        flow.solver.when(context, lambda value: flow.entered(value, target, arguments.site))


def _enumerate(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    if arguments.positional:
        pair = flow.holding(flow.pair(flow.scalar, flow.given_elements(arguments.positional[0])))
        flow.solver.add(target, flow.objects_of_node(pair))


def _zip(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    group = flow.objects(Group, "tuple", tuple(flow.given_elements(node) for node in arguments.positional))
    flow.solver.add(target, flow.objects_of_node(flow.holding(group)))


def _map(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    given = flow.elementwise(arguments)
    result = flow.result_of_map(arguments)
    if arguments.positional:
        flow.solver.when(arguments.positional[0], lambda value: flow.call(value, given, result))
    flow.solver.add(target, flow.objects_of_node(result))


def _reduced(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    """What a function gives of what it gave before, or was begun with, and one element more."""
    if len(arguments.positional) < 2:
        return
    elements = flow.given_elements(arguments.positional[1])
    begun = arguments.positional[2] if len(arguments.positional) > 2 else elements
    each = Arguments(arguments.frame, arguments.site)
    before = Node(None)
    flow.solver.edge(begun, before)
    flow.solver.edge(target, before)
    each.positional = [before, elements]
    flow.solver.edge(begun, target)
    flow.solver.when(arguments.positional[0], lambda value: flow.call(value, each, target))


def _getattr(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    if len(arguments.positional) < 2:
        return
    receiver, name = arguments.positional[:2]

    def named(value: Object) -> None:
        if isinstance(value, Constant) and isinstance(value.value, str):
            text = value.value
            flow.solver.when(receiver, lambda held: flow.member(held, text, target, arguments.site))
        elif isinstance(value, Text) and value.prefix:
            flow.solver.when(receiver, lambda held: flow.members_begun(held, value.prefix, target, arguments.site))
        elif isinstance(value, Scalar) and value.many:
            flow.solver.when(receiver, lambda held: flow.definitions_of(held, target))
        else:
            flow.unknown(target, "dynamic")
            flow.solver.when(receiver, lambda held: flow.definitions_of(held, target) if isinstance(held, ModuleObject) else None)

    flow.solver.when(name, named)
    if len(arguments.positional) > 2:
        flow.solver.edge(arguments.positional[2], target)


def _getter(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    """`operator.attrgetter(name)`: what gives the attribute of an object; of several names a tuple of them."""
    names = flow.objects(Group, "tuple", tuple(arguments.positional))
    flow.solver.add(target, flow.objects(External, "operator.attrgetter.__call__", names))


def _got(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    if not isinstance(callee.receiver, Group) or not arguments.positional:
        return

    def follow(held: Node, path: list[str], node: Node) -> None:
        name, *behind = path
        last = Node(None) if behind else node
        flow.solver.when(held, lambda value: flow.member(value, name, last, arguments.site))
        if behind:
            follow(last, behind, node)

    def named(value: Object, node: Node) -> None:
        if isinstance(value, Constant) and isinstance(value.value, str):
            follow(arguments.positional[0], value.value.split("."), node)
        else:
            flow.unknown(node, "dynamic")

    parts = callee.receiver.nodes
    nodes = tuple(Node(None) for _ in parts) if len(parts) > 1 else (target,)
    for part, node in zip(parts, nodes, strict=False):
        flow.solver.when(part, partial(named, node=node))
    if len(parts) > 1:
        flow.solver.add(target, flow.objects(Group, "tuple", nodes))


def _own_module(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    """`globals()`: the file, whose elements are what it defines."""
    if arguments.site is not None:
        flow.solver.add(target, flow.objects(ModuleObject, arguments.site.function.unit))


def _cast(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    """`typing.cast(type, value)`: the value, and where that is not known the type."""
    if len(arguments.positional) < 2 or arguments.site is None:
        return
    value = arguments.positional[1]
    function, said = arguments.site.function, arguments.site.instruction[-2]
    written = function.constant(said)

    def arrived(held: Object) -> None:
        flow.solver.add(target, held, value)
        if isinstance(held, Unknown):
            flow.declared(function.unit, str(written) if written is not None else function.dotted(said), target)

    flow.solver.when(value, arrived)


def _module(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    """`importlib.import_module(name)`: the file of the name, or each whose name begins so."""
    if not arguments.positional or arguments.site is None:
        return
    unit = arguments.site.function.unit

    def named(value: Object) -> None:
        units = []
        if isinstance(value, Constant) and isinstance(value.value, str):
            units = [found] if (found := flow.program.imported(value.value, unit)) is not None else []
        elif isinstance(value, Text) and value.prefix:
            units = flow.program.modules_begun(value.prefix, unit)
        for one in units:
            flow.solver.add(target, flow.objects(ModuleObject, one), None, arguments.site)
        if not units:
            flow.unknown(target, "external")

    flow.solver.when(arguments.positional[0], named)


def _pattern(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    flow.solver.add(target, flow.objects(External, "re.Pattern"))


def _scalar(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    flow.solver.add(target, flow.scalar)


def _type_of(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    def arrived(value: Object) -> None:
        if isinstance(value, Instance):
            flow.solver.add(target, flow.class_of(value))
        else:
            flow.unknown(target, "dynamic")

    if arguments.positional:
        flow.solver.when(arguments.positional[0], arrived)


def _decorator_maker(flow: Language, callee: External, arguments: Arguments, target: Node) -> None:
    """`functools.wraps(f)`, `functools.lru_cache(n)`: what is called next is given back."""
    if callee.name == "functools.lru_cache" and arguments.positional:  # without parentheses
        flow.solver.edge(arguments.positional[0], target)
    flow.solver.add(target, flow.objects(External, "builtins.identity"))


_KINDS: dict[Rule, str] = {_made_container(kind): kind for kind in ("list", "tuple", "dict", "variable")}
"""What makes containers of the language, with the kind of these."""
_LIST, _TUPLE, _DICT, _VARIABLE = _KINDS
_NAMES: tuple[tuple[Rule, str], ...] = (
    (_partial, "functools.partial partial"),
    (_partial_method, "functools.partialmethod"),
    (_field, "dataclasses.field"),
    (_replaced, "dataclasses.replace copy.replace attr.evolve attrs.evolve"),
    (_first, "identity staticmethod classmethod property functools.cached_property functools.cache contextlib.contextmanager"),
    (_first, "contextlib.asynccontextmanager contextlib.closing abc.abstractmethod copy.copy copy.deepcopy"),
    (_decorated, "dataclasses.dataclass"),
    (_cast, "typing.cast"),
    (_generic, "functools.singledispatch functools.singledispatchmethod"),
    (_module, "importlib.import_module __import__"),
    (_pattern, "re.compile"),
    (_own_module, "globals"),
    (_first, "typing.final typing.overload weakref.proxy asyncio.create_task asyncio.ensure_future asyncio.shield asyncio.wait_for"),
    (_awaited, "asyncio.run asyncio.AbstractEventLoop.run_until_complete"),
    (_decorator_maker, "functools.wraps functools.lru_cache"),
    (_LIST, "list set frozenset collections.deque queue.Queue queue.SimpleQueue queue.LifoQueue queue.PriorityQueue"),
    (_LIST, "asyncio.Queue"),
    (_TUPLE, "tuple"),
    (_VARIABLE, "contextvars.ContextVar"),
    (_DICT, "dict collections.OrderedDict collections.defaultdict vars dataclasses.asdict attr.asdict attrs.asdict"),
    (_DICT, "types.SimpleNamespace argparse.Namespace threading.local"),
    (_lacked, "collections.defaultdict.__getitem__"),
    (_reference, "weakref.ref"),
    (_referenced, "weakref.ref.__call__"),
    (_kept, "filter itertools.filterfalse itertools.takewhile itertools.dropwhile"),
    (_elements, "iter reversed sorted itertools.chain itertools.cycle itertools.islice tqdm tqdm.tqdm tqdm.auto.tqdm"),
    (_an_element, "next min max sum heapq.heappop heapq.heappushpop heapq.heapreplace"),
    (_entered, "contextlib.ExitStack.enter_context contextlib.AsyncExitStack.enter_async_context"),
    (_enumerate, "enumerate"),
    (_zip, "zip itertools.product itertools.zip_longest"),
    (_map, "map"),
    (_reduced, "functools.reduce"),
    (_getattr, "getattr"),
    (_getter, "operator.attrgetter"),
    (_got, "operator.attrgetter.__call__"),
    (_type_of, "type"),
    (_scalar, "len range int float bool str repr isinstance hasattr issubclass abs round print id hash any all ord chr setattr"),
    (_scalar, "callable format divmod pow"),
)
LANGUAGE: dict[str, Rule] = {name: rule for rule, names in _NAMES for name in names.split()}
"""What functions of the language and its library give back. A name without a module is a builtin."""
MAKING_ITERATORS = frozenset(name for name in LANGUAGE if name.startswith("itertools."))
"""What makes iterators of others, and waits for nothing."""
MAKING_CONTAINERS = frozenset(name for name, rule in LANGUAGE.items() if rule in _KINDS)
"""Classes whose constructors look at nothing of what they are made with, and wait for nothing."""
MAKING_DICTS = frozenset(name.rpartition(".")[2] for name, rule in LANGUAGE.items() if rule is _DICT)
"""The last parts of the names of those that make dicts."""
