"""The arguments of a library's function by the selectors of its row, and the functions that it is passed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from streamlint.facts.code.objects import (
    Constant,
    DeviceValue,
    External,
    LibraryObject,
    Memory,
    Object,
    Site,
    Unknown,
)
from streamlint.facts.values.frames import Arguments
from streamlint.facts.values.nodes import Node
from streamlint.facts.values.registers import Registers
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.models.vocabulary import Selector

Action = Callable[[], None]
UNMOVED = "unmoved"
"""The space that an argument names which is no device: memory stays where it is."""
DEVICE_WORDS = frozenset({"cuda", "gpu"})
HOST_WORDS = frozenset({"cpu", "meta", "mps"})


class Selectors(Registers):
    """Value flow that reads the selectors of model rows."""

    def selected(self, selector: object, receiver: Object | None, arguments: Arguments) -> Node | None:
        """The node of the argument that a selector means; None if it was left out, or the row has no selector."""
        if not isinstance(selector, Selector):
            return None
        if selector.kind == "self":
            return self.holding(receiver) if receiver is not None else (arguments.positional[0] if arguments.positional else None)
        if selector.kind != "argument":
            return None
        if selector.position is not None and selector.position < len(arguments.positional):
            return arguments.positional[selector.position]
        if selector.keyword is not None and selector.keyword in arguments.keywords:
            return arguments.keywords[selector.keyword]
        spread = arguments.double if selector.keyword is not None else arguments.starred
        return self._spread_argument(selector, spread[0]) if spread else None

    def _spread_argument(self, selector: Selector, source: Node) -> Node:
        key = selector.keyword if selector.keyword is not None else selector.position
        found = self._spread_nodes.get((source, key))
        if found is None:
            found = self._spread_nodes[source, key] = Node(
                lambda node: self.solver.when(source, lambda value: self.element(value, key, node, source.site))
            )
        return found

    def chosen(self, row: Row, key: str, receiver: Object | None, arguments: Arguments, action: Callable[[bool | None], None]) -> None:
        """Run an action for each truth value that a switch of a row may have; None where it is not known."""
        setting = row.get(key)
        if setting is None or isinstance(setting, bool):
            action(setting if isinstance(setting, bool) else False)
            return
        selectors = setting if isinstance(setting, tuple) else (setting,)
        last = selectors[-1]
        assert isinstance(last, Selector)
        left_out = partial(action, _negated(last.default == "true", last.negated))
        for selector in selectors:
            assert isinstance(selector, Selector)
            node = self.selected(selector, receiver, arguments)
            if node is not None:
                self._when_true(node, selector.negated, action)
                if arguments.double and node is self._spread_nodes.get((arguments.double[0], selector.keyword)):
                    self.when_absent(arguments.double[0], str(selector.keyword), left_out)
                return
        left_out()

    def _when_true(self, node: Node, negated: bool, action: Callable[[bool | None], None]) -> None:
        self.solver.when(node, lambda value: action(_negated(truth(value), negated)))

    def devices(
        self, row: Row, receiver: Object | None, arguments: Arguments, action: Callable[[str, str], None], otherwise: Action | None = None
    ) -> bool:
        """Run an action for each space (and its evidence) that the device arguments of a row may name. Returns whether one is given; where
        any argument may be one, ``otherwise`` runs if none is."""
        setting = row.get("device")
        selectors = setting if isinstance(setting, tuple) else (setting,) if setting is not None else ()
        for selector in selectors:
            assert isinstance(selector, Selector)
            if selector.kind == "all":
                return self._any_device(arguments, action, otherwise)
            node = self.selected(selector, receiver, arguments)
            if node is not None:
                self.solver.when(node, lambda value: self.space_named(value, action))
                return True
        return False

    def space_named(self, value: Object, action: Callable[[str, str], None]) -> None:
        """Run an action for the space, and its evidence, that a device argument names; ``torch.LongTensor`` names the host's."""
        name = value.name if isinstance(value, External) else value.value if isinstance(value, Constant) else None
        kind = self.models.type_named(name) if isinstance(name, str) else None
        if kind is not None and kind.space:
            action(kind.space, "literal")
        else:
            space_of(value, action)

    def _any_device(self, arguments: Arguments, action: Callable[[str, str], None], otherwise: Action | None) -> bool:
        """The device is whatever argument is one; numbers, flags and lists are none."""

        def arrived(value: Object) -> None:
            if isinstance(value, (DeviceValue, External, Memory)):
                self.space_named(value, action)

        for node in arguments.positional:
            self.solver.when(node, arrived)
        if otherwise is not None and all(map(_is_written_out, arguments.positional)):
            otherwise()
        return bool(arguments.positional)

    # --- effects

    def started(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """A function that runs elsewhere is called with the arguments that are passed with it."""
        function = self.selected(row.get("function"), receiver, arguments)
        result = self.outcome_of(arguments.site)
        if function is not None:
            self.solver.when(function, lambda value: self._run_elsewhere(row, value, receiver, arguments, result))
        if row.get("awaited"):
            self.solver.edge(result, target, arguments.site)
        is_one = row.get("style") == "object" or (row.get("style") == "call" and row.get("type"))  # several are distinguished
        made = arguments.site if is_one else None
        self.solver.add(target, self.objects(LibraryObject, str(row.get("type") or row.names[0]), "object", "", made))

    def called_now(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """A function is called here and now, with the arguments behind it."""
        function = self.selected(row.get("function"), receiver, arguments)
        if function is not None:
            given = self._remaining_arguments(row, receiver, arguments)
            result = Node(None) if row.get("gives") else target
            self.solver.when(function, lambda value: self.call(value, given, result))
        if row.get("gives"):
            self.unknown(target, "external")

    def outcome_of(self, site: Site | None) -> Node:
        """What the functions return that a call has run elsewhere."""
        return self._outcomes.setdefault(site, Node(None)) if site is not None else Node(None)

    def waited_for(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """Somebody waits for another thread; if it is for a result, that arrives. Where nobody in view gives one, it is unknown."""
        if row.get("what") != "result":
            self.solver.add(target, self.scalar)
            return
        site = receiver.site if isinstance(receiver, LibraryObject) else None
        if site is None:
            self.unknown(target, "external")
            return
        outcome = self.outcome_of(site)
        self.solver.edge(outcome, target, arguments.site)
        self.solver.at_last(lambda: None if outcome.values else self.unknown(target, "external"))

    def _run_elsewhere(self, row: Row, callee: Object, receiver: Object | None, arguments: Arguments, result: Node) -> None:
        if isinstance(callee, (Constant, Unknown)):
            self.unknown(result, "external")
            return
        given = self._remaining_arguments(row, receiver, arguments)
        self.call(callee, given, result)

    def _remaining_arguments(self, row: Row, receiver: Object | None, arguments: Arguments) -> Arguments:
        found = self._remaining.get(arguments)
        if found is not None:
            return found
        found = self._remaining[arguments] = Arguments(arguments.frame, arguments.site)
        gives = row.get("gives")
        if isinstance(gives, tuple):
            found.positional = [self.selected(each, receiver, arguments) or Node(None) for each in gives]
        elif row.effect == "callback":
            found.positional = self._of_callback(row, receiver, arguments)
        elif row.get("style") in ("call", "each") or row.effect == "call":
            self._give_rest(found, row, arguments)
        else:
            selectors = row.get("arguments")
            for selector in selectors if isinstance(selectors, tuple) else ():
                node = self.selected(selector, receiver, arguments)
                if node is not None:
                    (found.double if selector.keyword == "kwargs" else found.starred).append(node)
        return found

    def _give_rest(self, found: Arguments, row: Row, arguments: Arguments) -> None:
        """A function is given the arguments behind it, but those that the call keeps for itself."""
        function, keeps = row.get("function"), row.get("keeps")
        first = (function.position or 0) + 1 if isinstance(function, Selector) else 1
        own = {each.keyword for each in keeps} if isinstance(keeps, tuple) else set()
        rest = arguments.positional[first:]
        found.positional = list(map(self.given_elements, rest)) if row.get("style") == "each" else list(rest)
        found.starred, found.double = list(arguments.starred), list(arguments.double)
        found.keywords = {name: node for name, node in arguments.keywords.items() if name not in own}

    def _of_callback(self, row: Row, receiver: Object | None, arguments: Arguments) -> list[Node]:
        """What a host function is given: its data, behind the stream and a status where the registration says so."""
        before = [Node(None), Node(None)] if row.get("style") in ("cupy-add", "numba") else []
        for node in before:
            self.solver.add(node, self.objects(Unknown, "external"))
        selectors = row.get("arguments")
        given = [self.selected(selector, receiver, arguments) for selector in selectors] if isinstance(selectors, tuple) else []
        return [*before, *(node for node in given if node is not None)]

    def rest_of(self, arguments: Arguments) -> Arguments:
        """The arguments behind the first."""
        found = self._rests.get(arguments)
        if found is None:
            found = self._rests[arguments] = Arguments(arguments.frame, arguments.site)
            found.positional, found.starred = arguments.positional[1:], arguments.starred
            found.keywords, found.double = arguments.keywords, arguments.double
        return found

    def elementwise(self, arguments: Arguments) -> Arguments:
        """The elements of the arguments behind the first."""
        found = self._remaining.get(arguments)
        if found is None:
            found = self._remaining[arguments] = Arguments(arguments.frame, arguments.site)
            found.positional = [self.given_elements(node) for node in arguments.positional[1:]]
        return found

    def result_of_map(self, arguments: Arguments) -> Node:
        """What the function that is mapped gives."""
        found = self._mapped.setdefault(arguments, Node(None))
        self._iterables[found] = tuple(arguments.positional)
        return found


def truth(value: Object) -> bool | None:
    """Whether an object is true; None where it is not known."""
    if isinstance(value, Constant):
        return bool(value.value)
    return None


def _negated(flag: bool | None, negated: bool) -> bool | None:
    return flag if flag is None or not negated else not flag


def _space_of_constant(value: object) -> tuple[str, str]:
    """The space that a constant names as a device, with its evidence."""
    if value is None:
        return "host", "none"
    if isinstance(value, str):
        word = value.partition(":")[0]
        return "device" if word in DEVICE_WORDS else "host" if word in HOST_WORDS else "unknown", "literal"
    return "device", "literal" if isinstance(value, int) and not isinstance(value, bool) else "asked"


def space_of(value: Object, action: Callable[[str, str], None]) -> None:
    """Run an action for the space that a device argument names."""
    if isinstance(value, Constant):
        action(*_space_of_constant(value.value))
    elif isinstance(value, DeviceValue):
        action(value.space if value.space != "unknown" else "device", "literal" if value.space != "unknown" else "asked")
    elif isinstance(value, Memory):
        action(value.space, value.evidence)
    elif isinstance(value, External):
        action(UNMOVED, "none")  # a data type
    elif isinstance(value, LibraryObject) and value.type.endswith("::TensorOptions"):
        action("unknown", "none")  # options that name no device in view
    else:
        action("device", "asked")


def _is_written_out(node: Node) -> bool:
    """Whether an argument is a number or a list of such, as sizes are."""
    return node.site is not None and node.site.instruction[0] in (op.CONST, op.BUILD)
