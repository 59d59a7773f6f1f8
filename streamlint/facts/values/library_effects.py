"""What the effects of model rows give back: memory, devices, streams, containers."""

from __future__ import annotations

from functools import cached_property, partial

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import (
    BoundMethod,
    Constant,
    Container,
    DeviceValue,
    External,
    FunctionObject,
    Group,
    Instance,
    LibraryObject,
    Memory,
    Object,
    Unknown,
)
from streamlint.facts.values.frames import Arguments
from streamlint.facts.values.nodes import Node
from streamlint.facts.values.selectors import UNMOVED, Selectors
from streamlint.ir import Instruction
from streamlint.models import Row
from streamlint.models.vocabulary import Selector

HOST_ARRAY = "numpy.ndarray"
TENSOR = "torch.Tensor"
SYMBOLS = "symbols"
"""The kind of a shared library that is opened."""


class LibraryEffects(Selectors):
    """Value flow through the effects of rows."""

    def row_of(self, callee: External) -> Row | None:
        """The row of a library's function or method."""
        row = self.models.named(callee.name)
        owner, _, method = callee.name.rpartition(".")
        if row is None and owner and self.models.type_named(owner) is not None:
            row = self.models.method(owner, method)  # a row of a base before a pattern
        if row is None:
            row = self.models.call(callee.name)
        return self.models.method(owner, method) if row is None and owner else row

    def library_constant(self, name: str, target: Node) -> bool:
        row = self.models.attributes.get(name)
        if row is None or row.effect != "stream_of" or row.get("from") is not None:
            return False
        self._stream(row, None, self.no_arguments(target.site), target)
        return True

    def library_element(self, value: LibraryObject, target: Node) -> None:
        if value.kind == "loader":
            space, _, pinning = value.detail.partition("/")
            self.solver.add(target, self.objects(Memory, space or "host", pinning or "unknown", "torch.Tensor"))
            batches = self.outcome_of(value.site)
            self.solver.when(batches, lambda held: self.solver.add(target, held, batches) if isinstance(held, Instance) else None)
        else:
            self.unknown(target, "external")

    def _factory(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        kind, space = str(row.get("type", "torch.Tensor")), str(row.get("space", "host"))

        made = partial(self._made_in, row, receiver, arguments, target)
        is_open = space == "argument" and row.library == "torch"  # a device that is set beforehand counts

        def made_by_default() -> None:
            made(self.program.default_devices.at(arguments.site) if is_open else {"argument": "host"}.get(space, space), "literal")

        if self.devices(row, receiver, arguments, made, made_by_default):
            return
        if space == "like":
            self._made_alike(row, receiver, arguments, target)
            return
        data = row.get("data")
        if row.get("alias") and isinstance(data, Selector) and (node := self.selected(data, receiver, arguments)) is not None:
            self.solver.when(node, lambda value: self._aliased(value, kind, target, arguments))
            return
        made_by_default()

    def _made_alike(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """Memory is made in the space of other memory."""
        node = self.selected(row.get("like"), receiver, arguments)
        made = partial(self._made_in, row, receiver, arguments, target)
        if node is not None:
            self.solver.when(node, lambda value: made(value.space, value.evidence) if isinstance(value, Memory) else None)

    def _made_in(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node, where: str, evidence: str) -> None:
        """Memory is made in a space, which has its evidence."""
        kind, space = str(row.get("type", "torch.Tensor")), row.get("space")

        def made_on_host(is_pinned: bool | None) -> None:
            pinning = "pinned" if is_pinned else "unknown" if is_pinned is None else str(row.get("memory", "pageable"))
            self.solver.add(target, self.objects(Memory, "host", pinning, kind), None, arguments.site)

        if where == UNMOVED and space == "like":
            self._made_alike(row, receiver, arguments, target)
        elif where == UNMOVED and not (space == "argument" and arguments.frame is not None and arguments.frame.function.is_cpp):
            return
        elif where == "pinned":
            made_on_host(True)
        elif where in ("host", UNMOVED):
            self.chosen(row, "pin", receiver, arguments, made_on_host)
        else:
            self.solver.add(target, self.objects(Memory, where, "unknown", kind, evidence), None, arguments.site)

    def _aliased(self, value: Object, kind: str, target: Node, arguments: Arguments) -> None:
        """Memory that another library's object shares; other data is copied to pageable memory."""
        pinning, space, evidence = ("pageable", "host", "none")
        if isinstance(value, Memory):
            pinning, space, evidence = value.pinning, value.space, value.evidence
        elif isinstance(value, Unknown):
            pinning = "unknown"
        self.solver.add(target, self.objects(Memory, space, pinning, kind, evidence), None, arguments.site)

    def _view(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        node = self.selected(row.get("of"), receiver, arguments)
        if node is None:
            return
        kind = row.get("type")
        held = target
        if row.get("part") == "mapping":
            held = Node(None)
            self.solver.add(target, self.objects(Group, "mapping", (held, self.holding(self.scalar))), None, arguments.site)
        elif row.get("part") == "named":
            held = Node(None)
            pair = self.objects(Group, "tuple", (self.holding(self.scalar), held))
            self.solver.add(target, self.objects(Group, "iterable", (self.holding(pair),)), None, arguments.site)
        self.solver.when(node, lambda value: self._viewed(value, str(kind) if kind else "", held, node))

    def _viewed(self, value: Object, kind: str, target: Node, source: Node) -> None:
        if isinstance(value, Memory) and kind == HOST_ARRAY and value.space == "device":  # memory of a device would raise
            self.solver.add(target, self.objects(Memory, "host", "unknown", kind), None, source.site)
        elif isinstance(value, Memory):
            self.solver.add(target, self.objects(Memory, value.space, value.pinning, kind or value.type, value.evidence), None, source.site)
        elif isinstance(value, (Instance, LibraryObject)) or (isinstance(value, Container) and value.kind == "modules"):
            self.solver.add(target, self.objects(Memory, "unknown", "unknown", kind or "torch.Tensor"))
        else:
            is_kept = isinstance(value, (Unknown, Container)) or (kind == "pointer" and isinstance(value, (FunctionObject, BoundMethod)))
            self.solver.add(target, value if is_kept else self.scalar, source)  # the address of a function is that function

    def _compute(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        result = row.get("result", "buffer")
        if result in ("scalar", "none"):
            self.solver.add(target, self.scalar)
            return
        out = row.get("out")
        given = [self.selected(selector, receiver, arguments) for selector in (out if isinstance(out, tuple) else ())]
        for node in (each for each in given if each is not None):
            self.solver.edge(node, target)
            self.solver.when(node, partial(self._written_to, row, receiver, arguments, target))
        if result == "self" and receiver is not None:
            self.solver.add(target, receiver)
        elif not any(node is not None for node in given):
            self._fresh(row, receiver, arguments, target, "pageable")

    def _written_to(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node, value: Object) -> None:
        """What writes to memory that it is given makes none; what is not known may be memory of any kind."""
        if not isinstance(value, Memory):
            self._fresh(row, receiver, arguments, target, "unknown" if isinstance(value, Unknown) else "pageable")

    def _fresh(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node, pinning: str) -> None:
        """New memory that a computation gives, where its operands are."""
        nodes = [*([self.holding(receiver)] if receiver is not None else []), *arguments.all]
        kind = str(row.get("type", ""))

        def computed(kind: str) -> None:
            for node in nodes:
                self.solver.when(node, lambda value: self._computed_from(value, kind, "host" if row.get("host") else "", pinning, target))

        if receiver is None and kind and not row.get("host") and row.library in self.models.marked("device-alone"):
            self.solver.add(target, self.objects(Memory, "device", "unknown", kind, "literal"), None, arguments.site)
            return  # whatever it is given
        asked = self.selected(row.get("several"), receiver, arguments)
        one = self.models.part_type(kind) or kind
        if asked is None:
            computed(one if row.get("several") else kind)
        else:  # ``x.max(dim)`` or ``x.max(other)``
            self.solver.when(asked, lambda value: computed(one if isinstance(value, Memory) else kind))

    def _computed_from(self, value: Object, kind: str, there: str, pinning: str, target: Node) -> None:
        """What is computed from a value. ``there``: where, whatever that is; ``pinning``: of memory of the host."""
        if isinstance(value, Memory):
            space = there or value.space
            how = pinning if space == "host" else "unknown"
            self.solver.add(target, self.objects(Memory, space, how, kind or value.type, value.evidence if space != "host" else "none"))
        elif isinstance(value, Container):
            held = self.any_element(value)
            inside = partial(self._computed_from, kind=kind, there=there, pinning=pinning, target=target)
            self.solver.when(held, lambda inner: inside(inner) if isinstance(inner, Memory) else None)
        elif isinstance(value, Unknown):
            self.solver.add(target, value)

    def unknown_call(self, reason: str, arguments: Arguments, target: Node) -> None:
        super().unknown_call(reason, arguments, target)
        site = arguments.site
        if site is not None and not site.function.is_cpp and shows_tensor(site.function, site.instruction):
            row = self.models.method(TENSOR, site.function.text(site.instruction[4]))
            if row is not None and row.effect == "transfer":
                self._transfer(row, None, arguments, target)

    def _transfer(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        source = self.selected(row.get("of"), receiver, arguments)
        kind = str(row.get("type", "torch.Tensor"))
        to = row.get("to")
        out = row.get("out")
        if isinstance(out, Selector) and (node := self.selected(out, receiver, arguments)) is not None:
            self.solver.edge(node, target)
            return

        def moved(where: str, evidence: str) -> None:
            if where == UNMOVED:
                if source is not None:
                    self.solver.edge(source, target)
            elif where != "host":
                self.solver.add(target, self.objects(Memory, where, "unknown", kind, evidence), source, arguments.site)
            elif row.get("host_memory") == "pinned-if-asynchronous":
                self.chosen(row, "asynchronous", receiver, arguments, lambda flag: self._fetched(source, flag, kind, target, arguments))
            else:
                self._fetched(source, False, kind, target, arguments)

        if to == "device" or to == "host":
            moved(str(to), "literal")
        elif not self.devices(row, receiver, arguments, moved) and source is not None:
            self.solver.edge(source, target)
        elif source is not None:
            self.solver.when(source, lambda value: self._kept(value, target))

    def _kept(self, value: Object, target: Node) -> None:
        """What `to` gives of an object that is no memory: a module, an input of several tensors."""
        if isinstance(value, (Instance, LibraryObject)):
            self.solver.add(target, value)

    def _fetched(self, source: Node | None, asynchronous: bool | None, kind: str, target: Node, arguments: Arguments) -> None:
        """Memory of the host that a copy gives; what is on the host already stays what it is."""
        pinning = "pinned" if asynchronous else "pageable" if asynchronous is False else "unknown"

        def arrived(value: Object) -> None:
            if isinstance(value, Memory) and value.space == "host":
                self.solver.add(target, value, source)
            else:
                self.solver.add(target, self.objects(Memory, "host", pinning, kind), source, arguments.site)

        if source is not None:
            self.solver.when(source, arrived)
        else:
            self.solver.add(target, self.objects(Memory, "host", pinning, kind), None, arguments.site)

    def _pin(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        source = self.selected(row.get("of"), receiver, arguments)
        kind = str(row.get("type", "torch.Tensor"))
        if source is None:
            self.solver.add(target, self.objects(Memory, "host", "pinned", kind), None, arguments.site)
            return

        def arrived(value: Object) -> None:
            if isinstance(value, (Instance, LibraryObject, Container)):
                self.solver.add(target, value, source)
            else:
                self.solver.add(target, self.objects(Memory, "host", "pinned", kind), source, arguments.site)

        self.solver.when(source, arrived)

    def _alloc(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        memory = str(row.get("memory", "device"))
        space = memory if memory in ("device", "managed") else "host"
        pinning = memory if space == "host" else "unknown"
        self.solver.add(target, self.objects(Memory, space, pinning, "pointer", "literal"), None, arguments.site)

    def _object(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        name = str(row.get("type") or row.names[0])
        if row.get("holds"):
            if arguments.frame is not None and arguments.site is not None:
                self.solver.add(target, self.container("modules", arguments.frame, arguments.site.instruction))
            return
        known = self.models.type_named(name)
        kind = known.kind if known is not None else "object"
        home = row.get("space")  # of one that has a device

        def made(space: str, evidence: str) -> None:
            self.solver.add(target, self.objects(LibraryObject, name, kind, space if home and evidence != "asked" else ""))

        if home is None or not self.devices(row, receiver, arguments, made):
            made(str(home), "literal")

    def modules_member(self, value: Container, name: str, target: Node) -> None:
        kind = self._maker(value, "type")
        if kind and self.models.method(kind, name) is not None:
            self.solver.add(target, self.objects(External, f"{kind}.{name}", value))

    def holds(self, value: Container) -> str:
        """How a module holds others: as a ``list``, or as a ``chain`` that runs them."""
        return self._maker(value, "holds")

    def _maker(self, value: Container, key: str) -> str:
        """A field of the row of what made a module that holds others."""
        for callee in self.callee(value.frame, value.instruction).values:
            row = self.row_of(callee) if isinstance(callee, External) else None
            if row is not None and row.get("holds"):
                return str(row.get(key))
        return ""

    @cached_property
    def _chained(self) -> dict[tuple[Container, Node], Node]:
        """By chain and result: what its modules are given."""
        return {}

    def chain_call(self, callee: Container, arguments: Arguments, target: Node) -> None:
        """Each of the modules is given what the call is, or what another one gives: which stands before which is unknown."""
        if self.holds(callee) != "chain":
            self.unknown(target, "dynamic")
            return
        known = self._chained.get((callee, target))
        if known is not None:  # a chain that holds itself, or another call with the same result
            for source in arguments.positional[:1]:
                self.solver.edge(source, known)
            return
        each = Arguments(arguments.frame, arguments.site, arguments.joint)
        each.positional = [Node(None), *arguments.positional[1:]]
        self._chained[callee, target] = each.positional[0]
        each.starred, each.keywords, each.double = arguments.starred, arguments.keywords, arguments.double
        for source in (*arguments.positional[:1], target):
            self.solver.edge(source, each.positional[0])
        self.solver.when(self.any_element(callee), lambda module: self.call(module, each, target))

    def _stream(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        kind = "event" if row.effect == "event" else "stream"
        detail = str(row.get("which", "created"))
        self.solver.add(target, self.objects(LibraryObject, self._type_of(row, kind), kind, detail, arguments.site))

    def _type_of(self, row: Row, kind: str) -> str:
        """The type of a stream or an event that a row makes: a constructor's own, else that of its library."""
        name = row.names[0]
        is_own = row.effect in ("stream", "event") if "." not in name else self.models.type_named(name) is not None
        return name if is_own else self.models.own_type(row.library, kind) or f"{row.library}.{kind}"

    def _record(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """The event that is recorded, or a new one."""
        node = self.selected(row.get("event"), receiver, arguments)
        if not row.get("creates"):
            self.solver.add(target, self.scalar)
        elif node is not None:
            self.solver.edge(node, target)
        else:
            self.solver.add(target, self.objects(LibraryObject, str(row.get("type")), "event", "created", arguments.site))

    def _namespace(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """A module or class of the library by another way: ``torch.get_device_module(device)``."""
        self.solver.add(target, self.objects(External, str(row.get("name")), None))

    def _scope(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        self.solver.add(target, self.objects(LibraryObject, row.names[0], "scope", ""))

    def _loader(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """A loader gives tensors, and the objects that a function of the program makes of them."""
        space = str(row.get("space", "host"))
        collate = self.selected(row.get("collate"), receiver, arguments)
        site = arguments.site if collate is not None else None
        if collate is not None:
            given, batches = self.given(None, self.objects(Unknown, "external")), self.outcome_of(site)
            self.solver.when(collate, lambda value: None if isinstance(value, (Constant, Unknown)) else self.call(value, given, batches))

        def made(pinned: bool | None) -> None:
            pinning = "pinned" if pinned else "pageable" if pinned is False else "unknown"
            detail = f"{space}/{pinning if space == 'host' else 'unknown'}"
            self.solver.add(target, self.objects(LibraryObject, row.names[0], "loader", detail, site))

        self.chosen(row, "pin", receiver, arguments, made)
        one = Arguments(None, arguments.site)
        one.positional.append(self.holding(self.objects(Unknown, "external")))
        for key in ("collate", "worker_init"):
            node = self.selected(row.get(key), receiver, arguments)
            if node is not None:
                self.solver.when(node, lambda value: self.hand_over(value, one, True))

    def _copy(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        self.solver.add(target, receiver if receiver is not None and row.get("result") == "self" else self.scalar)

    def _same(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        node = self.selected(row.get("of"), receiver, arguments)
        if node is not None:
            self.solver.edge(node, target)
        elif receiver is not None:
            self.solver.add(target, receiver)
        elif not (arguments.positional or arguments.starred):  # options alone: what is called next comes back
            self.solver.add(target, self.objects(External, "builtins.identity"))

    def _extension(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """A shared library whose functions are found by symbol, a module that is compiled now, or memory that C sees."""
        name = row.get("name")
        if row.get("part") in ("symbols", "held"):
            self.solver.add(target, self.objects(LibraryObject, row.names[0], SYMBOLS))
        elif isinstance(name, Selector):
            node = self.selected(name, receiver, arguments)
            if node is not None:
                self.solver.when(node, lambda value: self.solver.add(target, self._module_named(value)))
        else:
            for node in arguments.positional[-1:] if row.get("part") == "memory" else arguments.positional[:1]:  # behind its type
                self.solver.edge(node, target)

    def _module_named(self, value: Object) -> Object:
        """A module of C++ by its name."""
        text = value.value if isinstance(value, Constant) else None
        return self.objects(External, text, None) if isinstance(text, str) and text else self.objects(Unknown, "external")

    def _prepare(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """What a framework is given comes back, alone or in a tuple; a module with what the framework puts around it."""
        parts = row.get("parts")
        if not isinstance(parts, tuple) or not parts:
            for node in arguments.positional:
                self.solver.edge(node, target)
            if len(arguments.positional) > 1:
                self.solver.add(target, self.objects(Group, "tuple", tuple(arguments.positional)))
            for node in arguments.starred:
                self.solver.edge(node, target)
            return
        first, *others = (self.selected(each, receiver, arguments) or Node(None) for each in parts)
        around = Node(None, arguments.site)
        self.solver.edge(first, around)
        if row.get("type"):
            self.solver.add(around, self.objects(LibraryObject, str(row.get("type")), "object", ""), None, arguments.site)
        self.solver.add(target, self.objects(Group, "tuple", (around, *others)))

    def _pinned_options(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """C++: options for a tensor in page-locked memory; without that, those that they are made of."""

        def pinned(is_pinned: bool | None) -> None:
            if is_pinned:
                self.solver.add(target, self.objects(DeviceValue, "pinned"), None, arguments.site)
            elif receiver is not None:
                self.solver.add(target, receiver)

        self.chosen(row, "pin", receiver, arguments, pinned)

    def _device(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        node = self.selected(row.get("from"), receiver, arguments)
        if node is None:
            is_shown = isinstance(receiver, Memory) and (receiver.space != "device" or receiver.evidence == "literal")
            space = receiver.space if isinstance(receiver, Memory) and is_shown else "unknown"
            space = receiver.detail if isinstance(receiver, LibraryObject) else space
            self.solver.add(target, self.objects(DeviceValue, space if space in ("host", "device") else "unknown"))
        else:
            self.solver.when(
                node, lambda value: self.space_named(value, lambda space, _: self.solver.add(target, self.objects(DeviceValue, space)))
            )

    def _collective(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        handle = self.objects(LibraryObject, "torch.distributed.Work", "object", "", arguments.site)
        is_list = row.get("result") == "sequence"
        self.solver.add(target, self.objects(Group, "iterable", (self.holding(handle),)) if is_list else handle)

    def _communicator(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """A communicator: each call makes another one."""
        self.solver.add(target, self.communicator(row, arguments) if row.get("type") else self.scalar)

    def communicator(self, row: Row, arguments: Arguments) -> LibraryObject:
        """What a call of such a row makes."""
        return self.objects(LibraryObject, str(row.get("type")), "communicator", "created", arguments.site)

    def _symmetric(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """Memory of a device that ranks share, or its handle."""
        if row.get("type"):
            self.solver.add(target, self.objects(LibraryObject, str(row.get("type")), "object", "created", arguments.site))
        elif row.get("part") in ("memory", "peer"):
            self.solver.add(target, self.objects(Memory, "device", "unknown", "torch.Tensor", "literal"), None, arguments.site)
        else:
            self.solver.add(target, self.scalar)

    def _pipe(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """The two ends of a pipe."""
        ends = (self.holding(self.objects(LibraryObject, str(row.get("type")), "object", "")) for _ in range(2))
        self.solver.add(target, self.objects(Group, "tuple", tuple(ends)))

    def _opaque(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        self.unknown_call("external", arguments, target)


def shows_tensor(function: Function, one: Instruction) -> bool:
    """Whether a call moves something that is a tensor, whatever it came from: what methods of tensors give."""
    made = function.definitions[one[3]] if function.invokes(one, "moves") and one[3] >= 0 else None
    return made is not None and function.invokes(made, "same-elements", "elementwise", "summary")
